// The rows of one shard of one table, in blocks, with one copy-on-write snapshot.
//
// A slot is a row's place: dense shards have all of theirs from the start, sparse ones append.
// While a snapshot is open, a block is either shared with it, or saved (the snapshot has its own
// copy), or done (written to the checkpoint, or newer than the cut). See docs/design/checkpoint.md.
// Not thread-safe: the lane's lock covers it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ps/storage/row_arena.h"

namespace shoal::ps {

// The effect of a push on an open snapshot.
enum class WriteMode : uint8_t {
  kPlain,     // there is none
  kBoth,      // its sender has not sent its marker yet: part of the cut
  kLiveOnly,  // after the marker
};

class RowStore {
 public:
  // row_floats: a multiple of 16, so that rows lie on 64 bytes.
  RowStore(size_t row_floats, RowArena* arena);

  // Dense: all slots at once, contiguous; returns the first row. Only on an empty store.
  float* AllocateDense(size_t slots);
  // Sparse: one more slot, zeroed.
  uint32_t Append();

  // Gives the memory of all rows back to the machine. The last call.
  void Discard();

  // From now on remembers of every slot when it was written last. Only on an empty store.
  void TrackChanges() { tracked_ = true; }
  // The slot is written in this cut_interval, 1 or later. Epochs are the lane's (lane.h).
  void Mark(size_t slot, uint8_t cut_interval) {
    if (changed_[slot] < cut_interval) changed_[slot] = cut_interval;
  }
  // All slots are as if never written.
  void ForgetChanges() { std::fill(changed_.begin(), changed_.end(), uint8_t{0}); }
  // Slots written after that cut_interval.
  size_t CountChanged(uint8_t after) const;

  size_t size() const { return size_; }
  float* Row(size_t slot) const {
    return blocks_[slot >> shift_].live + (slot & mask()) * row_floats_;
  }

  // Brings what Row looks up nearer: with many rows it is far away itself.
  void PrefetchPlace(size_t slot) const { __builtin_prefetch(&blocks_[slot >> shift_]); }

  void BeginSnapshot();
  // All markers are in: the snapshot gets no more pushes, only the writer's reads.
  void Freeze() { frozen_ = open_; }
  void EndSnapshot();

  // Before a slot is written while a snapshot is open. Returns the snapshot's own row where the
  // push must also go, or null. *fresh: that row must get its first value before.
  float* BeforeWrite(size_t slot, WriteMode mode, bool* fresh);

  // For the checkpoint's writer, once frozen. Rows of the block that belong to the snapshot:
  // visit(slot, row), with `after` only those written after that cut_interval. Then MarkWritten
  // lets the copy go.
  size_t snapshot_blocks() const { return snapshot_blocks_; }
  template <typename Visit>
  void VisitSnapshot(size_t block, std::optional<uint8_t> after, const Visit& visit) const {
    const Block& at = blocks_[block];
    const float* rows = at.saved != nullptr ? at.saved.get() : at.live;
    const size_t end = std::min(size_, (block + 1) << shift_);
    for (size_t slot = block << shift_; slot < end; ++slot) {
      if (after.has_value() && changed_[slot] <= *after) continue;
      if (InSnapshot(slot)) visit(slot, rows + (slot & mask()) * row_floats_);
    }
  }
  void MarkWritten(size_t block);

 private:
  struct Block {
    float* live = nullptr;           // the arena's
    std::unique_ptr<float[]> saved;  // the snapshot's version, once it differs
    bool done = false;
  };
  size_t mask() const { return (size_t{1} << shift_) - 1; }
  bool InSnapshot(size_t slot) const {
    return slot < snapshot_size_ || late_[slot - snapshot_size_] != 0;
  }
  size_t FloatsOf(size_t block) const;
  void Save(size_t block);

  const size_t row_floats_;
  const uint32_t shift_;  // log2 of rows a block
  RowArena* const arena_;
  std::vector<Block> blocks_;
  size_t size_ = 0;      // slots
  size_t capacity_ = 0;  // slots that have memory
  bool tracked_ = false;
  std::vector<uint8_t>
      changed_;  // by slot, if tracked: the cut_interval of its last write; 0: none

  bool open_ = false;
  bool frozen_ = false;
  size_t snapshot_size_ = 0;    // slots when the snapshot began
  size_t snapshot_blocks_ = 0;  // blocks it may hold
  std::vector<uint8_t> late_;   // of slots appended since: 1 if they belong to it
};

}  // namespace shoal::ps
