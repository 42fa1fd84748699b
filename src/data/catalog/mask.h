// What stands in place of a value that may be used but not seen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::data {

// From weak to strong: of two masks the later one hides more.
enum class MaskKind : uint8_t {
  kNone,
  kTruncate,  // the first characters
  kRedact,    // letters as x, digits as n; length and punctuation stay
  kHash,      // 32 hex digits of HMAC-SHA256 with the catalogue's key: equal values stay equal
  kNull,      // no value
};

struct Mask {
  MaskKind kind = MaskKind::kNone;
  int length = 0;  // of kTruncate: 0…1000 characters

  bool operator==(const Mask&) const = default;
  // Whether it hides more than `other`, or the same.
  bool Hides(const Mask& other) const {
    if (kind != other.kind) return kind > other.kind;
    return length <= other.length;
  }
};

// "none", "null", "hash", "redact", "truncate:N". InvalidArgument lists them.
Result<Mask> ParseMask(std::string_view text);
std::string TextOf(const Mask& mask);
const Mask& Stronger(const Mask& a, const Mask& b);

// The masked value; nullopt-like empty text for kNull, which the caller writes as its format's
// null. `key`: of kHash. A text that is not UTF-8 is cut and redacted by bytes.
std::string MaskText(const Mask& mask, std::string_view key, std::string_view value);

}  // namespace shoal::data
