#include "ps/storage/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace shoal::ps {

Table::Table(TableSpec spec, const Place& place, RowArena* arena)
    : spec_(std::move(spec)),
      partition_(place.partition),
      states_(place.states),
      arena_(arena),
      optimizer_{place.optimizer, spec_.optimizer.argument},
      layout_(RowLayout::Of(spec_.dim, spec_.optimizer)),
      cut_interval_(place.cut_interval),
      shards_(partition_->shards()),
      dense_base_(partition_->shards()) {
  for (uint32_t shard = 0; shard < partition_->shards(); ++shard) {
    if ((*states_)[shard] != ShardState::kElsewhere) AddShard(shard);
  }
}

void Table::AddShard(uint32_t shard) {
  auto fresh = std::make_unique<Shard>(layout_.floats, arena_);
  if (cut_interval_ != 0) fresh->store.TrackChanges();
  const size_t slots = dense() ? partition_->DenseSlots(spec_.rows, shard) : 0;
  if (slots > 0) dense_base_[shard] = fresh->store.AllocateDense(slots);
  present_ += shards_[shard] == nullptr;
  shards_[shard] = std::move(fresh);
  if (spec_.initializer.kind == InitializerKind::kZeros) return;
  for (size_t slot = 0; slot < slots; ++slot) {
    StartRow(partition_->DenseKey(shard, slot), dense_base_[shard] + slot * layout_.floats);
  }
}

void Table::DropShard(uint32_t shard) {
  if (shards_[shard] == nullptr) return;
  shards_[shard]->store.Discard();
  shards_[shard]->index.Discard();
  shards_[shard] = nullptr;
  --present_;
  dense_base_[shard] = nullptr;
}

Status Table::Check(std::span<const Key> keys) const {
  if (dense()) {
    const uint64_t limit = spec_.rows;
    bool beyond = false;
    for (const Key key : keys) beyond |= key >= limit;
    if (beyond) {
      const Key bad = *std::find_if(keys.begin(), keys.end(), [=](Key k) { return k >= limit; });
      return OutOfRange(
          fmt::format("table '{}': key {}, expected one below {}", spec_.name, bad, limit));
    }
  }
  if (present_ == shards_.size()) return Status::Ok();  // of all servers the only one
  for (const Key key : keys) {
    if (shards_[ShardOf(key)] == nullptr) {
      return FailedPrecondition(
          fmt::format("table '{}': key {} belongs to another server", spec_.name, key));
    }
  }
  return Status::Ok();
}

void Table::ResolveDense(const KeyBatch& batch, float** rows) const {
  const uint32_t bits = partition_->shard_bits();
  for (size_t i = 0; i < batch.n; ++i) {
    const Key key = batch.keys[i];
    rows[i] = dense_base_[ShardOf(key)] + (key >> bits) * layout_.floats;
  }
}

void Table::MarkDense(const KeyBatch& batch, uint8_t cut_interval) {
  const uint32_t bits = partition_->shard_bits();
  for (size_t i = 0; i < batch.n; ++i) {
    shards_[ShardOf(batch.keys[i])]->store.Mark(batch.keys[i] >> bits, cut_interval);
  }
}

void Table::FindSparse(const KeyBatch& batch, float** rows, uint32_t* slots) const {
  // Three loops, so that each waits for the memory of all keys at once: entries, blocks, and the
  // rows themselves in the kernel.
  std::array<uint64_t, kBatchRows> hashes;
  std::array<const Shard*, kBatchRows> shards;
  for (size_t i = 0; i < batch.n; ++i) {
    hashes[i] = Mix(batch.keys[i]);
    shards[i] = shards_[partition_->ShardOfHash(hashes[i])].get();
    shards[i]->index.Prefetch(hashes[i]);
  }
  for (size_t i = 0; i < batch.n; ++i) {
    slots[i] = shards[i]->index.Find(batch.keys[i], hashes[i]);
    if (slots[i] != KeyIndex::kMissing) shards[i]->store.PrefetchPlace(slots[i]);
  }
  for (size_t i = 0; i < batch.n; ++i) {
    rows[i] = slots[i] == KeyIndex::kMissing ? nullptr : shards[i]->store.Row(slots[i]);
  }
}

void Table::FindOrInsertSparse(const KeyBatch& batch, WriteMode mode, float** rows) {
  std::array<uint32_t, kBatchRows> slots;
  FindSparse(batch, rows, slots.data());
  for (size_t i = 0; i < batch.n; ++i) {
    if (rows[i] != nullptr) continue;
    const Key key = batch.keys[i];
    const uint64_t hash = Mix(key);
    Shard& shard = *shards_[ShardOf(key)];
    uint32_t& slot = slots[i];
    slot = shard.index.Find(key, hash);  // an earlier one of this batch may have made it
    if (slot == KeyIndex::kMissing) slot = Insert(&shard, key, hash, mode);
    rows[i] = shard.store.Row(slot);
  }
  if (cut_interval_ == 0) return;
  const uint8_t cut_interval = CutIntervalOf(mode);
  for (size_t i = 0; i < batch.n; ++i) {
    shards_[ShardOf(batch.keys[i])]->store.Mark(slots[i], cut_interval);
  }
}

uint32_t Table::Insert(Shard* shard, Key key, uint64_t hash, WriteMode mode) {
  const uint32_t slot = shard->store.Append();
  shard->keys.resize(size_t{slot} + 1);  // heals a gap that an earlier bad_alloc may have left
  shard->keys[slot] = key;
  shard->index.Insert(key, hash, slot);
  bool fresh = false;
  // A later push's row must not show in the snapshot: its block is saved before.
  if (mode == WriteMode::kLiveOnly) shard->store.BeforeWrite(slot, mode, &fresh);
  StartRow(key, shard->store.Row(slot));
  return slot;
}

void Table::StartRow(Key key, float* row) const {
  InitializeRow(spec_.initializer, key, layout_.dim, row);
  StartState(spec_.optimizer, layout_, row);
}

size_t Table::SlotOf(const Shard& shard, Key key) const {
  return dense() ? key >> partition_->shard_bits() : shard.index.Find(key, Mix(key));
}

Status Table::Apply(const RowUpdate& change, std::span<const Key> keys,
                    const RowBatch& batch) const {
  if (change.function == nullptr) {
    ApplyBatch(batch);
    return Status::Ok();
  }
  FunctionBatch call;
  call.keys = keys;
  call.rows = batch.rows;
  call.deltas = batch.n > 0 && batch.deltas[0] != nullptr ? batch.deltas : nullptr;
  call.dim = layout_.dim;
  call.argument = change.argument;
  call.layout = layout_;
  TRY((*change.function)(call));
  if (batch.out != nullptr) CopyBatch(batch.rows, batch.out, batch.n, layout_.dim);
  return Status::Ok();
}

Status Table::PushToSnapshot(const KeyBatch& batch, WriteMode mode, const RowUpdate& change) {
  std::array<Key, kBatchRows> keys;
  std::array<float*, kBatchRows> rows;
  std::array<const float*, kBatchRows> deltas;
  size_t n = 0;
  for (size_t i = 0; i < batch.n; ++i) {
    Shard& shard = *shards_[ShardOf(batch.keys[i])];
    bool fresh = false;
    float* row = shard.store.BeforeWrite(SlotOf(shard, batch.keys[i]), mode, &fresh);
    if (row == nullptr) continue;
    if (fresh) {
      std::memset(row, 0, layout_.floats * sizeof(float));
      StartRow(batch.keys[i], row);
    }
    keys[n] = batch.keys[i];
    rows[n] = row;
    deltas[n++] = batch.deltas[i];
  }
  if (n == 0) return Status::Ok();
  return Apply(change, {keys.data(), n},
               {rows.data(), deltas.data(), nullptr, n, layout_, &spec_.optimizer});
}

Status Table::Push(const KeyBatch& batch, bool answer, WriteMode mode, const RowUpdate& change) {
  std::array<float*, kBatchRows> rows;
  if (dense()) {
    ResolveDense(batch, rows.data());
    if (cut_interval_ != 0) MarkDense(batch, CutIntervalOf(mode));
  } else {
    FindOrInsertSparse(batch, mode, rows.data());
  }
  const RowUpdate& what = change.function != nullptr ? change : optimizer_;
  if (mode != WriteMode::kPlain) TRY(PushToSnapshot(batch, mode, what));
  return Apply(what, {batch.keys.data(), batch.n},
               {rows.data(), batch.deltas.data(), answer ? batch.out.data() : nullptr, batch.n,
                layout_, &spec_.optimizer});
}

void Table::Pull(const KeyBatch& batch) const {
  std::array<float*, kBatchRows> rows;
  if (dense()) {
    ResolveDense(batch, rows.data());
    if (batch.in_a_row) return GatherBatch(rows.data(), batch.n, spec_.dim, batch.out[0]);
    return CopyBatch(rows.data(), batch.out.data(), batch.n, spec_.dim);
  }
  std::array<uint32_t, kBatchRows> slots;
  FindSparse(batch, rows.data(), slots.data());
  std::array<float*, kBatchRows> out;
  size_t found = 0;
  for (size_t i = 0; i < batch.n; ++i) {
    if (rows[i] == nullptr) {
      InitializeRow(spec_.initializer, batch.keys[i], spec_.dim, batch.out[i]);
    } else {
      rows[found] = rows[i];
      out[found++] = batch.out[i];
    }
  }
  if (batch.in_a_row && found == batch.n) {
    return GatherBatch(rows.data(), batch.n, spec_.dim, batch.out[0]);
  }
  CopyBatch(rows.data(), out.data(), found, spec_.dim);
}

// Rows that only arrive are still their owner's to save.
void Table::BeginSnapshot() {
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    if (shards_[shard] == nullptr || (*states_)[shard] == ShardState::kArriving) continue;
    shards_[shard]->store.BeginSnapshot();
  }
}

void Table::Freeze() {
  for (auto& shard : shards_) {
    if (shard != nullptr) shard->store.Freeze();
  }
}

void Table::EndSnapshot() {
  for (auto& shard : shards_) {
    if (shard != nullptr) shard->store.EndSnapshot();
  }
}

size_t Table::SnapshotBlocks(uint32_t shard) const {
  return shards_[shard] == nullptr ? 0 : shards_[shard]->store.snapshot_blocks();
}

void Table::TakeSnapshotBlock(uint32_t shard, size_t block, std::optional<uint8_t> after,
                              SavedRows* rows) {
  Shard& from = *shards_[shard];
  from.store.VisitSnapshot(block, after, [&](size_t slot, const float* row) {
    rows->keys.push_back(dense() ? partition_->DenseKey(shard, slot) : from.keys[slot]);
    AppendSaved(row, &rows->floats);
  });
  from.store.MarkWritten(block);
}

void Table::ForgetChanges() {
  for (auto& shard : shards_) {
    if (shard != nullptr) shard->store.ForgetChanges();
  }
}

size_t Table::CountChanged(uint8_t after) const {
  size_t rows = 0;
  for (const auto& shard : shards_) rows += shard == nullptr ? 0 : shard->store.CountChanged(after);
  return rows;
}

void Table::AppendSaved(const float* row, std::vector<float>* rows) const {
  for (size_t plane = 0; plane <= layout_.planes; ++plane) {
    const float* values = row + plane * layout_.stride;
    rows->insert(rows->end(), values, values + layout_.dim);
  }
  if (layout_.step != 0) rows->push_back(row[layout_.step]);
}

void Table::CopyRows(uint32_t shard, size_t first, size_t n, std::vector<Key>* keys,
                     std::vector<float>* rows) const {
  keys->clear();
  rows->clear();
  if (shards_[shard] == nullptr) return;
  const Shard& from = *shards_[shard];
  for (size_t slot = first; slot < std::min(first + n, from.store.size()); ++slot) {
    keys->push_back(dense() ? partition_->DenseKey(shard, slot) : from.keys[slot]);
    AppendSaved(from.store.Row(slot), rows);
  }
}

void Table::CopyKeys(std::span<const Key> wanted, std::vector<Key>* keys,
                     std::vector<float>* rows) const {
  keys->clear();
  rows->clear();
  for (const Key key : wanted) {
    const Shard* shard = shards_[ShardOf(key)].get();
    const size_t slot = shard == nullptr ? KeyIndex::kMissing : SlotOf(*shard, key);
    if (slot == KeyIndex::kMissing) continue;
    keys->push_back(key);
    AppendSaved(shard->store.Row(slot), rows);
  }
}

void Table::RestoreRow(Key key, const float* values) {
  Shard& shard = *shards_[ShardOf(key)];
  size_t slot = SlotOf(shard, key);
  if (!dense() && slot == KeyIndex::kMissing) {
    slot = Insert(&shard, key, Mix(key), WriteMode::kPlain);
  }
  float* row = shard.store.Row(slot);
  for (size_t plane = 0; plane <= layout_.planes; ++plane, values += layout_.dim) {
    std::memcpy(row + plane * layout_.stride, values, layout_.dim * sizeof(float));
  }
  if (layout_.step != 0) std::memcpy(row + layout_.step, values, sizeof(float));
}

uint64_t Table::stored_rows() const {
  uint64_t rows = 0;
  for (const auto& shard : shards_) rows += shard == nullptr ? 0 : shard->store.size();
  return rows;
}

uint64_t Table::ShardBytes(uint32_t shard) const {
  if (shards_[shard] == nullptr) return 0;
  const Shard& at = *shards_[shard];
  const uint64_t bytes = at.store.size() * layout_.floats * sizeof(float);
  return dense() ? bytes : bytes + at.index.bytes() + at.keys.capacity() * sizeof(Key);
}

uint64_t Table::bytes() const {
  uint64_t bytes = 0;
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) bytes += ShardBytes(shard);
  return bytes;
}

}  // namespace shoal::ps
