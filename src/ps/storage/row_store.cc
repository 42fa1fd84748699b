#include "ps/storage/row_store.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/status.h"

namespace shoal::ps {
namespace {

// Big enough that bookkeeping is small beside the rows, small enough that a first push after a
// marker copies in a few microseconds.
constexpr size_t kBlockBytes = 32u << 10;

uint32_t ShiftFor(size_t row_floats) {
  const size_t rows = std::max(kBlockBytes / (row_floats * sizeof(float)), size_t{1});
  return static_cast<uint32_t>(std::bit_width(rows) - 1);
}

}  // namespace

RowStore::RowStore(size_t row_floats, RowArena* arena)
    : row_floats_(row_floats), shift_(ShiftFor(row_floats)), arena_(arena) {}

float* RowStore::AllocateDense(size_t slots) {
  SHOAL_CHECK(size_ == 0);
  float* base = arena_->Allocate(slots * row_floats_);
  for (size_t first = 0; first < slots; first += mask() + 1) {
    blocks_.push_back({base + first * row_floats_, nullptr, false});
  }
  if (tracked_) changed_.resize(slots);
  size_ = capacity_ = slots;
  return base;
}

uint32_t RowStore::Append() {
  if (size_ == capacity_) {
    blocks_.push_back({arena_->Allocate(row_floats_ << shift_), nullptr, open_ && frozen_});
    capacity_ += mask() + 1;
    if (open_ && !frozen_) snapshot_blocks_ = blocks_.size();
  }
  if (tracked_) changed_.resize(size_ + 1);
  if (open_) late_.push_back(0);
  return static_cast<uint32_t>(size_++);
}

void RowStore::Discard() {
  for (size_t block = 0; block < blocks_.size(); ++block) {
    arena_->Discard(blocks_[block].live, FloatsOf(block));
  }
}

void RowStore::BeginSnapshot() {
  EndSnapshot();
  open_ = true;
  snapshot_size_ = size_;
  snapshot_blocks_ = blocks_.size();
}

void RowStore::EndSnapshot() {
  if (!open_) return;
  for (Block& block : blocks_) {
    block.saved.reset();
    block.done = false;
  }
  open_ = frozen_ = false;
  late_.clear();
  late_.shrink_to_fit();
}

size_t RowStore::CountChanged(uint8_t after) const {
  return static_cast<size_t>(
      std::count_if(changed_.begin(), changed_.end(),
                    [after](uint8_t cut_interval) { return cut_interval > after; }));
}

size_t RowStore::FloatsOf(size_t block) const {
  return std::min(mask() + 1, capacity_ - (block << shift_)) * row_floats_;
}

void RowStore::Save(size_t block) {
  const size_t floats = FloatsOf(block);
  blocks_[block].saved = std::make_unique_for_overwrite<float[]>(floats);
  std::memcpy(blocks_[block].saved.get(), blocks_[block].live, floats * sizeof(float));
}

float* RowStore::BeforeWrite(size_t slot, WriteMode mode, bool* fresh) {
  *fresh = false;
  const size_t index = slot >> shift_;
  Block& block = blocks_[index];
  if (!open_ || block.done) return nullptr;
  if (mode == WriteMode::kLiveOnly) {
    if (block.saved == nullptr) Save(index);
    return nullptr;
  }
  // Part of the cut. A row that only later pushes had made is made again for the snapshot; in a
  // shared block it can only be this push's own.
  if (!InSnapshot(slot)) {
    late_[slot - snapshot_size_] = 1;
    *fresh = block.saved != nullptr;
  }
  return block.saved == nullptr ? nullptr : block.saved.get() + (slot & mask()) * row_floats_;
}

void RowStore::MarkWritten(size_t block) {
  blocks_[block].saved.reset();
  blocks_[block].done = true;
}

}  // namespace shoal::ps
