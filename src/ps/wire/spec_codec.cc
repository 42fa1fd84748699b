#include "ps/wire/spec_codec.h"

#include <fmt/format.h>

namespace shoal::ps {
namespace {

// Fields of some optimizers only; behind the others, so that the older kinds keep their bytes.
void PutExtras(const OptimizerSpec& spec, ByteWriter* out) {
  switch (spec.kind) {
    case OptimizerKind::kAdd:
    case OptimizerKind::kSgd:
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kCombine:
      return;
    case OptimizerKind::kMomentum:
      return out->Put(spec.momentum);
    case OptimizerKind::kAdam:
      out->Put(spec.beta1);
      return out->Put(spec.beta2);
    case OptimizerKind::kFtrl:
      out->Put(spec.beta);
      out->Put(spec.l1);
      return out->Put(spec.l2);
    case OptimizerKind::kFunction:
      out->PutString(spec.function);
      out->PutString(spec.argument);
      return out->Put(spec.state_planes);
  }
}

Status GetExtras(ByteReader* in, OptimizerSpec* spec) {
  switch (spec->kind) {
    case OptimizerKind::kAdd:
    case OptimizerKind::kSgd:
    case OptimizerKind::kAdagrad:
    case OptimizerKind::kCombine:
      return Status::Ok();
    case OptimizerKind::kMomentum:
      return in->Get(&spec->momentum);
    case OptimizerKind::kAdam:
      TRY(in->Get(&spec->beta1));
      return in->Get(&spec->beta2);
    case OptimizerKind::kFtrl:
      TRY(in->Get(&spec->beta));
      TRY(in->Get(&spec->l1));
      return in->Get(&spec->l2);
    case OptimizerKind::kFunction: {
      std::string_view function, argument;
      TRY(in->GetString(&function, kMaxNameBytes));
      TRY(in->GetString(&argument, kMaxFunctionArgument));
      spec->function = function;
      spec->argument = argument;
      return in->Get(&spec->state_planes);
    }
  }
  return Status::Ok();
}

}  // namespace

void EncodeSpec(const TableSpec& spec, std::string* out) {
  ByteWriter writer(out);
  writer.PutString(spec.name);
  writer.Put(spec.key_space);
  writer.Put(spec.rows);
  writer.Put(spec.dim);
  writer.Put(spec.optimizer.kind);
  writer.Put(spec.optimizer.lr);
  writer.Put(spec.optimizer.eps);
  writer.Put(spec.initializer.kind);
  writer.Put(spec.initializer.lo);
  writer.Put(spec.initializer.hi);
  writer.Put(spec.initializer.seed);
  PutExtras(spec.optimizer, &writer);
}

Status DecodeSpec(ByteReader* in, TableSpec* spec) {
  *spec = {};
  std::string_view name;
  uint8_t key_space = 0, optimizer = 0, initializer = 0;
  TRY(in->GetString(&name, kMaxNameBytes));
  TRY(in->Get(&key_space));
  TRY(in->Get(&spec->rows));
  TRY(in->Get(&spec->dim));
  TRY(in->Get(&optimizer));
  TRY(in->Get(&spec->optimizer.lr));
  TRY(in->Get(&spec->optimizer.eps));
  TRY(in->Get(&initializer));
  TRY(in->Get(&spec->initializer.lo));
  TRY(in->Get(&spec->initializer.hi));
  TRY(in->Get(&spec->initializer.seed));
  if (key_space > 1 || optimizer >= kOptimizerKinds || initializer > 1) {
    return InvalidArgument("a table spec has an unknown key space, optimizer or initializer");
  }
  spec->name = name;
  spec->key_space = static_cast<KeySpace>(key_space);
  spec->optimizer.kind = static_cast<OptimizerKind>(optimizer);
  spec->initializer.kind = static_cast<InitializerKind>(initializer);
  TRY(GetExtras(in, &spec->optimizer));
  return Validate(*spec);
}

std::string SpecDifference(const TableSpec& there, const TableSpec& asked) {
  static constexpr const char* kKinds[] = {"add",  "sgd",  "adagrad",  "momentum",
                                           "adam", "ftrl", "function", "combine"};
  static_assert(std::size(kKinds) == kOptimizerKinds);
  std::string text;
  const auto compare = [&text](const char* field, const auto& one, const auto& other) {
    if (one == other) return;
    text += fmt::format("{}{} is {}, asked for {}", text.empty() ? "" : "; ", field, one, other);
  };
  const auto rows = [](const TableSpec& spec) {
    return spec.key_space == KeySpace::kSparse ? "none (sparse)" : std::to_string(spec.rows);
  };
  const OptimizerSpec &own = there.optimizer, &wish = asked.optimizer;
  compare("rows", rows(there), rows(asked));
  compare("dim", there.dim, asked.dim);
  compare("optimizer", std::string(kKinds[static_cast<size_t>(own.kind)]),
          std::string(kKinds[static_cast<size_t>(wish.kind)]));
  compare("lr", own.lr, wish.lr);
  compare("eps", own.eps, wish.eps);
  compare("momentum", own.momentum, wish.momentum);
  compare("beta1", own.beta1, wish.beta1);
  compare("beta2", own.beta2, wish.beta2);
  compare("beta", own.beta, wish.beta);
  compare("l1", own.l1, wish.l1);
  compare("l2", own.l2, wish.l2);
  compare("function", own.function, wish.function);
  compare("the length of argument", own.argument.size(), wish.argument.size());
  compare("state_planes", own.state_planes, wish.state_planes);
  compare("the lower end of first values", there.initializer.lo, asked.initializer.lo);
  compare("the upper end of first values", there.initializer.hi, asked.initializer.hi);
  compare("seed", there.initializer.seed, asked.initializer.seed);
  if (text.empty() && own.argument != wish.argument) text = "argument differs";
  return text;
}

uint32_t TableIdOf(std::string_view name) {
  const uint32_t crc = Crc32c(name.data(), name.size());
  return crc == 0 ? 1 : crc;
}

}  // namespace shoal::ps
