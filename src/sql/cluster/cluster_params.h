// The parameters of `train t as DTFAlg.`path`` (MLSQL, D5 of the dialects): groups fitParam.N, each
// of which is a task of a TensorFlow cluster.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "sql/session/option_list.h"

namespace shoal::sql {

// A task: a worker or a parameter server with its own parameters.
struct ClusterGroup {
  uint64_t number = 0;                           // N of fitParam.N
  std::string role;                              // "worker" or "ps"
  int index = 0;                                 // in its role
  std::map<std::string, std::string> params;     // all of the group, with jobName and taskIndex
  std::map<std::string, std::string> resources;  // resource.NAME: a path
};

struct ClusterParams {
  std::vector<ClusterGroup> groups;  // by number
  int workers = 0;
  int servers = 0;
  Word script;  // pythonScriptPath
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

inline constexpr size_t kMaxGroups = 10'000;

// Takes all parameters of the statement. Groups may be numbered in any order; the workers' task
// indices are 0 … W−1, and so are the servers', each once, or the error says which is missing.
// `span`: of ALGORITHM.`path`, for what is missing.
Result<ClusterParams> TakeClusterParams(Span span, OptionList* options);

}  // namespace shoal::sql
