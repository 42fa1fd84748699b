// Compressed points of one series, as segments store them (docs/formats/series.md): times as
// differences of differences, values as the exclusive or with the value before, after T. Pelkonen
// et al., "Gorilla: A Fast, Scalable, In-Memory Time Series Database", VLDB 2015.
//
// A point takes 2 bits if it comes as regularly as the one before and has the same value, and about
// 8 bytes if all digits of its value are noise.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "controller/series/series_point.h"

namespace shoal::controller {

// Exact: the points read again are equal. Values must be finite, times within ±kMaxSeriesTime, in
// any order.
std::string EncodePoints(std::span<const SeriesPoint> points);
// DataLoss for bytes that EncodePoints does not write. Memory: at most 128 bytes for each byte.
Result<std::vector<SeriesPoint>> DecodePoints(std::string_view bytes);

// Buckets of `period` ms, whose times are multiples of it. Values are rounded to 24 significant
// bits (float), beyond its range to its largest number.
std::string EncodeBuckets(std::span<const SeriesBucket> buckets, int64_t period);
Result<std::vector<SeriesBucket>> DecodeBuckets(std::string_view bytes, int64_t period);

}  // namespace shoal::controller
