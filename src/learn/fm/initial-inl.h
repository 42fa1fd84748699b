// V₀ in the lanes of a vector, for every instruction set: included repeatedly by files that
// foreach_target.h compiles (learn/fm/kernels.cc, learn/ffm/kernels.cc).
#if defined(SHOAL_LEARN_FM_INITIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHOAL_LEARN_FM_INITIAL_INL_H_
#undef SHOAL_LEARN_FM_INITIAL_INL_H_
#else
#define SHOAL_LEARN_FM_INITIAL_INL_H_
#endif

#include <hwy/highway.h>

#include "learn/fm/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::learn::fm {
namespace HWY_NAMESPACE {

using D = hwy::HWY_NAMESPACE::CappedTag<float, kLanes>;
using V = hwy::HWY_NAMESPACE::Vec<D>;

// The vector form of Mix32 and InitialFactor, bit for bit.
HWY_INLINE V Initial(D d, uint32_t feature, const uint32_t* salts, const float* scales) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<uint32_t, D> du;
  const hn::Rebind<int32_t, D> di;
  auto x = hn::Xor(hn::Set(du, feature), hn::LoadU(du, salts));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(du, 0x7feb352du));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(du, 0x846ca68bu));
  x = hn::Xor(x, hn::ShiftRight<16>(x));
  const auto whole = hn::Sub(hn::BitCast(di, hn::ShiftRight<8>(x)), hn::Set(di, 1 << 23));
  return hn::Mul(hn::ConvertTo(d, whole), hn::LoadU(d, scales));
}

// AdaGrad: updates the lanes of D at `at` and of G at `sums` by the gradient g; a zero gradient
// changes nothing.
HWY_INLINE void Descend(D d, V g, V alpha, V beta, float* at, float* sums) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V squares = hn::MulAdd(g, g, hn::Max(hn::LoadU(d, sums), hn::Zero(d)));
  hn::StoreU(squares, d, sums);
  const V moved = hn::Div(hn::Mul(alpha, g), hn::Add(beta, hn::Sqrt(squares)));
  hn::StoreU(hn::Sub(hn::LoadU(d, at), moved), d, at);
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal::learn::fm
HWY_AFTER_NAMESPACE();

#endif  // SHOAL_LEARN_FM_INITIAL_INL_H_
