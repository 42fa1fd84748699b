#include "controller/series/chunk.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>

#include "controller/series/bit_stream.h"
#include "controller/series/varint.h"

namespace shoal::controller {
namespace {

// How a difference of differences is written: `ones` bits 1 and, except in the last row, a 0, then
// the number in two's complement.
struct TimeCode {
  int ones;
  int bits;
};
constexpr TimeCode kTimeCodes[] = {{1, 7}, {2, 9}, {3, 12}, {4, 20}, {5, 64}};
constexpr int kMostOnes = 5;

// Times, or numbers of periods. Arithmetic modulo 2^64, so that no bytes overflow it.
class TimeEncoder {
 public:
  void Put(int64_t time, BitWriter* out) {
    const uint64_t delta = static_cast<uint64_t>(time) - last_;
    const auto change = static_cast<int64_t>(delta - delta_);
    last_ = static_cast<uint64_t>(time);
    delta_ = delta;
    if (change == 0) return out->Put(0, 1);
    for (const TimeCode& code : kTimeCodes) {
      const int64_t limit = code.bits == 64 ? INT64_MAX : (int64_t{1} << (code.bits - 1)) - 1;
      if (code.bits < 64 && (change > limit || change < -limit - 1)) continue;
      out->Put((1U << code.ones) - 1, code.ones);
      if (code.ones < kMostOnes) out->Put(0, 1);
      return out->Put(static_cast<uint64_t>(change), code.bits);
    }
  }
  explicit TimeEncoder(int64_t first) : last_(static_cast<uint64_t>(first)) {}

 private:
  uint64_t last_;
  uint64_t delta_ = 0;
};

class TimeDecoder {
 public:
  explicit TimeDecoder(int64_t first) : last_(static_cast<uint64_t>(first)) {}
  int64_t Get(BitReader* in) {
    int ones = 0;
    while (ones < kMostOnes && in->GetBit()) ++ones;
    if (ones > 0) {
      const int bits = kTimeCodes[ones - 1].bits;
      uint64_t change = in->Get(bits);
      if (bits < 64 && (change >> (bits - 1)) != 0) change |= ~uint64_t{0} << bits;
      delta_ += change;
    }
    last_ += delta_;
    return static_cast<int64_t>(last_);
  }

 private:
  uint64_t last_;
  uint64_t delta_ = 0;
};

// Values of kBits bits. 0: the same as before. 10: the differing bits lie where they lay before.
// 11: their place first (leading zeros, number of bits).
template <int kBits>
class ValueEncoder {
 public:
  void Put(uint64_t value, BitWriter* out) {
    const uint64_t change = value ^ last_;
    last_ = value;
    if (change == 0) return out->Put(0, 1);
    const int leading = std::min(std::countl_zero(change) - (64 - kBits), 31);
    const int trailing = std::countr_zero(change);
    if (length_ > 0 && leading >= leading_ && trailing >= kBits - leading_ - length_) {
      out->Put(0b10, 2);
      return out->Put(change >> (kBits - leading_ - length_), length_);
    }
    leading_ = leading;
    length_ = kBits - leading - trailing;
    out->Put(0b11, 2);
    out->Put(static_cast<uint64_t>(leading_), 5);
    out->Put(static_cast<uint64_t>(length_ - 1), 6);
    out->Put(change >> trailing, length_);
  }

 private:
  uint64_t last_ = 0;
  int leading_ = 0;
  int length_ = 0;
};

template <int kBits>
class ValueDecoder {
 public:
  // False for a place outside of the value.
  bool Get(BitReader* in, uint64_t* value) {
    if (in->GetBit()) {
      if (in->GetBit()) {
        leading_ = static_cast<int>(in->Get(5));
        length_ = static_cast<int>(in->Get(6)) + 1;
      }
      if (length_ == 0 || leading_ + length_ > kBits) return false;
      last_ ^= in->Get(length_) << (kBits - leading_ - length_);
    }
    *value = last_;
    return true;
  }

 private:
  uint64_t last_ = 0;
  int leading_ = 0;
  int length_ = 0;
};

Status Damaged() { return DataLoss("the chunk of a series is damaged"); }

bool InTime(int64_t ms) { return ms >= -kMaxSeriesTime && ms <= kMaxSeriesTime; }

float AsFloat(double value) {
  return static_cast<float>(
      std::clamp(value, -static_cast<double>(FLT_MAX), static_cast<double>(FLT_MAX)));
}

// Each value takes a bit at least, so that bytes bound the number.
Status GetHead(std::string_view* bytes, size_t bits_each, uint64_t* count, int64_t* first) {
  uint64_t zigzag = 0;
  if (!GetVarint(bytes, count) || !GetVarint(bytes, &zigzag)) return Damaged();
  if (*count > bytes->size() * 8 / bits_each) return Damaged();
  *first = UnZigZag(zigzag);
  return Status::Ok();
}

}  // namespace

std::string EncodePoints(std::span<const SeriesPoint> points) {
  std::string out;
  const int64_t first = points.empty() ? 0 : points.front().ms;
  PutVarint(points.size(), &out);
  PutVarint(ZigZag(first), &out);
  BitWriter bits(&out);
  TimeEncoder times(first);
  ValueEncoder<64> values;
  for (const SeriesPoint& point : points) {
    times.Put(point.ms, &bits);
    values.Put(std::bit_cast<uint64_t>(point.value), &bits);
  }
  bits.Finish();
  return out;
}

Result<std::vector<SeriesPoint>> DecodePoints(std::string_view bytes) {
  uint64_t count = 0;
  int64_t first = 0;
  TRY(GetHead(&bytes, 2, &count, &first));
  std::vector<SeriesPoint> points;
  points.reserve(count);
  BitReader bits(bytes);
  TimeDecoder times(first);
  ValueDecoder<64> values;
  for (uint64_t i = 0; i < count; ++i) {
    SeriesPoint point;
    uint64_t value = 0;
    point.ms = times.Get(&bits);
    if (!values.Get(&bits, &value) || bits.overrun() || !InTime(point.ms)) return Damaged();
    point.value = std::bit_cast<double>(value);
    if (!std::isfinite(point.value)) return Damaged();
    points.push_back(point);
  }
  return points;
}

std::string EncodeBuckets(std::span<const SeriesBucket> buckets, int64_t period) {
  std::string out;
  const int64_t first = buckets.empty() ? 0 : buckets.front().ms / period;
  PutVarint(buckets.size(), &out);
  PutVarint(ZigZag(first), &out);
  BitWriter bits(&out);
  TimeEncoder times(first);
  ValueEncoder<32> counts, means, mins, maxs;
  const auto float_bits = [](double v) { return uint64_t{std::bit_cast<uint32_t>(AsFloat(v))}; };
  for (const SeriesBucket& bucket : buckets) {
    times.Put(bucket.ms / period, &bits);
    counts.Put(bucket.count, &bits);
    means.Put(float_bits(bucket.mean), &bits);
    if (bucket.count == 1) continue;
    mins.Put(float_bits(bucket.min), &bits);
    maxs.Put(float_bits(bucket.max), &bits);
  }
  bits.Finish();
  return out;
}

Result<std::vector<SeriesBucket>> DecodeBuckets(std::string_view bytes, int64_t period) {
  uint64_t count = 0;
  int64_t first = 0;
  TRY(GetHead(&bytes, 3, &count, &first));
  std::vector<SeriesBucket> buckets;
  buckets.reserve(count);
  BitReader bits(bytes);
  TimeDecoder times(first);
  ValueDecoder<32> counts, means, mins, maxs;
  const auto number = [](uint64_t v) {
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(v)));
  };
  for (uint64_t i = 0; i < count; ++i) {
    const int64_t time = times.Get(&bits);
    if (time < -kMaxSeriesTime / period || time > kMaxSeriesTime / period) return Damaged();
    uint64_t many = 0, mean = 0, min = 0, max = 0;
    if (!counts.Get(&bits, &many) || !means.Get(&bits, &mean)) return Damaged();
    const bool one = many == 1;
    if (!one && (!mins.Get(&bits, &min) || !maxs.Get(&bits, &max))) return Damaged();
    SeriesBucket bucket{time * period, static_cast<uint32_t>(many), number(one ? mean : min),
                        number(one ? mean : max), number(mean)};
    const bool finite =
        std::isfinite(bucket.min) && std::isfinite(bucket.max) && std::isfinite(bucket.mean);
    if (bits.overrun() || many == 0 || !finite || bucket.min > bucket.max) return Damaged();
    buckets.push_back(bucket);
  }
  return buckets;
}

}  // namespace shoal::controller
