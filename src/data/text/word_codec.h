// The common parts of the two encoded word lists: magic, version, checksum, and the rules for
// words. Private to this room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "data/text/tokenizer.h"

namespace shoal::data {

// Checks magic, version and checksum, and gives a reader of the bytes between them. DataLoss
// otherwise.
inline Result<ByteReader> OpenWordBytes(std::string_view bytes, uint32_t magic, uint32_t version,
                                        std::string_view what) {
  const std::string name(what);
  uint32_t got[2] = {};
  uint32_t sum = 0;
  if (bytes.size() < sizeof got + sizeof sum) return DataLoss(name + " are cut off");
  std::memcpy(got, bytes.data(), sizeof got);
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  if (got[0] != magic) return DataLoss("these bytes are no " + name);
  if (got[1] != version) {
    return DataLoss(name + " are of version " + std::to_string(got[1]) + ", expected " +
                    std::to_string(version));
  }
  bytes.remove_suffix(sizeof sum);
  if (Crc32c(bytes.data(), bytes.size()) != sum) {
    return DataLoss(name + " are damaged: the checksum does not match");
  }
  return ByteReader(bytes.substr(sizeof got));
}

inline Status CheckWord(std::string_view word) {
  if (word.empty() || word.size() > kMaxWordBytes) {
    return DataLoss("a word has " + std::to_string(word.size()) + " bytes, expected 1 to " +
                    std::to_string(kMaxWordBytes));
  }
  for (const char c : word) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0') {
      return DataLoss("a word holds whitespace or NUL");
    }
  }
  return Status::Ok();
}

}  // namespace shoal::data
