// A digest of a sequence of words that can be put together from digests of its parts: what workers
// report about their shards gives the digest of the whole text, whatever the number of shards.
//
// The value is the polynomial Σ h(wᵢ)·Bⁿ⁻¹⁻ⁱ modulo 2⁶¹−1 over the n words, h being a 60-bit hash
// of a word's bytes. Line ends are not part of it, for a cut may fall into a line. It tells
// different data apart; it is no defence against somebody who wants two texts to look alike.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::data {

__extension__ using Wide = unsigned __int128;

class SequenceDigest {
 public:
  void Add(uint64_t hash) {
    value_ = Reduce(static_cast<Wide>(value_) * kBase + (hash >> 4));
    ++length_;
  }
  // This sequence followed by `next`. O(log length).
  void Append(const SequenceDigest& next);

  uint64_t value() const { return value_; }
  uint64_t length() const { return length_; }
  // From the wire: value < 2⁶¹−1.
  static SequenceDigest Of(uint64_t value, uint64_t length);
  // "shoal61:0123456789abcdef:17005207": value and number of words.
  std::string ToString() const;

 private:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  static constexpr uint64_t kBase = 0x13a5'6c8f'27d4'e91b;

  static uint64_t Reduce(Wide x) {
    uint64_t y = static_cast<uint64_t>(x & kPrime) + static_cast<uint64_t>(x >> 61);
    if (y >= kPrime) y -= kPrime;
    return y >= kPrime ? y - kPrime : y;
  }

  uint64_t value_ = 0;
  uint64_t length_ = 0;
};

}  // namespace shoal::data
