// The parameter table of an algorithm: the fields of a job file's `learn` section, the command
// line's flags, the parameters in model.json and the reference page.
//
// Each algorithm declares an array of Param. src/cli makes flags from it; ParseParams converts and
// validates values with file, line and column.
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

// One parameter. Constant data; the views refer to literals.
struct Param {
  std::string_view name;     // as in the job file; the flag is --name with '-' for '_'
  std::string_view aliases;  // other accepted names, separated by spaces
  ParamType type = ParamType::kInt;
  double min = 0;                 // kInt, kReal: smallest allowed value
  double max = 0;                 //              largest
  bool above_min = false;         // the range is (min, max], not [min, max]
  std::string_view choices;       // kChoice: separated by spaces
  std::string_view default_text;  // as written in a job file; "auto" if it depends on other values
  std::string_view doc;           // one sentence
  bool retired = false;           // no longer used; `doc` names the replacement
};

using ParamValue = std::variant<int64_t, double, bool, std::string>;

// The values of a section, by the table's names. Absent values, and "auto" where that is the
// default, have no entry.
using ParamValues = std::map<std::string, ParamValue, std::less<>>;

// Validates every key and value of `learn` (except "algorithm") against `table`. InvalidArgument
// for the first error in the file's order: "FILE:LINE:COLUMN: learn.NAME: got X, expected Y", with
// a suggestion for unknown names. `file` may be empty; locations with line 0 are omitted. O(keys ×
// table).
Result<ParamValues> ParseParams(std::span<const Param> table,
                                const std::map<std::string, job::LearnValue>& learn,
                                std::string_view file);

// InvalidArgument if `learn` contains a retired parameter.
Status CheckNoRetiredParams(std::span<const Param> table,
                            const std::map<std::string, job::LearnValue>& learn,
                            std::string_view file);

// Parameters of all algorithms, read by the task itself (task.cc). Static storage.
std::span<const Param> CommonParams();

// Finds a parameter by name or alias ('-' counts as '_'); null if there is none.
const Param* FindParam(std::span<const Param> table, std::string_view name);

// Describes accepted values: "an integer in [1, 4096]", "a number in (0, 1]", "true or false", "one
// of auto, avx2".
std::string DescribeExpected(const Param& param);

// The location prefix "job.yaml:5:10: learn.dim: ", or the known part of it.
std::string FormatPlace(std::string_view file, const job::LearnValue& value, std::string_view name);

// The Markdown table of one algorithm for the reference page.
std::string ParamsAsMarkdown(std::span<const Param> table);

}  // namespace shoal::learn
