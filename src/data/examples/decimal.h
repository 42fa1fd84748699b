// Parses decimal numbers in text that ends with a byte outside of any number, so that no bounds are
// checked.
#pragma once

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace shoal::data {

// Parses up to seven decimal digits; returns their number, or 8 (and no value) for eight or more.
// Reads 8 bytes. After Lemire, "Quickly parsing eight digits" (2022).
inline int ParseShortDigits(const char* text, uint64_t* value) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, text, sizeof bytes);
  const uint64_t digits = bytes ^ 0x3030'3030'3030'3030;  // a digit's byte is 0…9 now
  const uint64_t others = ((digits & 0x7f7f'7f7f'7f7f'7f7f) + 0x7676'7676'7676'7676) | digits;
  const uint64_t stops = others & 0x8080'8080'8080'8080;
  if (stops == 0) return 8;
  const int count = std::countr_zero(stops) / 8;
  if (count == 0) return 0;
  uint64_t packed = digits << (64 - 8 * count);  // leading zeros in front
  packed = (packed * 10) + (packed >> 8);
  *value = (((packed & 0x0000'00ff'0000'00ff) * 0x000f'4240'0000'0064) +
            (((packed >> 16) & 0x0000'00ff'0000'00ff) * 0x0000'2710'0000'0001)) >>
           32;
  return count;
}

// Parses all digits at `text` (at most 20, up to 2^64 − 1); returns the end, or null.
inline const char* ParseDigits(const char* text, uint64_t* value) {
  const int count = ParseShortDigits(text, value);
  if (count == 0) return nullptr;
  if (count < 8) return text + count;
  const char* end = text;
  while (*end >= '0' && *end <= '9' && end - text <= 20) ++end;
  const auto [stop, error] = std::from_chars(text, end, *value);
  return error == std::errc() && stop == end ? end : nullptr;
}

// Parses a finite decimal number ("1", "+0.25", "-1e-3") that ends before `limit`; returns its end,
// or null.
inline const char* ParseReal(const char* text, const char* limit, float* value) {
  if (*text == '+') {
    ++text;
    if (*text == '-' || *text == '+') return nullptr;
  }
  const auto [stop, error] = std::from_chars(text, limit, *value);
  if (error == std::errc()) return std::isfinite(*value) ? stop : nullptr;
  if (error != std::errc::result_out_of_range) return nullptr;
  // Underflow gives 0; overflow is refused.
  double wide = 0;
  const auto [wide_stop, wide_error] = std::from_chars(text, limit, wide);
  if (wide_error != std::errc() || std::abs(wide) > 1) return nullptr;
  *value = 0;
  return wide_stop;
}

}  // namespace shoal::data
