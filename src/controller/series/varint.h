// Integers of variable length (LEB128) and signed ones in zigzag form, as series files have them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::controller {

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (0 - (value & 1)));
}

// Seven bits a byte, low ones first; the high bit of a byte says that another one follows.
inline void PutVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    *out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out += static_cast<char>(value);
}

// Removes one from the front; false if the bytes end within it or it has more than 64 bits.
inline bool GetVarint(std::string_view* bytes, uint64_t* value) {
  uint64_t got = 0;
  for (size_t i = 0; i < bytes->size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>((*bytes)[i]);
    if (i == 9 && byte > 1) return false;
    got |= uint64_t{byte & 0x7fU} << (7 * i);
    if ((byte & 0x80) != 0) continue;
    *value = got;
    bytes->remove_prefix(i + 1);
    return true;
  }
  return false;
}

}  // namespace shoal::controller
