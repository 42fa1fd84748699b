// A factorization machine's parameters: the one table that file, flags, documentation and
// model.json come from, and the struct that the trainer reads.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "learn/params.h"
#include "learn/sparse/params.h"

namespace shoal::learn::fm {

// Plain data. alpha, beta, l1 and l2 are those of the weights, as in logistic regression.
struct Params : sparse::CommonParams {
  int64_t factors = 8;
  double alpha = 0.7;
  double beta = 0.03;
  double l1 = 0;
  double l2 = 0;
  double factor_alpha = 0.05;
  double factor_beta = 0.03;
  double factor_l2 = 0.0003;
  double factor_init = 0.1;
};

// Constant, lives for ever.
std::span<const Param> ParamTable();

// Values in range. Errors as ParseParams.
Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn, std::string_view file);

// Every parameter as name → text that Parse takes back; for model.json.
std::map<std::string, std::string> ToText(const Params& params);

}  // namespace shoal::learn::fm
