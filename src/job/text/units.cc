#include "job/text/units.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

namespace shoal::job {
namespace {

// Length of the number at the beginning of `text`: digits with an optional point.
size_t NumberLength(std::string_view text) {
  size_t end = 0;
  bool point = false;
  while (end < text.size()) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[end])) != 0;
    if (!digit && (text[end] != '.' || point)) break;
    point = point || !digit;
    ++end;
  }
  return end;
}

// Exact for whole numbers, otherwise rounded to the nearest unit. Nothing beyond `most`.
std::optional<int64_t> Scale(std::string_view number, int64_t factor, int64_t most) {
  if (const auto whole = ParseInteger(number)) {
    if (*whole < 0 || *whole > most / factor) return std::nullopt;
    return *whole * factor;
  }
  const auto value = ParseNumber(number);
  if (!value) return std::nullopt;
  const double scaled = std::round(*value * static_cast<double>(factor));
  if (!(scaled >= 0 && scaled <= static_cast<double>(most))) return std::nullopt;
  return static_cast<int64_t>(scaled);
}

int64_t SizeFactor(std::string_view unit) {
  if (unit.size() > 1 && unit.back() == 'B') unit.remove_suffix(1);
  if (unit.empty() || unit == "B") return 1;
  constexpr std::string_view kLetters = "KMGT";
  const size_t power = unit == "k" ? 0 : kLetters.find(unit[0]);
  if (power == std::string_view::npos) return 0;
  const bool binary = unit.size() == 2 && unit[1] == 'i';
  if (unit.size() > 1 && !binary) return 0;
  int64_t factor = 1;
  for (size_t i = 0; i <= power; ++i) factor *= binary ? 1024 : 1000;
  return factor;
}

int64_t DurationFactor(std::string_view unit) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) return factor;
  }
  return 0;
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = negative ? text.substr(1) : text;
  if (digits.empty() ||
      (std::isdigit(static_cast<unsigned char>(digits[0])) == 0 && digits[0] != '.')) {
    return std::nullopt;
  }
  double value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return negative ? -value : value;
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<int64_t> ParseSize(std::string_view text) {
  const size_t length = NumberLength(text);
  const int64_t factor = SizeFactor(text.substr(length));
  if (length == 0 || factor == 0) return std::nullopt;
  return Scale(text.substr(0, length), factor, int64_t{1} << 62);
}

std::optional<int64_t> ParseDurationMs(std::string_view text) {
  if (text == "0") return 0;
  constexpr int64_t kMost = int64_t{1000} * 366 * 86'400'000;
  int64_t total = 0;
  if (text.empty() || text.size() > 64) return std::nullopt;
  while (!text.empty()) {
    const size_t length = NumberLength(text);
    size_t end = length;
    while (end < text.size() && std::isalpha(static_cast<unsigned char>(text[end])) != 0) ++end;
    const int64_t factor = DurationFactor(text.substr(length, end - length));
    if (length == 0 || factor == 0) return std::nullopt;
    const auto part = Scale(text.substr(0, length), factor, kMost);
    if (!part || *part > kMost - total) return std::nullopt;
    total += *part;
    text.remove_prefix(end);
  }
  return total;
}

std::string SizeText(int64_t bytes) {
  constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti"};
  size_t unit = 0;
  while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

std::string DurationText(int64_t ms) {
  constexpr std::pair<const char*, int64_t> kUnits[] = {
      {"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}};
  if (ms == 0) return "0";
  for (const auto& [unit, factor] : kUnits) {
    if (ms % factor == 0) return std::to_string(ms / factor) + unit;
  }
  return std::to_string(ms) + "ms";
}

}  // namespace shoal::job
