#include "data/catalog/mask.h"

#include <array>
#include <charconv>

#include "base/id.h"
#include "base/utf8.h"

namespace shoal::data {
namespace {

constexpr int kMaxLength = 1000;
constexpr size_t kHashDigits = 32;
constexpr std::string_view kTruncate = "truncate:";
constexpr std::array<std::string_view, 5> kNames = {"none", "truncate", "redact", "hash", "null"};

bool Continues(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

std::string Truncated(std::string_view value, int characters) {
  size_t end = 0;
  for (; end < value.size(); ++end) {
    if (Continues(value[end])) continue;
    if (characters-- == 0) break;
  }
  return std::string(value.substr(0, end));
}

std::string Redacted(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (Continues(c)) continue;
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
    const bool digit = c >= '0' && c <= '9';
    text += letter ? 'x' : (digit ? 'n' : c);
  }
  return text;
}

}  // namespace

Result<Mask> ParseMask(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    const auto kind = static_cast<MaskKind>(i);
    if (text == kNames[i] && kind != MaskKind::kTruncate) return Mask{kind, 0};
  }
  if (text.starts_with(kTruncate)) {
    const std::string_view digits = text.substr(kTruncate.size());
    int length = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), length);
    if (parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() && length >= 0 &&
        length <= kMaxLength)
      return Mask{MaskKind::kTruncate, length};
  }
  return InvalidArgument(
      "mask: got " + EscapedUtf8(std::string(text.substr(0, 40))) +
      ", expected null, hash, redact, truncate:N with N from 0 to 1000, or none");
}

std::string TextOf(const Mask& mask) {
  if (mask.kind == MaskKind::kTruncate) return std::string(kTruncate) + std::to_string(mask.length);
  return std::string(kNames[static_cast<size_t>(mask.kind)]);
}

const Mask& Stronger(const Mask& a, const Mask& b) { return a.Hides(b) ? a : b; }

std::string MaskText(const Mask& mask, std::string_view key, std::string_view value) {
  switch (mask.kind) {
    case MaskKind::kTruncate:
      return Truncated(value, mask.length);
    case MaskKind::kRedact:
      return Redacted(value);
    case MaskKind::kHash:
      return HmacSha256Hex(key, value).substr(0, kHashDigits);
    case MaskKind::kNull:
      return "";
    case MaskKind::kNone:
      break;
  }
  return std::string(value);
}

}  // namespace shoal::data
