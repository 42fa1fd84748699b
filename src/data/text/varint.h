// Variable-length numbers (LEB128: seven bits a byte, lowest first) for encoded word lists. Private
// to this room.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace shoal::data {

inline void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

inline Status GetVarint(ByteReader* reader, uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = 0;
    TRY(reader->Get(&byte));
    if (shift == 63 && byte > 1) break;
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return Status::Ok();
  }
  return DataLoss("a number has more than 64 bits");
}

}  // namespace shoal::data
