// The part of one table that one lane owns: resolves keys to rows in prefetched batches and lets
// the optimizer loose on them.
//
// Called by lane.cc under the lane's lock; nothing here is thread-safe.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "ps/partition.h"
#include "ps/storage/key_index.h"
#include "ps/storage/optimizer_kernels.h"
#include "ps/storage/row_function.h"
#include "ps/storage/row_store.h"

namespace shoal::ps {

// The state of a virtual shard in a lane.
enum class ShardState : uint8_t {
  kElsewhere,  // its rows are another's
  kHere,       // served
  kArriving,   // rows come from its owner; not served
  kLeaving,    // its last rows are on their way to its next owner; not served
};

// At most kBatchRows keys with their rows in the sender's memory.
struct KeyBatch {
  size_t n = 0;
  std::array<Key, kBatchRows> keys;
  std::array<const float*, kBatchRows> deltas;
  std::array<float*, kBatchRows> out;
  bool in_a_row = false;  // out: one after the other
};

// The update that a request applies to rows: a function, or, without one, the table's optimizer.
struct RowUpdate {
  const RowFunction* function = nullptr;
  std::string_view argument;
};

// Rows as a checkpoint holds them, one after the other.
struct SavedRows {
  std::vector<Key> keys;
  std::vector<float> floats;  // saved_floats of each
  void clear() {
    keys.clear();
    floats.clear();
  }
};

class Table {
 public:
  // Whose part of the table it is. What is pointed to must outlive the table.
  struct Place {
    const Partition* partition;
    const std::vector<ShardState>* states;  // by shard: which are the lane's
    const RowFunction* optimizer;           // of kFunction; else null
    uint8_t cut_interval = 0;               // as for SetCutInterval; 0: changes are not tracked
  };
  // Allocates and initializes the dense rows of the lane's shards. Throws std::bad_alloc.
  Table(TableSpec spec, const Place& place, RowArena* arena);

  const TableSpec& spec() const { return spec_; }
  // Floats of a row in a checkpoint: the values, then the optimizer's state (row_layout.h).
  size_t saved_floats() const { return layout_.saved_floats(); }

  // OutOfRange or FailedPrecondition (not the owner) names the first bad key.
  Status Check(std::span<const Key> keys) const;

  // Keys must have been checked. Applies deltas (which only a function can do without: null);
  // copies new rows to batch.out if `answer`. Only functions fail.
  Status Push(const KeyBatch& batch, bool answer, WriteMode mode, const RowUpdate& change);
  void Pull(const KeyBatch& batch) const;

  void BeginSnapshot();
  void Freeze();
  void EndSnapshot();
  // For the checkpoint's writer, once frozen: the rows of one block of one shard, with `after` only
  // those pushed to after that cut_interval; then lets its copy go. Shards not owned have no
  // blocks.
  size_t SnapshotBlocks(uint32_t shard) const;
  void TakeSnapshotBlock(uint32_t shard, size_t block, std::optional<uint8_t> after,
                         SavedRows* rows);

  // The cut_interval of pushes from now on; those behind an open snapshot's cut are of the next
  // one.
  void SetCutInterval(uint8_t cut_interval) { cut_interval_ = cut_interval; }
  void ForgetChanges();
  // Rows pushed to after that cut_interval. O(rows), a byte each.
  size_t CountChanged(uint8_t after) const;

  // Rows [first, first + n) of a shard as they are, in the order in which they lie, as the
  // snapshot's are given; fewer at its end, none for a shard not owned.
  void CopyRows(uint32_t shard, size_t first, size_t n, std::vector<Key>* keys,
                std::vector<float>* rows) const;

  // A shard that the lane gets, with its first values, and one that it gives away: its memory goes
  // back to the machine. Not while a snapshot holds it. AddShard throws std::bad_alloc.
  void AddShard(uint32_t shard);
  void DropShard(uint32_t shard);
  // Rows of one shard by their keys, as CopyRows gives them. Keys without a row are left out.
  void CopyKeys(std::span<const Key> wanted, std::vector<Key>* keys,
                std::vector<float>* rows) const;
  uint64_t ShardBytes(uint32_t shard) const;

  // Sets a row as a checkpoint held it. The key must have been checked. Throws std::bad_alloc.
  void RestoreRow(Key key, const float* values);

  uint64_t stored_rows() const;
  // Of the memory for rows and keys.
  uint64_t bytes() const;

  // The lane counts what requests asked for.
  uint64_t rows_pushed = 0;
  uint64_t rows_pulled = 0;

 private:
  struct Shard {
    RowStore store;
    KeyIndex index;         // sparse
    std::vector<Key> keys;  // sparse: of every slot
    explicit Shard(size_t row_floats, RowArena* arena) : store(row_floats, arena), index(arena) {}
  };

  bool dense() const { return spec_.key_space == KeySpace::kDense; }
  uint32_t ShardOf(Key key) const { return partition_->ShardOf(spec_.key_space, key); }
  void ResolveDense(const KeyBatch& batch, float** rows) const;
  // Missing keys get null, or a new row if `insert`.
  void FindSparse(const KeyBatch& batch, float** rows, uint32_t* slots) const;
  void FindOrInsertSparse(const KeyBatch& batch, WriteMode mode, float** rows);
  void MarkDense(const KeyBatch& batch, uint8_t cut_interval);
  uint8_t CutIntervalOf(WriteMode mode) const {
    return static_cast<uint8_t>(cut_interval_ + (mode == WriteMode::kLiveOnly ? 1 : 0));
  }
  uint32_t Insert(Shard* shard, Key key, uint64_t hash, WriteMode mode);
  // Brings the open snapshot in order before the batch is written to the live rows.
  Status PushToSnapshot(const KeyBatch& batch, WriteMode mode, const RowUpdate& change);
  Status Apply(const RowUpdate& change, std::span<const Key> keys, const RowBatch& batch) const;
  // The first value of a row whose memory is zero.
  void StartRow(Key key, float* row) const;
  size_t SlotOf(const Shard& shard, Key key) const;
  void AppendSaved(const float* row, std::vector<float>* rows) const;

  const TableSpec spec_;
  const Partition* const partition_;
  const std::vector<ShardState>* const states_;
  RowArena* const arena_;
  const RowUpdate optimizer_;  // of kFunction
  const RowLayout layout_;
  uint8_t cut_interval_;                        // 0: not tracked
  std::vector<std::unique_ptr<Shard>> shards_;  // by shard; null: another's
  std::vector<float*> dense_base_;              // by shard: its first row
  uint32_t present_ = 0;                        // how many of shards_ are not null
};

}  // namespace shoal::ps
