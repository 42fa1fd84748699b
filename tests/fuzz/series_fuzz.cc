// Fuzz entry: files of series. Whatever the bytes, decoders return points that can be written and
// read again, or an error, and of a log a prefix of whole blocks is read.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "controller/series/chunk.h"
#include "controller/series/segment.h"
#include "controller/series/series_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace shoal::controller;  // NOLINT: a program of one function
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto points = DecodePoints(text); points.ok()) {
    const auto again = DecodePoints(EncodePoints(*points));
    if (!again.ok() || *again != *points) std::abort();
  }
  for (const int64_t period : {10'000, 600'000}) {
    const auto buckets = DecodeBuckets(text, period);
    if (buckets.ok() && !DecodeBuckets(EncodeBuckets(*buckets, period), period).ok()) std::abort();
  }
  (void)ParseSegmentIndex(text, 1000);
  size_t names = 0;
  const SeriesLogVisitor visitor{[&](std::string_view name) {
                                   if (!IsSeriesName(name)) std::abort();
                                   ++names;
                                 },
                                 [&](uint32_t number, const SeriesPoint&) {
                                   if (number >= names) std::abort();
                                 }};
  const auto good = ParseSeriesLog(text, visitor);
  if (good.ok() && *good > size) std::abort();
  return 0;
}
