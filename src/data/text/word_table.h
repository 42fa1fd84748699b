// A hash table from words to numbers for the inner loops of counting and encoding: open addressing,
// keys of up to 16 bytes inline, two slots a cache line, lookups in batches with overlapping cache
// misses. Private to this room. data_bench compares it with boost::unordered_flat_map.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/sequence_digest.h"
#include "data/text/tokenizer.h"

namespace shoal::data {

// The key of a word. Words contain no NUL, so that zero-padded short words are distinct.
struct WordKey {
  uint64_t a = 0;  // the first 8 bytes, or the hash of a word of more than 16
  uint64_t b = 0;  // the next 8, or (in a slot) the offset of the word's bytes
  uint64_t hash = 0;
  uint32_t size = 0;
};

inline uint64_t MixWords(uint64_t x, uint64_t y) {
  const Wide product = static_cast<Wide>(x) * y;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Part of the data digest: the hash must not change. Multiply and fold, as in wyhash.
inline uint64_t HashShort(uint64_t a, uint64_t b) {
  return MixWords(a ^ 0xa076'1d64'78bd'642f, b ^ 0xe703'7ed1'a0b4'28db);
}
uint64_t HashLong(const char* bytes, size_t size);

inline uint64_t LoadWord(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// Reads up to 16 bytes after the word.
inline WordKey KeyOf(const char* bytes, uint32_t size) {
  WordKey key;
  key.size = size;
  if (size <= 16) [[likely]] {
    // kMasks[n] keeps the first n bytes of eight.
    static constexpr std::array<uint64_t, 17> kMasks = [] {
      std::array<uint64_t, 17> masks{};
      for (unsigned n = 0; n <= 16; ++n) {
        masks[n] = n >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * n)) - 1;
      }
      return masks;
    }();
    key.a = LoadWord(bytes) & kMasks[size];
    key.b = LoadWord(bytes + 8) & kMasks[size < 8 ? 0 : size - 8];
    key.hash = HashShort(key.a, key.b);
    return key;
  }
  key.a = key.hash = HashLong(bytes, size);
  return key;
}

// Maps words to values (counts or ids). Not thread-safe; const calls are.
class WordTable {
 public:
  struct Slot {
    uint64_t a = 0;
    uint64_t b = 0;  // of a long word: where it begins in long_bytes_
    uint64_t value = 0;
    uint32_t size = 0;  // 0: free
    uint32_t unused = 0;
  };
  static_assert(sizeof(Slot) == 32);

  explicit WordTable(size_t expected = 0) { Reset(expected); }

  size_t size() const { return size_; }
  size_t capacity() const { return slots_.size(); }

  void Prefetch(const WordKey& key) const { __builtin_prefetch(&slots_[key.hash >> shift_], 1); }

  // The word's slot, or null.
  const Slot* Find(const WordKey& key, const char* bytes) const {
    const Slot* slot = Probe(key, bytes);
    return slot->size != 0 ? slot : nullptr;
  }
  // The word's slot; inserted with value 0 if `*added`. Valid until the next Add.
  Slot* Add(const WordKey& key, const char* bytes, bool* added) {
    Slot* slot = const_cast<Slot*>(Probe(key, bytes));
    *added = slot->size == 0;
    return *added ? Insert(key, bytes, slot) : slot;
  }

  // The word of a used slot; short words are stored in the slot itself.
  std::string_view WordOf(const Slot& slot) const {
    if (slot.size > 16) return {long_bytes_.data() + slot.b, slot.size};
    return {reinterpret_cast<const char*>(&slot), slot.size};
  }
  // All slots, used and free.
  const std::vector<Slot>& slots() const { return slots_; }
  // Keeps only the words with a value of more than `value`.
  void Forget(uint64_t value);

 private:
  void Reset(size_t expected);
  void Grow();
  Slot* Insert(const WordKey& key, const char* bytes, Slot* slot);

  const Slot* Probe(const WordKey& key, const char* bytes) const {
    for (size_t i = key.hash >> shift_;; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.size == 0) return &slot;
      if (slot.a != key.a || slot.size != key.size) continue;
      if (key.size <= 16 ? slot.b == key.b
                         : std::memcmp(long_bytes_.data() + slot.b, bytes, key.size) == 0) {
        return &slot;
      }
    }
  }
  static uint64_t HashOf(const Slot& slot) {
    return slot.size <= 16 ? HashShort(slot.a, slot.b) : slot.a;
  }

  std::vector<Slot> slots_;
  std::string long_bytes_;
  size_t size_ = 0;
  size_t mask_ = 0;
  unsigned shift_ = 0;  // the hash's highest bits choose the slot
};

}  // namespace shoal::data
