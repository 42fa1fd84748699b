// Sparse keys → slots: open addressing with linear probing, one 16-byte entry a key, so that a
// batch of look-ups can first prefetch all its cache lines. Its memory is the arena's, on huge
// pages as the rows are: with millions of keys nearly every look-up is on another page.
//
// Owned by one shard of a sparse table (table.cc). Keys are never removed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "ps/storage/initializer.h"
#include "ps/storage/row_arena.h"
#include "ps/types.h"

namespace shoal::ps {

class KeyIndex {
 public:
  static constexpr uint32_t kMissing = UINT32_MAX;

  // Has no memory before the first key; the arena must outlive it.
  explicit KeyIndex(RowArena* arena) : arena_(arena) {}
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;

  void Prefetch(uint64_t hash) const { __builtin_prefetch(&entries_[hash & mask()]); }
  // The slot of the key, or kMissing. `hash` is Mix(key). Expected O(1).
  uint32_t Find(Key key, uint64_t hash) const {
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Entry& entry = entries_[at];
      if (entry.slot == kMissing || entry.key == key) return entry.slot;
    }
  }
  // The key must be missing. May move all entries (amortised O(1)). Throws std::bad_alloc.
  void Insert(Key key, uint64_t hash, uint32_t slot) {
    if ((size_ + 1) * 3 > capacity_ * 2) Grow();
    Place(key, hash, slot);
    ++size_;
  }
  size_t size() const { return size_; }
  size_t bytes() const { return capacity_ * sizeof(Entry); }
  // Gives its memory back to the machine. The last call.
  void Discard() { Free(entries_, capacity_); }

 private:
  static constexpr size_t kFirstCapacity = 16;
  struct Entry {
    Key key;
    uint32_t slot;
  };
  static inline const Entry kNone{0, kMissing};  // what an index without memory consists of

  size_t mask() const { return capacity_ - 1; }
  void Place(Key key, uint64_t hash, uint32_t slot) {
    size_t at = hash & mask();
    while (entries_[at].slot != kMissing) at = (at + 1) & mask();
    entries_[at] = {key, slot};
  }
  static size_t Floats(size_t entries) { return entries * sizeof(Entry) / sizeof(float); }
  void Free(Entry* entries, size_t capacity) {
    if (entries != &kNone) arena_->Discard(reinterpret_cast<float*>(entries), Floats(capacity));
  }
  void Grow() {
    const size_t capacity = std::max(kFirstCapacity, capacity_ * 2);
    auto* const fresh = reinterpret_cast<Entry*>(arena_->Allocate(Floats(capacity)));
    std::uninitialized_fill_n(fresh, capacity, kNone);
    Entry* const old = std::exchange(entries_, fresh);
    const size_t before = std::exchange(capacity_, capacity);
    for (size_t i = 0; i < before; ++i) {
      if (old[i].slot != kMissing) Place(old[i].key, Mix(old[i].key), old[i].slot);
    }
    Free(old, before);
  }

  RowArena* const arena_;
  Entry* entries_ = const_cast<Entry*>(&kNone);  // the arena's; kNone is never written
  size_t capacity_ = 1;                          // a power of two
  size_t size_ = 0;
};

}  // namespace shoal::ps
