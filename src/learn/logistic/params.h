// Logistic regression's parameters: the one table that file, flags, documentation and model.json
// come from, and the struct that the trainer reads.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "learn/params.h"

namespace shoal::learn::logistic {

// Defaults are those of `ftrl` on rows of unit length. Plain data.
struct Params {
  std::string optimizer = "ftrl";
  double alpha = 0.7;
  double beta = 0.03;
  double l1 = 0;
  double l2 = 0;
  int64_t epochs = 2;
  bool normalize = true;
  bool bias = true;
  int64_t hash_bits = 0;
  int64_t threads = 0;  // 0: the machine's cores divided by the workers on it
  int64_t seed = 1;
  bool deterministic = false;
  int64_t rounds = 0;  // exchanges with the servers in an epoch; 0: chosen by the number of workers
  bool text = false;
  std::string simd = "auto";

  bool ftrl() const { return optimizer == "ftrl"; }
};

// Constant, lives for ever.
std::span<const Param> ParamTable();

// Values in range. Errors as ParseParams.
Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn, std::string_view file);

// Every parameter as name → text that Parse takes back; for model.json.
std::map<std::string, std::string> ToText(const Params& params);

}  // namespace shoal::learn::logistic
