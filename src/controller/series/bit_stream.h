// Bits in a string, the highest bit of each byte first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::controller {

// Appends to a string that it does not own. Finish pads the last byte with zero bits.
class BitWriter {
 public:
  explicit BitWriter(std::string* out) : out_(out) {}
  // The low `count` bits of `bits`, 0 to 64.
  void Put(uint64_t bits, int count) {
    if (count > 32) {
      PutUpTo32(bits >> 32, count - 32);
      count = 32;
    }
    PutUpTo32(bits, count);
  }
  void Finish() {
    if (used_ > 0) *out_ += static_cast<char>(held_ << (8 - used_));
    held_ = 0;
    used_ = 0;
  }

 private:
  void PutUpTo32(uint64_t bits, int count) {
    held_ = held_ << count | (bits & ((uint64_t{1} << count) - 1));
    for (used_ += count; used_ >= 8; used_ -= 8) *out_ += static_cast<char>(held_ >> (used_ - 8));
    held_ &= (uint64_t{1} << used_) - 1;
  }

  std::string* const out_;
  uint64_t held_ = 0;
  int used_ = 0;  // bits of held_, fewer than 8 between calls
};

// Reads past the end give zeros and set `overrun`, which the caller checks.
class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}
  // 0 to 64 bits.
  uint64_t Get(int count) {
    uint64_t got = 0;
    for (int left = count; left > 0;) {
      if (at_ >= bytes_.size()) {
        overrun_ = true;
        return 0;
      }
      const int here = 8 - bit_;
      const int take = left < here ? left : here;
      const unsigned byte = static_cast<uint8_t>(bytes_[at_]);
      got = got << take | ((byte >> (here - take)) & ((1U << take) - 1));
      left -= take;
      bit_ += take;
      if (bit_ == 8) {
        bit_ = 0;
        ++at_;
      }
    }
    return got;
  }
  bool GetBit() { return Get(1) != 0; }
  bool overrun() const { return overrun_; }

 private:
  const std::string_view bytes_;
  size_t at_ = 0;
  int bit_ = 0;
  bool overrun_ = false;
};

}  // namespace shoal::controller
