// A digest of a sequence of words that can be combined from the digests of its parts: the workers'
// digests of their shards give the digest of the whole text for any number of shards.
//
// The value is the polynomial Σ h(wᵢ)·Bⁿ⁻¹⁻ⁱ modulo 2⁶¹−1 over the n words, where h is a 60-bit
// hash of a word's bytes. Line ends are not included, because a cut may be inside of a line. It
// detects different data; it is not cryptographic.
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
  // Appends the sequence `next` to this one. O(log length).
  void Append(const SequenceDigest& next);

  uint64_t value() const { return value_; }
  uint64_t length() const { return length_; }
  // From encoded values; value < 2⁶¹−1.
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
