#include "base/base64.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace shoal {
namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrlLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<int8_t, 256> Values() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kLetters.size(); ++i)
    values[static_cast<unsigned char>(kLetters[i])] = static_cast<int8_t>(i);
  return values;
}

Status NotBase64() { return InvalidArgument("it is not base64"); }

}  // namespace

std::string EncodeBase64(std::string_view bytes, Base64 alphabet) {
  const std::string_view letters = alphabet == Base64::kUrl ? kUrlLetters : kLetters;
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j)
      three = three << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? letters[three >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

Result<std::string> DecodeBase64(std::string_view text) {
  static constexpr std::array<int8_t, 256> kValues = Values();
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  size_t letters = 0;
  size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0 || padding > 0) return NotBase64();
    ++letters;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xffffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  const bool padded = padding == 0 || (letters + padding) % 4 == 0;
  if (letters % 4 == 1 || padding > 2 || !padded) return NotBase64();
  return bytes;
}

}  // namespace shoal
