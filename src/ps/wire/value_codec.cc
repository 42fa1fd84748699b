// Conversions of rows, compiled once for every instruction set that Highway knows.
#include "ps/wire/value_codec.h"

#include <bit>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ps/wire/value_codec.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::ps {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using U32 = hn::RebindToUnsigned<D>;

// The upper halves of floats, rounded to nearest even; finite ones stop at the largest bf16.
template <class D>
HWY_INLINE hn::Vec<U32<D>> ToBf16(D, hn::Vec<D> x) {
  const U32<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto sign = hn::And(bits, hn::Set(du, 0x80000000u));
  const auto magnitude = hn::AndNot(sign, bits);
  const auto infinity = hn::Set(du, 0x7f800000u);
  const auto odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(magnitude, hn::Set(du, 0x7fffu)), odd));
  const auto finite = hn::Min(rounded, hn::Set(du, 0x7f7fu));
  const auto special = hn::Or(hn::ShiftRight<16>(magnitude),
                              hn::IfThenElseZero(hn::Gt(magnitude, infinity), hn::Set(du, 0x40u)));
  const auto low = hn::IfThenElse(hn::Lt(magnitude, infinity), finite, special);
  return hn::Or(low, hn::ShiftRight<16>(sign));
}

// Runs body(tag, first) over [0, dim): whole vectors, then one element at a time.
template <class Body>
HWY_INLINE void ForElements(size_t dim, const Body& body) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= dim; i += hn::Lanes(d)) body(d, i);
  for (; i < dim; ++i) body(one, i);
}

HWY_INLINE void EncodeBf16(const float* row, size_t dim, char* to) {
  ForElements(dim, [&](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<uint16_t, decltype(d)> d16;
    hn::StoreU(hn::TruncateTo(d16, ToBf16(d, hn::LoadU(d, row + i))), d16,
               reinterpret_cast<uint16_t*>(to) + i);
  });
}

HWY_INLINE void DecodeBf16(const char* from, size_t dim, float* row) {
  ForElements(dim, [&](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<uint16_t, decltype(d)> d16;
    const U32<decltype(d)> du;
    const auto half = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from) + i);
    hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, half))), d, row + i);
  });
}

// The bits of the largest magnitude: of a NaN if there is one.
HWY_INLINE uint32_t LargestBits(const float* row, size_t dim) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto mask = hn::Set(du, 0x7fffffffu);
  auto most = hn::Zero(du);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= dim; i += hn::Lanes(d)) {
    most = hn::Max(most, hn::And(hn::BitCast(du, hn::LoadU(d, row + i)), mask));
  }
  uint32_t largest = hn::GetLane(hn::MaxOfLanes(du, most));
  for (; i < dim; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, row + i, sizeof bits);
    largest = HWY_MAX(largest, bits & 0x7fffffffu);
  }
  return largest;
}

// 1/127 of the largest magnitude as a bf16, rounded up so that no code exceeds 127.
HWY_INLINE uint16_t ScaleOf(uint32_t largest) {
  constexpr uint32_t kInfinity = 0x7f800000u, kTiny = 0x07000000u /* 2^-113 */;
  constexpr uint32_t kMost = 0x7f61b1e5u /* 3e38 */;
  if (largest >= kInfinity) return 0x7fc0;
  if (largest < kTiny) return 0;
  const float per_code = std::bit_cast<float>(HWY_MIN(largest, kMost)) / 127.0f;
  return static_cast<uint16_t>((std::bit_cast<uint32_t>(per_code) + 0xffffu) >> 16);
}

HWY_INLINE float FromBf16(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

HWY_INLINE void EncodeInt8(const float* row, size_t dim, char* to) {
  const uint16_t scale = ScaleOf(LargestBits(row, dim));
  std::memcpy(to, &scale, sizeof scale);
  int8_t* const codes = reinterpret_cast<int8_t*>(to + sizeof scale);
  if (scale == 0 || scale == 0x7fc0) {
    std::memset(codes, scale == 0 ? 0 : 1, dim);
    return;
  }
  const float inverse = 1.0f / FromBf16(scale);
  ForElements(dim, [&](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(d)> d8;
    const auto x = hn::Mul(hn::LoadU(d, row + i), hn::Set(d, inverse));
    const auto most = hn::Set(d, 127.0f);
    const auto code = hn::NearestInt(hn::Min(hn::Max(x, hn::Neg(most)), most));
    hn::StoreU(hn::DemoteTo(d8, code), d8, codes + i);
  });
}

HWY_INLINE void DecodeInt8(const char* from, size_t dim, float* row) {
  uint16_t half = 0;
  std::memcpy(&half, from, sizeof half);
  const float scale = FromBf16(half);
  const int8_t* const codes = reinterpret_cast<const int8_t*>(from + sizeof half);
  ForElements(dim, [&](auto d, size_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(d)> d8;
    const hn::RebindToSigned<decltype(d)> d32;
    const auto code = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, codes + i)));
    hn::StoreU(hn::Mul(code, hn::Set(d, scale)), d, row + i);
  });
}

// In order and without a call: docs/adr/0045-ordered-row-gather.md.
HWY_INLINE void CopyF32(const float* from, size_t dim, float* to) {
  ForElements(dim,
              [&](auto d, size_t i) HWY_ATTR { hn::StoreU(hn::LoadU(d, from + i), d, to + i); });
}

void EncodeTarget(ValueType type, const float* const* rows, size_t n, size_t dim, char* to) {
  const size_t bytes = WireRowBytes(type, dim);
  for (size_t i = 0; i < n; ++i, to += bytes) {
    if (type == ValueType::kBf16) {
      EncodeBf16(rows[i], dim, to);
    } else if (type == ValueType::kInt8) {
      EncodeInt8(rows[i], dim, to);
    } else {
      CopyF32(rows[i], dim, reinterpret_cast<float*>(to));
    }
  }
}

void DecodeTarget(ValueType type, const char* from, size_t n, size_t dim, float* const* rows) {
  const size_t bytes = WireRowBytes(type, dim);
  for (size_t i = 0; i < n; ++i, from += bytes) {
    if (type == ValueType::kBf16) {
      DecodeBf16(from, dim, rows[i]);
    } else if (type == ValueType::kInt8) {
      DecodeInt8(from, dim, rows[i]);
    } else {
      CopyF32(reinterpret_cast<const float*>(from), dim, rows[i]);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal::ps
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::ps {

HWY_EXPORT(EncodeTarget);
HWY_EXPORT(DecodeTarget);

void EncodeRows(ValueType type, const float* const* rows, size_t n, size_t dim, char* to) {
  HWY_DYNAMIC_DISPATCH(EncodeTarget)(type, rows, n, dim, to);
}

void DecodeRows(ValueType type, const char* from, size_t n, size_t dim, float* const* rows) {
  HWY_DYNAMIC_DISPATCH(DecodeTarget)(type, from, n, dim, rows);
}

}  // namespace shoal::ps
#endif  // HWY_ONCE
