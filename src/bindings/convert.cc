#include "bindings/convert.h"

namespace shoal::bindings {

ps::v1::Status ToPublic(const Status& status) {
  if (status.ok()) return {};
  return {static_cast<ps::v1::Code>(status.code()), status.message()};
}

Status FromPublic(const ps::v1::Status& status) {
  if (status.ok()) return Status::Ok();
  return {static_cast<Code>(status.code()), status.message()};
}

namespace {

// The public kinds are counted in another order than on the wire.
ps::OptimizerKind KindOf(ps::v1::Optimizer::Kind kind) {
  using Kind = ps::v1::Optimizer::Kind;
  switch (kind) {
    case Kind::kAdd:
      return ps::OptimizerKind::kAdd;
    case Kind::kSgd:
      return ps::OptimizerKind::kSgd;
    case Kind::kAdagrad:
      return ps::OptimizerKind::kAdagrad;
    case Kind::kMomentum:
      return ps::OptimizerKind::kMomentum;
    case Kind::kAdam:
      return ps::OptimizerKind::kAdam;
    case Kind::kFtrl:
      return ps::OptimizerKind::kFtrl;
    case Kind::kFunction:
      return ps::OptimizerKind::kFunction;
    case Kind::kCombine:
      return ps::OptimizerKind::kCombine;
  }
  return ps::OptimizerKind::kAdd;
}

}  // namespace

ps::TableSpec FromPublic(const ps::v1::TableSpec& spec) {
  ps::TableSpec out;
  out.name = spec.name;
  out.key_space = spec.rows == 0 ? ps::KeySpace::kSparse : ps::KeySpace::kDense;
  out.rows = spec.rows;
  out.dim = spec.dim;
  const ps::v1::Optimizer& from = spec.optimizer;
  out.optimizer.kind = KindOf(from.kind);
  out.optimizer.lr = from.lr;
  out.optimizer.eps = from.eps;
  out.optimizer.momentum = from.momentum;
  out.optimizer.beta1 = from.beta1;
  out.optimizer.beta2 = from.beta2;
  out.optimizer.beta = from.beta;
  out.optimizer.l1 = from.l1;
  out.optimizer.l2 = from.l2;
  out.optimizer.function = from.function;
  out.optimizer.argument = from.argument;
  out.optimizer.state_planes = from.state_planes;
  if (spec.initializer.lo != 0 || spec.initializer.hi != 0) {
    out.initializer = {ps::InitializerKind::kUniform, spec.initializer.lo, spec.initializer.hi,
                       spec.initializer.seed};
  }
  return out;
}

ps::TableRef FromPublic(const ps::v1::Table& table) {
  ps::TableRef ref;
  ref.id = table.id;
  ref.dim = table.dim;
  ref.key_space = table.rows == 0 ? ps::KeySpace::kSparse : ps::KeySpace::kDense;
  ref.rows = table.rows;
  ref.wire.push = static_cast<ps::ValueType>(table.push);
  ref.wire.pull = static_cast<ps::ValueType>(table.pull);
  return ref;
}

ps::Consistency FromPublic(const ps::v1::Consistency& consistency) {
  return {static_cast<ps::Consistency::Kind>(consistency.kind), consistency.staleness};
}

ps::v1::Counters ToPublic(const ps::Counters& counters) {
  return {counters.rows_pushed, counters.rows_pulled, counters.bytes_pushed, counters.bytes_pulled,
          counters.requests};
}

}  // namespace shoal::bindings
