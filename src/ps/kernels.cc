// Optimizer kernels, compiled once for every instruction set that Highway knows.
#include "ps/kernels.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ps/kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::ps {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows whose cache lines are requested while an earlier one is worked on.
constexpr size_t kAhead = 8;

HWY_INLINE void PrefetchRow(const float* row, size_t floats) {
  const char* at = reinterpret_cast<const char*>(row);
  const char* const end = reinterpret_cast<const char*>(row + HWY_MIN(floats, size_t{512}));
  for (; at < end; at += 64) __builtin_prefetch(at, 1, 3);
}

struct AddOp {
  template <class D, class V>
  HWY_INLINE V operator()(D, V w, V g, float*) const {
    return hn::Add(w, g);
  }
};

struct SgdOp {
  float lr;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V w, V g, float*) const {
    return hn::NegMulAdd(hn::Set(d, lr), g, w);
  }
};

// `state` is read and written at the same place as the row.
struct AdagradOp {
  float lr;
  float eps;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V w, V g, float* state) const {
    const V s = hn::MulAdd(g, g, hn::LoadU(d, state));
    hn::StoreU(s, d, state);
    const V step = hn::Div(hn::Mul(hn::Set(d, lr), g), hn::Add(hn::Sqrt(s), hn::Set(d, eps)));
    return hn::Sub(w, step);
  }
};

template <class Op>
HWY_INLINE void ApplyRow(const Op& op, float* row, const float* delta, float* state, float* out,
                         size_t dim) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= dim; i += lanes) {
    const auto w = op(d, hn::LoadU(d, row + i), hn::LoadU(d, delta + i), state + i);
    hn::StoreU(w, d, row + i);
    if (out != nullptr) hn::StoreU(w, d, out + i);
  }
  for (; i < dim; ++i) {
    const auto w = op(one, hn::LoadU(one, row + i), hn::LoadU(one, delta + i), state + i);
    hn::StoreU(w, one, row + i);
    if (out != nullptr) hn::StoreU(w, one, out + i);
  }
}

template <class Op>
HWY_INLINE void ApplyRows(const Op& op, const RowBatch& batch) {
  const size_t floats = batch.state_offset + batch.dim;
  for (size_t i = 0; i < HWY_MIN(kAhead, batch.n); ++i) PrefetchRow(batch.rows[i], floats);
  for (size_t i = 0; i < batch.n; ++i) {
    if (i + kAhead < batch.n) PrefetchRow(batch.rows[i + kAhead], floats);
    float* row = batch.rows[i];
    ApplyRow(op, row, batch.deltas[i], row + batch.state_offset,
             batch.out != nullptr ? batch.out[i] : nullptr, batch.dim);
  }
}

void ApplyTarget(const RowBatch& batch) {
  const OptimizerSpec& spec = batch.optimizer;
  switch (spec.kind) {
    case OptimizerKind::kAdd:
      return ApplyRows(AddOp{}, batch);
    case OptimizerKind::kSgd:
      return ApplyRows(SgdOp{spec.lr}, batch);
    case OptimizerKind::kAdagrad:
      return ApplyRows(AdagradOp{spec.lr, spec.eps}, batch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal::ps
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::ps {

HWY_EXPORT(ApplyTarget);

void ApplyBatch(const RowBatch& batch) { HWY_DYNAMIC_DISPATCH(ApplyTarget)(batch); }

void CopyBatch(const float* const* rows, float* const* out, size_t n, size_t dim) {
  constexpr size_t kAhead = 8;
  constexpr size_t kPrefetched = 512;
  const auto prefetch = [dim](const float* row) {
    for (size_t at = 0; at < dim && at < kPrefetched; at += 16) __builtin_prefetch(row + at, 0, 3);
  };
  for (size_t i = 0; i < n && i < kAhead; ++i) prefetch(rows[i]);
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) prefetch(rows[i + kAhead]);
    std::memcpy(out[i], rows[i], dim * sizeof(float));
  }
}

}  // namespace shoal::ps
#endif  // HWY_ONCE
