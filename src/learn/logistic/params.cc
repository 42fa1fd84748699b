#include "learn/logistic/params.h"

#include <array>

#include "learn/fields.h"

namespace shoal::learn::logistic {
namespace {

using Field = FieldOf<Params>;

constexpr auto kInt = ParamType::kInt;
constexpr auto kReal = ParamType::kReal;
constexpr auto kBool = ParamType::kBool;
constexpr auto kChoice = ParamType::kChoice;

const std::array kFields = {
    Field{{"optimizer", "", kChoice, 0, 0, false, "ftrl adagrad", "ftrl",
           "FTRL-proximal (McMahan et al. 2013) or AdaGrad (Duchi et al. 2011)."},
          &Params::optimizer},
    Field{{"alpha", "lr", kReal, 0, 1e6, true, "", "0.7",
           "Learning rate: a weight's step is alpha / (beta + the root of its summed squared "
           "gradients)."},
          &Params::alpha},
    Field{{"beta", "", kReal, 0, 1e6, true, "", "0.03",
           "Keeps the first steps of rare features small; near the gradient of one example."},
          &Params::beta},
    Field{{"l1", "lambda1", kReal, 0, 1e9, false, "", "0",
           "Weights whose gradients do not add up to this stay 0: a sparse model."},
          &Params::l1},
    Field{{"l2", "lambda2", kReal, 0, 1e9, false, "", "0", "Pulls the weights towards 0."},
          &Params::l2},
    Field{{"epochs", "", kInt, 1, 100000, false, "", "2", "Passes over the data."},
          &Params::epochs},
    Field{{"normalize", "", kBool, 0, 0, false, "", "true",
           "Divide the values of every example by their Euclidean length."},
          &Params::normalize},
    Field{{"bias", "", kBool, 0, 0, false, "", "true", "A weight that every example has."},
          &Params::bias},
    Field{{"hash_bits", "", kInt, 0, 31, false, "", "0",
           "Hash features to this many bits; 0: features keep their numbers."},
          &Params::hash_bits},
    Field{{"threads", "", kInt, 0, 1024, false, "", "auto",
           "Training threads of a worker: the machine's cores divided by the workers on it."},
          &Params::threads},
    Field{{"seed", "", kInt, 0, 9e15, false, "", "1", "Start of all random numbers."},
          &Params::seed},
    Field{{"deterministic", "", kBool, 0, 0, false, "", "false",
           "The same model for the same seed, data and number of tasks; one thread a worker."},
          &Params::deterministic},
    Field{{"rounds", "", kInt, 0, 1e6, false, "", "auto",
           "Exchanges of a worker with the servers in an epoch."},
          &Params::rounds},
    Field{{"text", "", kBool, 0, 0, false, "", "false", "Also write weights.txt."}, &Params::text},
    Field{{"simd", "", kChoice, 0, 0, false, "auto avx512 avx2 sse4 scalar", "auto",
           "Vector instructions: the best that the machine has, or the named ones."},
          &Params::simd},
};

}  // namespace

std::span<const Param> ParamTable() {
  static const std::vector<Param> table = TableOf<Params>(kFields);
  return table;
}

Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn, std::string_view file) {
  Params params;
  TRY(ParseFields<Params>(kFields, learn, file, &params));
  TRY(OneThreadIfDeterministic(params, learn, file));
  return params;
}

std::map<std::string, std::string> ToText(const Params& params) {
  return FieldsToText<Params>(kFields, params);
}

}  // namespace shoal::learn::logistic
