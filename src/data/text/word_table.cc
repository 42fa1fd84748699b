#include "data/text/word_table.h"

#include <utility>

namespace shoal::data {

uint64_t HashLong(const char* bytes, size_t size) {
  uint64_t state = size * 0x9e37'79b9'7f4a'7c15;
  size_t at = 0;
  for (; at + 16 < size; at += 16) {
    state = MixWords(LoadWord(bytes + at) ^ state ^ 0xa076'1d64'78bd'642f,
                     LoadWord(bytes + at + 8) ^ 0xe703'7ed1'a0b4'28db);
  }
  // The last 16 bytes, overlapping those before.
  return MixWords(LoadWord(bytes + size - 16) ^ state ^ 0x8ebc'6af0'9c88'c6e3,
                  LoadWord(bytes + size - 8) ^ 0x5899'65cc'7537'4cc3);
}

void WordTable::Reset(size_t expected) {
  const size_t slots = std::bit_ceil(std::max<size_t>(1024, expected * 2));
  slots_.assign(slots, Slot{});
  size_ = 0;
  mask_ = slots - 1;
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));
}

WordTable::Slot* WordTable::Insert(const WordKey& key, const char* bytes, Slot* slot) {
  if (size_ * 3 >= slots_.size() * 2) {  // at most two thirds full
    Grow();
    slot = const_cast<Slot*>(Probe(key, bytes));
  }
  slot->a = key.a;
  slot->b = key.b;
  slot->size = key.size;
  if (key.size > 16) {
    slot->b = long_bytes_.size();
    long_bytes_.append(bytes, key.size);
  }
  ++size_;
  return slot;
}

void WordTable::Grow() {
  std::vector<Slot> old = std::exchange(slots_, {});
  Reset(old.size());  // twice as many slots
  for (const Slot& slot : old) {
    if (slot.size == 0) continue;
    size_t i = HashOf(slot) >> shift_;
    while (slots_[i].size != 0) i = (i + 1) & mask_;
    slots_[i] = slot;
    ++size_;
  }
}

void WordTable::Forget(uint64_t value) {
  WordTable kept(size_ / 2);
  for (const Slot& slot : slots_) {
    if (slot.size == 0 || slot.value <= value) continue;
    const std::string_view word = WordOf(slot);
    WordKey key{slot.a, slot.b, HashOf(slot), slot.size};
    bool added = false;
    kept.Add(key, word.data(), &added)->value = slot.value;
  }
  *this = std::move(kept);
}

}  // namespace shoal::data
