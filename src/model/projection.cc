#include "model/projection.h"

#include <algorithm>
#include <cmath>

namespace shoal::model {
namespace {

constexpr size_t kBlock = 8;
constexpr size_t kPlane = 2;
constexpr int kMostSteps = 300;
constexpr double kTolerance = 1e-6;
constexpr uint64_t kLeastRows = 3;

// Rows without their mean, and directions in the order of their variance.
class Iteration {
 public:
  Iteration(std::span<const float> rows, uint64_t dim)
      : dim_(dim), count_(rows.size() / dim), centred_(rows.size()), directions_(kBlock * dim) {
    std::vector<double> mean(dim, 0);
    for (size_t i = 0; i < rows.size(); ++i) {
      const double value = std::isfinite(rows[i]) ? rows[i] : 0;
      centred_[i] = value;
      mean[i % dim] += value;
    }
    for (size_t i = 0; i < centred_.size(); ++i) {
      centred_[i] -= mean[i % dim] / static_cast<double>(count_);
      total_ += centred_[i] * centred_[i];
    }
    // Any directions will do that are not orthogonal to the wanted ones.
    uint64_t state = 0x9e3779b97f4a7c15;
    for (double& one : directions_) {
      state = state * 6364136223846793005 + 1442695040888963407;
      one = static_cast<double>(state >> 40) / static_cast<double>(uint64_t{1} << 24) - 0.5;
    }
    Orthonormalize();
  }

  void Run() {
    for (int step = 0; step < kMostSteps; ++step) {
      const std::vector<double> before(directions_.begin(),
                                       directions_.begin() + static_cast<ptrdiff_t>(kPlane * dim_));
      Multiply();
      Orthonormalize();
      double change = 0;
      for (size_t k = 0; k < kPlane; ++k) {
        double same = 0;
        for (size_t j = 0; j < dim_; ++j) same += before[k * dim_ + j] * directions_[k * dim_ + j];
        change = std::max(change, 1 - std::abs(same));
      }
      if (change < kTolerance) return;
    }
  }

  Projection Project() {
    Projection made;
    made.points.resize(count_ * kPlane);
    for (size_t k = 0; k < kPlane; ++k) {
      double* const direction = directions_.data() + k * dim_;
      const double* const largest =
          std::max_element(direction, direction + dim_,
                           [](double a, double b) { return std::abs(a) < std::abs(b); });
      const double sign = *largest < 0 ? -1 : 1;
      double variance = 0;
      for (size_t i = 0; i < count_; ++i) {
        const double at = sign * Dot(Row(i), direction);
        made.points[i * kPlane + k] = at;
        variance += at * at;
      }
      made.shares[k] = total_ > 0 ? variance / total_ : 0;
    }
    return made;
  }

 private:
  const double* Row(size_t i) const { return centred_.data() + i * dim_; }
  double Dot(const double* a, const double* b) const {
    double sum = 0;
    for (size_t j = 0; j < dim_; ++j) sum += a[j] * b[j];
    return sum;
  }

  // By the covariance: rowsᵀ · (rows · direction).
  void Multiply() {
    std::vector<double> next(directions_.size(), 0);
    for (size_t i = 0; i < count_; ++i) {
      const double* const row = Row(i);
      for (size_t k = 0; k < kBlock; ++k) {
        const double at = Dot(row, directions_.data() + k * dim_);
        double* const to = next.data() + k * dim_;
        for (size_t j = 0; j < dim_; ++j) to[j] += at * row[j];
      }
    }
    directions_ = std::move(next);
  }

  // Gram-Schmidt, twice for its rounding errors. A direction that the others span becomes 0.
  void Orthonormalize() {
    for (size_t k = 0; k < kBlock; ++k) {
      double* const own = directions_.data() + k * dim_;
      const double before = std::sqrt(Dot(own, own));
      for (int again = 0; again < 2; ++again) {
        for (size_t other = 0; other < k; ++other) {
          const double* const direction = directions_.data() + other * dim_;
          const double part = Dot(own, direction);
          for (size_t j = 0; j < dim_; ++j) own[j] -= part * direction[j];
        }
      }
      const double length = std::sqrt(Dot(own, own));
      constexpr double kNothing = 1e-12;
      const double scale = length > kNothing * before && length > 0 ? 1 / length : 0;
      for (size_t j = 0; j < dim_; ++j) own[j] *= scale;
    }
  }

  const uint64_t dim_;
  const uint64_t count_;
  std::vector<double> centred_;
  std::vector<double> directions_;  // [kBlock × dim]
  double total_ = 0;
};

}  // namespace

Result<Projection> PrincipalPlane(std::span<const float> rows, uint64_t dim) {
  if (dim == 0 || rows.size() / dim < kLeastRows)
    return InvalidArgument("a plane needs at least " + std::to_string(kLeastRows) + " vectors");
  Iteration iteration(rows.subspan(0, rows.size() / dim * dim), dim);
  iteration.Run();
  return iteration.Project();
}

}  // namespace shoal::model
