// Compiled once for each of Highway's instruction sets; the best one is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/dot_products.cc"
#include <hwy/foreach_target.h>
// (Highway's order: foreach_target first.)
#include <hwy/highway.h>

#include "model/dot_products.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::model {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::CappedTag<float, 16>;

void Rows(const float* query, const float* units, size_t rows, size_t stride, float* scores) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < rows; ++r) {
    auto sum = hn::Zero(d);
    for (size_t k = 0; k < stride; k += lanes) {
      sum = hn::MulAdd(hn::LoadU(d, query + k), hn::LoadU(d, units + r * stride + k), sum);
    }
    scores[r] = hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

// Up to four queries against two vectors of rows: 8 accumulators, 6 loads for 8 multiply-adds.
template <size_t kQueries>
HWY_INLINE void Block(const float* query, size_t query_stride, const float* panel, size_t dim,
                      float* scores) {
  const Floats d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < kPanelRows; r += 2 * lanes) {
    auto a0 = hn::Zero(d), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, e0 = a0, e1 = a0;
    for (size_t k = 0; k < dim; ++k) {
      const auto x = hn::LoadU(d, panel + k * kPanelRows + r);
      const auto y = hn::LoadU(d, panel + k * kPanelRows + r + lanes);
      const auto a = hn::Set(d, query[k]);
      a0 = hn::MulAdd(a, x, a0);
      a1 = hn::MulAdd(a, y, a1);
      if constexpr (kQueries == 4) {
        const auto b = hn::Set(d, query[query_stride + k]);
        const auto c = hn::Set(d, query[2 * query_stride + k]);
        const auto e = hn::Set(d, query[3 * query_stride + k]);
        b0 = hn::MulAdd(b, x, b0);
        b1 = hn::MulAdd(b, y, b1);
        c0 = hn::MulAdd(c, x, c0);
        c1 = hn::MulAdd(c, y, c1);
        e0 = hn::MulAdd(e, x, e0);
        e1 = hn::MulAdd(e, y, e1);
      }
    }
    hn::StoreU(a0, d, scores + r);
    hn::StoreU(a1, d, scores + r + lanes);
    if constexpr (kQueries == 4) {
      hn::StoreU(b0, d, scores + kPanelRows + r);
      hn::StoreU(b1, d, scores + kPanelRows + r + lanes);
      hn::StoreU(c0, d, scores + 2 * kPanelRows + r);
      hn::StoreU(c1, d, scores + 2 * kPanelRows + r + lanes);
      hn::StoreU(e0, d, scores + 3 * kPanelRows + r);
      hn::StoreU(e1, d, scores + 3 * kPanelRows + r + lanes);
    }
  }
}

void Panel(const float* query, size_t queries, size_t query_stride, const float* panel, size_t dim,
           float* scores) {
  size_t q = 0;
  for (; q + 4 <= queries; q += 4) {
    Block<4>(query + q * query_stride, query_stride, panel, dim, scores + q * kPanelRows);
  }
  for (; q < queries; ++q) {
    Block<1>(query + q * query_stride, query_stride, panel, dim, scores + q * kPanelRows);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace shoal::model
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::model {
namespace {
HWY_EXPORT(Rows);
HWY_EXPORT(Panel);
}  // namespace

void ScoreRows(const float* query, const float* units, size_t rows, size_t stride, float* scores) {
  HWY_DYNAMIC_DISPATCH(Rows)(query, units, rows, stride, scores);
}

void PackPanel(const float* units, size_t rows, size_t stride, size_t dim, float* panel) {
  for (size_t r = 0; r < kPanelRows; ++r) {
    for (size_t k = 0; k < dim; ++k) {
      panel[k * kPanelRows + r] = r < rows ? units[r * stride + k] : 0;
    }
  }
}

void ScorePanel(const float* query, size_t queries, size_t query_stride, const float* panel,
                size_t dim, float* scores) {
  HWY_DYNAMIC_DISPATCH(Panel)(query, queries, query_stride, panel, dim, scores);
}

}  // namespace shoal::model
#endif
