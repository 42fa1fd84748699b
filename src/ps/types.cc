#include "ps/types.h"

#include <fmt/format.h>

#include <cmath>

namespace shoal::ps {
namespace {

// The bounds of one number of an optimizer.
struct Bound {
  const char* name;
  float value;
  bool good;
  const char* expected;
};

Status CheckAll(std::initializer_list<Bound> bounds) {
  for (const Bound& bound : bounds) {
    if (bound.good && std::isfinite(bound.value)) continue;
    return InvalidArgument(
        fmt::format("{}: got {}, expected {}", bound.name, bound.value, bound.expected));
  }
  return Status::Ok();
}

bool IsDecay(float value) { return value >= 0 && value < 1; }

Bound DecayBound(const char* name, float value) {
  return {name, value, IsDecay(value), "at least 0 and less than 1"};
}

Bound Positive(const char* name, float value) {
  return {name, value, value > 0, "a finite number above 0"};
}

Bound NotNegative(const char* name, float value) {
  return {name, value, value >= 0, "a finite number, at least 0"};
}

Status CheckFunction(const OptimizerSpec& spec) {
  if (spec.function.empty() || spec.function.size() > kMaxNameBytes) {
    return InvalidArgument(fmt::format("function: got a name of {} bytes, expected 1 to {}",
                                       spec.function.size(), kMaxNameBytes));
  }
  if (spec.argument.size() > kMaxFunctionArgument) {
    return InvalidArgument(fmt::format("argument of function '{}': got {} bytes, expected up to {}",
                                       spec.function, spec.argument.size(), kMaxFunctionArgument));
  }
  if (spec.state_planes <= kMaxStatePlanes) return Status::Ok();
  return InvalidArgument(fmt::format("state_planes of function '{}': got {}, expected up to {}",
                                     spec.function, spec.state_planes, kMaxStatePlanes));
}

// The last element of a row of kCombine counts its pushes, from 0.
Status CheckCombine(const TableSpec& spec) {
  if (spec.dim < 2) {
    return InvalidArgument(fmt::format(
        "table '{}': dim: got {}, expected at least 2 with combine, whose last float counts",
        spec.name, spec.dim));
  }
  if (spec.initializer.kind == InitializerKind::kZeros) return Status::Ok();
  return InvalidArgument(
      fmt::format("table '{}': initializer: got uniform, expected zeros with combine", spec.name));
}

}  // namespace

uint32_t CombineCount(float element) {
  // Not "out of bounds → 0": what is no number is not in bounds either.
  const bool counts = element >= 0 && element < static_cast<float>(kCombineCounts);
  return counts ? static_cast<uint32_t>(element) : 0;
}

float CombineShare(uint32_t count, uint32_t seen) {
  const auto unseen = static_cast<float>((count - seen) % kCombineCounts);
  return 1 / ((1 + unseen) * (1 + unseen));
}

Status Validate(const OptimizerSpec& spec) {
  const Bound lr{"lr", spec.lr, true, "a finite number"};
  switch (spec.kind) {
    case OptimizerKind::kAdd:
    case OptimizerKind::kCombine:
      return Status::Ok();
    case OptimizerKind::kSgd:
      return CheckAll({lr});
    case OptimizerKind::kAdagrad:
      return CheckAll({lr, Positive("eps", spec.eps)});
    case OptimizerKind::kMomentum:
      return CheckAll({lr, DecayBound("momentum", spec.momentum)});
    case OptimizerKind::kAdam:
      return CheckAll({lr, Positive("eps", spec.eps), DecayBound("beta1", spec.beta1),
                       DecayBound("beta2", spec.beta2)});
    case OptimizerKind::kFtrl:
      return CheckAll({Positive("lr", spec.lr),
                       NotNegative("beta", spec.beta),
                       NotNegative("l1", spec.l1),
                       NotNegative("l2", spec.l2),
                       {"beta", spec.beta, spec.beta + spec.l2 > 0, "beta + l2 above 0"}});
    case OptimizerKind::kFunction:
      return CheckFunction(spec);
  }
  return InvalidArgument(fmt::format("kind {} is unknown", static_cast<int>(spec.kind)));
}

Status Validate(const TableSpec& spec) {
  if (spec.name.empty() || spec.name.size() > kMaxNameBytes) {
    return InvalidArgument(
        fmt::format("table name: got {} bytes, expected 1 to {}", spec.name.size(), kMaxNameBytes));
  }
  if (spec.dim < 1 || spec.dim > kMaxDim) {
    return InvalidArgument(
        fmt::format("table '{}': dim: got {}, expected 1 to {}", spec.name, spec.dim, kMaxDim));
  }
  if (spec.key_space == KeySpace::kDense && (spec.rows < 1 || spec.rows > kMaxDenseRows)) {
    return InvalidArgument(
        fmt::format("table '{}': rows of a dense table: got {}, expected 1 to {}", spec.name,
                    spec.rows, kMaxDenseRows));
  }
  TRY(Validate(spec.optimizer).With(fmt::format("table '{}': optimizer", spec.name)));
  if (spec.optimizer.kind == OptimizerKind::kCombine) TRY(CheckCombine(spec));
  if (!std::isfinite(spec.initializer.lo) || !std::isfinite(spec.initializer.hi) ||
      spec.initializer.lo > spec.initializer.hi) {
    return InvalidArgument(
        fmt::format("table '{}': initializer: got [{}, {}), expected finite bounds in order",
                    spec.name, spec.initializer.lo, spec.initializer.hi));
  }
  return Status::Ok();
}

}  // namespace shoal::ps
