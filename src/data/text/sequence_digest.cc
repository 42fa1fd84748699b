#include "data/text/sequence_digest.h"

#include <fmt/format.h>

namespace shoal::data {

void SequenceDigest::Append(const SequenceDigest& next) {
  // value · B^length(next) + next.value, the power by squaring.
  uint64_t power = 1;
  uint64_t square = kBase;
  for (uint64_t n = next.length_; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = Reduce(static_cast<Wide>(power) * square);
    square = Reduce(static_cast<Wide>(square) * square);
  }
  value_ = Reduce(static_cast<Wide>(value_) * power + next.value_);
  length_ += next.length_;
}

SequenceDigest SequenceDigest::Of(uint64_t value, uint64_t length) {
  SequenceDigest digest;
  digest.value_ = value % kPrime;
  digest.length_ = length;
  return digest;
}

std::string SequenceDigest::ToString() const {
  return fmt::format("shoal61:{:016x}:{}", value_, length_);
}

}  // namespace shoal::data
