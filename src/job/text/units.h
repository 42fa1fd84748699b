// Sizes and times as people write them in job files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::job {

// "64Mi", "2Gi", "512M", "1.5G", "1048576": a number, and K M G T (powers of 1000) or Ki Mi Gi Ti
// (of 1024), with or without a B at the end. Nothing on bad syntax or beyond 2^62.
std::optional<int64_t> ParseSize(std::string_view text);

// "100ms", "60s", "5m", "4h", "2d", "1h30m", "0": milliseconds. A number without a unit is refused,
// but for 0. Nothing on bad syntax or beyond a thousand years.
std::optional<int64_t> ParseDurationMs(std::string_view text);

// The same with the largest unit that keeps it whole: "2Gi", "1500", "90s", "1h". For amounts of at
// least 0; what was written is read back exactly.
std::string SizeText(int64_t bytes);
std::string DurationText(int64_t ms);

// A decimal number without nan, inf, hexadecimal or spaces.
std::optional<double> ParseNumber(std::string_view text);
std::optional<int64_t> ParseInteger(std::string_view text);

}  // namespace shoal::job
