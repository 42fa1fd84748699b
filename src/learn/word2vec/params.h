// Parameters of word2vec: the table for file, flags, documentation and model.json, and the struct
// that the trainer reads.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "job/spec/job.h"
#include "learn/params/params.h"
#include "ps/types.h"

namespace shoal::learn::word2vec {

// Names, meaning and defaults as in word2vec.c and gensim. Plain data.
struct Params {
  int64_t dim = 100;
  int64_t window = 5;
  int64_t negative = 5;
  double sample = 1e-3;
  int64_t min_count = 5;
  double alpha = 0.025;  // 0.05 for cbow
  double min_alpha = 0;  // default: alpha × 1e-4
  int64_t epochs = 5;
  bool cbow = false;
  bool hs = false;      // hierarchical softmax in place of noise words
  int64_t threads = 0;  // 0: its resources.cpu, else the host's cores divided by its workers
  int64_t seed = 1;
  bool deterministic = false;
  int64_t hot_rows = 8192;     // rows of each matrix copied for each thread, at most
  int64_t exchange_words = 0;  // words between exchange rounds; 0: by the policy
  int64_t stale_words = 0;     // words until all changed rows are exchanged; 0: by the policy
  std::string wire = "auto";   // encoding of rows between workers and servers
  std::string simd = "auto";
};

// The encoding that `wire` means in a job with this many workers.
ps::Wire WireOf(const Params& params, int workers);

// The parameter table, retired parameters included. Static storage.
std::span<const Param> ParamTable();

// Parses and validates parameters and fills in dependent defaults (alpha, min_alpha). Errors as
// ParseParams.
Result<Params> Parse(const std::map<std::string, job::LearnValue>& learn, std::string_view file);

// All parameters as name → text, which Parse accepts; for model.json.
std::map<std::string, std::string> ToText(const Params& params);

}  // namespace shoal::learn::word2vec
