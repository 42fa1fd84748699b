// Sparse keys → slots: open addressing with linear probing, one 16-byte entry a key, so that a
// batch of look-ups can first prefetch all its cache lines.
//
// Owned by one shard of a sparse table (table.cc). Keys are never removed.
#pragma once

#include <cstdint>
#include <vector>

#include "ps/initializer.h"
#include "ps/types.h"

namespace shoal::ps {

class KeyIndex {
 public:
  static constexpr uint32_t kMissing = UINT32_MAX;

  KeyIndex() : entries_(kFirstCapacity) {}

  void Prefetch(uint64_t hash) const { __builtin_prefetch(&entries_[hash & mask()]); }
  // The slot of the key, or kMissing. `hash` is Mix(key). Expected O(1).
  uint32_t Find(Key key, uint64_t hash) const {
    for (size_t at = hash & mask();; at = (at + 1) & mask()) {
      const Entry& entry = entries_[at];
      if (entry.slot == kMissing || entry.key == key) return entry.slot;
    }
  }
  // The key must be missing. May move all entries (amortised O(1)).
  void Insert(Key key, uint64_t hash, uint32_t slot) {
    if ((size_ + 1) * 3 > entries_.size() * 2) Grow();
    Place(key, hash, slot);
    ++size_;
  }
  size_t size() const { return size_; }
  size_t bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  static constexpr size_t kFirstCapacity = 16;
  struct Entry {
    Key key = 0;
    uint32_t slot = kMissing;
  };
  size_t mask() const { return entries_.size() - 1; }
  void Place(Key key, uint64_t hash, uint32_t slot) {
    size_t at = hash & mask();
    while (entries_[at].slot != kMissing) at = (at + 1) & mask();
    entries_[at] = {key, slot};
  }
  void Grow() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.slot != kMissing) Place(entry.key, Mix(entry.key), entry.slot);
    }
  }

  std::vector<Entry> entries_;  // a power of two
  size_t size_ = 0;
};

}  // namespace shoal::ps
