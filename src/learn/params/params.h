// The parameters of an algorithm as one table: what a job file's `learn` section may say, what the
// command line offers as flags, what model.json records and what the reference page prints.
//
// Each algorithm declares an array of Param; src/controller and src/cli make flags from it,
// ParseParams makes typed values and complains with file, line and column.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::learn {

enum class ParamType : uint8_t { kInt, kReal, kBool, kChoice, kText };

inline constexpr size_t kMaxParamText = 4096;

// One parameter. Constant data; the views point to literals.
struct Param {
  std::string_view name;     // as in the job file; the flag is --name with '-' for '_'
  std::string_view aliases;  // other accepted names, separated by spaces
  ParamType type = ParamType::kInt;
  double min = 0;                 // kInt, kReal: smallest allowed value
  double max = 0;                 //              largest
  bool above_min = false;         // the range is (min, max], not [min, max]
  std::string_view choices;       // kChoice: separated by spaces
  std::string_view default_text;  // as one would write it; "auto" for values that depend on others
  std::string_view doc;           // one sentence
  bool retired = false;           // of an earlier version; `doc` says what is done in its place
};

using ParamValue = std::variant<int64_t, double, bool, std::string>;

// The values that a section gave, by the table's names; what was not given, or given as "auto"
// where the default is "auto", is absent.
using ParamValues = std::map<std::string, ParamValue, std::less<>>;

// Checks every key and value of `learn` (except "algorithm") against `table`. InvalidArgument with
// "FILE:LINE:COLUMN: learn.NAME: got X, expected Y" for the first that is wrong, in the file's
// order; unknown names get the nearest right one. `file` may be empty, and places with line 0 are
// left out. O(keys × table).
Result<ParamValues> ParseParams(std::span<const Param> table,
                                const std::map<std::string, job::LearnValue>& learn,
                                std::string_view file);

// InvalidArgument if `learn` has a parameter that is retired.
Status CheckNoRetiredParams(std::span<const Param> table,
                            const std::map<std::string, job::LearnValue>& learn,
                            std::string_view file);

// What every algorithm has besides its own; read from the task (task.cc). Constant.
std::span<const Param> CommonParams();

// The table's entry of that name or alias ('-' counts as '_'); null if there is none.
const Param* FindParam(std::span<const Param> table, std::string_view name);

// "an integer in [1, 4096]", "a number in (0, 1]", "true or false", "one of auto, avx2".
std::string DescribeExpected(const Param& param);

// "job.yaml:5:10: learn.dim: " or as much of it as is known.
std::string FormatPlace(std::string_view file, const job::LearnValue& value, std::string_view name);

// The reference page's table of one algorithm, in Markdown.
std::string ParamsAsMarkdown(std::span<const Param> table);

}  // namespace shoal::learn
