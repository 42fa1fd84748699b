// The parameters of the statements that run the user's Python programs (MLSQL, D5 of the dialects):
// `train t as DTFAlg.`path`` and `DTF`, clusters of TensorFlow, and `PythonAlg`, whose groups
// fitParam.N are instances beside each other.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sql/session/option_list.h"

namespace shoal::sql {

enum class ClusterKind : uint8_t {
  kDtfAlg,     // each group fitParam.N is a task with its role and index
  kDtf,        // one group for all tasks; a worker for each partition of the table
  kPythonAlg,  // each group is a program that trains a model of its own on all rows
};
std::string_view NameOf(ClusterKind kind);
// The kind of an algorithm's name, in any case; nothing for other algorithms.
std::optional<ClusterKind> ClusterKindOf(std::string_view algorithm);

// A task: a worker or a parameter server with its own parameters.
struct ClusterGroup {
  uint64_t number = 0;                           // N of fitParam.N
  std::string role;                              // "worker" or "ps"
  int index = 0;                                 // in its role
  std::map<std::string, std::string> params;     // all of the group, with jobName and taskIndex
  std::map<std::string, std::string> resources;  // resource.NAME: a path
};

struct ClusterParams {
  ClusterKind kind = ClusterKind::kDtfAlg;
  std::vector<ClusterGroup> groups;  // by number
  int workers = 0;
  int servers = 0;
  Word script;                // pythonScriptPath
  std::vector<Word> scripts;  // names of script tables or variables, in place of a path
  Word entry;                 // that of `scripts` which is run
  int chief = -1;             // the worker whose model is kept; -1: of every worker
  std::string python = "python";
  std::vector<std::string> python_arguments;
  std::map<std::string, std::string> system;  // systemParam.*
  std::map<std::string, std::string> kafka;   // kafkaParam.*
  std::map<std::string, std::string> limits;  // resource.memory and the like, of each worker
  bool keep_version = true;
  bool local_data = false;  // enableDataLocal
  bool csv_data = false;    // dataLocalFormat is csv, not json
  std::optional<Word> validate_table;
  std::string engine;
  std::string name;
};

// The names of the statements' parameters.
const std::vector<std::string>& ClusterParamNames();

inline constexpr size_t kMaxGroups = 10'000;

// Takes all parameters of the statement. `partitions`: of the table. Groups may be numbered in any
// order; the workers' task indices are 0 … W−1, and so are the servers', each once, or the error
// says which is missing. `span`: of ALGORITHM.`path`, for what is missing.
Result<ClusterParams> TakeClusterParams(ClusterKind kind, int partitions, Span span,
                                        OptionList* options);

}  // namespace shoal::sql
