// Sizes and durations in the notation of job files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::job {

// Bytes of "64Mi", "2Gi", "512M", "1.5G", "1048576": a number and an optional unit, K M G T (powers
// of 1000) or Ki Mi Gi Ti (of 1024), optionally followed by B. Nothing for bad syntax or a value
// beyond 2^62.
std::optional<int64_t> ParseSize(std::string_view text);

// Milliseconds of "100ms", "60s", "5m", "4h", "2d", "1h30m", "0". A number without a unit is
// refused, except 0. Nothing for bad syntax or more than a thousand years.
std::optional<int64_t> ParseDurationMs(std::string_view text);

// The inverse, in the largest unit that divides the value: "2Gi", "1500", "90s", "1h". For values
// of at least 0; parsing the text gives the same value.
std::string SizeText(int64_t bytes);
std::string DurationText(int64_t ms);

// A decimal number. Refuses nan, inf, hexadecimal numbers and spaces.
std::optional<double> ParseNumber(std::string_view text);
std::optional<int64_t> ParseInteger(std::string_view text);

}  // namespace shoal::job
