// Optimizer kernels, compiled once for every instruction set that Highway knows.
#include "ps/storage/optimizer_kernels.h"

#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ps/storage/optimizer_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace shoal::ps {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Rows whose cache lines are requested while an earlier one is worked on.
constexpr size_t kAhead = 8;
// Floats: longer rows are prefetched no further, and copied by memcpy.
constexpr size_t kInlineCopy = 512;

HWY_INLINE void PrefetchRow(const float* row, size_t floats) {
  const char* at = reinterpret_cast<const char*>(row);
  const char* const end = reinterpret_cast<const char*>(row + HWY_MIN(floats, size_t{512}));
  for (; at < end; at += 64) __builtin_prefetch(at, 1, 3);
}

// An optimizer sees a vector of values w and of deltas g; `state` is where its first plane has the
// same elements. Begin is called before each row.
struct AddOp {
  HWY_INLINE void Begin(float*) {}
  template <class D, class V>
  HWY_INLINE V operator()(D, V w, V g, float*) const {
    return hn::Add(w, g);
  }
};

struct SgdOp {
  float lr;
  HWY_INLINE void Begin(float*) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V w, V g, float*) const {
    return hn::NegMulAdd(hn::Set(d, lr), g, w);
  }
};

struct AdagradOp {
  float lr;
  float eps;
  HWY_INLINE void Begin(float*) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V w, V g, float* state) const {
    const V s = hn::MulAdd(g, g, hn::LoadU(d, state));
    hn::StoreU(s, d, state);
    const V step = hn::Div(hn::Mul(hn::Set(d, lr), g), hn::Add(hn::Sqrt(s), hn::Set(d, eps)));
    return hn::Sub(w, step);
  }
};

struct MomentumOp {
  float lr;
  float momentum;
  HWY_INLINE void Begin(float*) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V w, V g, float* state) const {
    const V v = hn::MulAdd(hn::Set(d, momentum), hn::LoadU(d, state), g);
    hn::StoreU(v, d, state);
    return hn::NegMulAdd(hn::Set(d, lr), v, w);
  }
};

// The corrections 1 - beta^t are one pair of numbers a row, computed in double and kept while the
// rows of a batch are of the same age.
struct AdamOp {
  AdamOp(const OptimizerSpec& spec, const RowLayout& layout)
      : lr(spec.lr),
        eps(spec.eps),
        beta1(spec.beta1),
        beta2(spec.beta2),
        log_beta1(std::log(static_cast<double>(spec.beta1))),
        log_beta2(std::log(static_cast<double>(spec.beta2))),
        step_at(layout.step),
        plane(layout.stride) {}
  HWY_INLINE void Begin(float* row) {
    uint32_t t = 0;
    std::memcpy(&t, row + step_at, sizeof t);
    if (t != UINT32_MAX) ++t;
    std::memcpy(row + step_at, &t, sizeof t);
    if (t == corrected_for) return;
    corrected_for = t;
    rate = static_cast<float>(static_cast<double>(lr) / -std::expm1(t * log_beta1));
    scale = static_cast<float>(1.0 / -std::expm1(t * log_beta2));
  }
  template <class D, class V>
  HWY_INLINE V operator()(D d, V w, V g, float* state) const {
    const V m =
        hn::MulAdd(hn::Set(d, beta1), hn::LoadU(d, state), hn::Mul(hn::Set(d, 1.0f - beta1), g));
    const V v = hn::MulAdd(hn::Set(d, beta2), hn::LoadU(d, state + plane),
                           hn::Mul(hn::Mul(hn::Set(d, 1.0f - beta2), g), g));
    hn::StoreU(m, d, state);
    hn::StoreU(v, d, state + plane);
    const V root = hn::Sqrt(hn::Mul(hn::Set(d, scale), v));
    return hn::Sub(w, hn::Div(hn::Mul(hn::Set(d, rate), m), hn::Add(root, hn::Set(d, eps))));
  }

  float lr, eps, beta1, beta2;
  double log_beta1, log_beta2;
  size_t step_at, plane;
  uint32_t corrected_for = 0;
  float rate = 0, scale = 0;
};

// sqrt(n + g²) - sqrt(n) as g² / (sqrt(n + g²) + sqrt(n)): the same without cancellation.
struct FtrlOp {
  float lr, beta, l1, l2;
  size_t plane;
  HWY_INLINE void Begin(float*) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V w, V g, float* state) const {
    const V zero = hn::Zero(d);
    const V inverse_lr = hn::Set(d, 1.0f / lr);
    const V n = hn::LoadU(d, state + plane);
    const V square = hn::Mul(g, g);
    const V sum = hn::Add(n, square);
    const V root = hn::Sqrt(sum);
    const V roots = hn::Add(root, hn::Sqrt(n));
    const V safe = hn::IfThenElse(hn::Eq(roots, zero), hn::Set(d, 1.0f), roots);
    const V sigma = hn::Mul(hn::Div(square, safe), inverse_lr);
    const V z = hn::Add(hn::LoadU(d, state), hn::NegMulAdd(sigma, w, g));
    hn::StoreU(z, d, state);
    hn::StoreU(sum, d, state + plane);
    const V bound = hn::Set(d, l1);
    const V over = hn::Sub(z, hn::CopySign(bound, z));
    const V divisor = hn::MulAdd(hn::Add(hn::Set(d, beta), root), inverse_lr, hn::Set(d, l2));
    // Not "small → 0, else": a NaN must stay one.
    return hn::IfThenElse(hn::Le(hn::Abs(z), bound), zero, hn::Neg(hn::Div(over, divisor)));
  }
};

struct CombineOp {
  float share;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V w, V g, float*) const {
    return hn::MulAdd(hn::Set(d, share), g, w);
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
HWY_INLINE void ApplyRows(Op op, const RowBatch& batch) {
  const RowLayout& layout = batch.layout;
  for (size_t i = 0; i < HWY_MIN(kAhead, batch.n); ++i) PrefetchRow(batch.rows[i], layout.floats);
  for (size_t i = 0; i < batch.n; ++i) {
    if (i + kAhead < batch.n) PrefetchRow(batch.rows[i + kAhead], layout.floats);
    float* row = batch.rows[i];
    op.Begin(row);
    ApplyRow(op, row, batch.deltas[i], row + layout.stride,
             batch.out != nullptr ? batch.out[i] : nullptr, layout.dim);
  }
}

HWY_INLINE void CombineRows(const RowBatch& batch) {
  const RowLayout& layout = batch.layout;
  const size_t last = layout.dim - 1;
  for (size_t i = 0; i < HWY_MIN(kAhead, batch.n); ++i) PrefetchRow(batch.rows[i], layout.floats);
  for (size_t i = 0; i < batch.n; ++i) {
    if (i + kAhead < batch.n) PrefetchRow(batch.rows[i + kAhead], layout.floats);
    float* const row = batch.rows[i];
    float* const out = batch.out != nullptr ? batch.out[i] : nullptr;
    const uint32_t count = CombineCount(row[last]);
    const CombineOp op{CombineShare(count, CombineCount(batch.deltas[i][last]))};
    ApplyRow(op, row, batch.deltas[i], row + layout.stride, out, last);
    row[last] = static_cast<float>((count + 1) % kCombineCounts);
    if (out != nullptr) out[last] = row[last];
  }
}

// Without a call a row: those of 100 floats are seven loads and seven stores.
HWY_INLINE void CopyRow(const float* row, size_t dim, float* to) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  if (dim < lanes || dim > kInlineCopy) {
    std::memcpy(to, row, dim * sizeof(float));
    return;
  }
  for (size_t i = 0; i + lanes <= dim; i += lanes) hn::StoreU(hn::LoadU(d, row + i), d, to + i);
  hn::StoreU(hn::LoadU(d, row + dim - lanes), d, to + dim - lanes);
}

template <class To>
HWY_INLINE void CopyRows(const float* const* rows, size_t n, size_t dim, const To& to) {
  const auto prefetch = [dim](const float* row) HWY_ATTR {
    for (size_t at = 0; at < HWY_MIN(dim, kInlineCopy); at += 16) {
      __builtin_prefetch(row + at, 0, 3);
    }
  };
  for (size_t i = 0; i < HWY_MIN(kAhead, n); ++i) prefetch(rows[i]);
  for (size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) prefetch(rows[i + kAhead]);
    CopyRow(rows[i], dim, to(i));
  }
}

void CopyTarget(const float* const* rows, float* const* out, size_t n, size_t dim) {
  CopyRows(rows, n, dim, [out](size_t i) { return out[i]; });
}

void GatherTarget(const float* const* rows, size_t n, size_t dim, float* to) {
  CopyRows(rows, n, dim, [to, dim](size_t i) { return to + i * dim; });
}

void ApplyTarget(const RowBatch& batch) {
  const OptimizerSpec& spec = *batch.optimizer;
  switch (spec.kind) {
    case OptimizerKind::kAdd:
      return ApplyRows(AddOp{}, batch);
    case OptimizerKind::kSgd:
      return ApplyRows(SgdOp{spec.lr}, batch);
    case OptimizerKind::kAdagrad:
      return ApplyRows(AdagradOp{spec.lr, spec.eps}, batch);
    case OptimizerKind::kMomentum:
      return ApplyRows(MomentumOp{spec.lr, spec.momentum}, batch);
    case OptimizerKind::kAdam:
      return ApplyRows(AdamOp(spec, batch.layout), batch);
    case OptimizerKind::kFtrl:
      return ApplyRows(FtrlOp{spec.lr, spec.beta, spec.l1, spec.l2, batch.layout.stride}, batch);
    case OptimizerKind::kCombine:
      return CombineRows(batch);
    case OptimizerKind::kFunction:
      return;  // table.cc calls it
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal::ps
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::ps {

HWY_EXPORT(ApplyTarget);
HWY_EXPORT(CopyTarget);
HWY_EXPORT(GatherTarget);

void ApplyBatch(const RowBatch& batch) { HWY_DYNAMIC_DISPATCH(ApplyTarget)(batch); }

void StartState(const OptimizerSpec& optimizer, const RowLayout& layout, float* row) {
  if (optimizer.kind != OptimizerKind::kFtrl) return;
  float* const z = row + layout.stride;
  const float divisor = optimizer.beta / optimizer.lr + optimizer.l2;
  for (size_t i = 0; i < layout.dim; ++i) {
    z[i] = row[i] == 0 ? 0.0f : -(row[i] * divisor + std::copysign(optimizer.l1, row[i]));
  }
}

void CopyBatch(const float* const* rows, float* const* out, size_t n, size_t dim) {
  HWY_DYNAMIC_DISPATCH(CopyTarget)(rows, out, n, dim);
}

void GatherBatch(const float* const* rows, size_t n, size_t dim, float* to) {
  HWY_DYNAMIC_DISPATCH(GatherTarget)(rows, n, dim, to);
}

}  // namespace shoal::ps
#endif  // HWY_ONCE
