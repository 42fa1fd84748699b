// The registry of built-in trainers. A new algorithm is a folder below src/learn and one line in
// algorithm.cc.
//
// The controller and the command call ValidateLearn before a job is stored; src/cli makes flags
// from `params`; `shoal learn server
// worker` (src/cli/internal/learn.cc) calls RunTask inside the tasks. The registry is constant and
// thread-safe; RunTask and RunServerTask are called once a process.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "learn/params/params.h"

namespace shoal::learn {

class Task;

// Whether the calling machine sees the files that the tasks will read. With Kubernetes they are in
// volumes: then only the workers can check them.
enum class DataLocation { kLocal, kRemote };

// One algorithm: its parameters, its validation and the bodies of its roles.
struct Algorithm {
  std::string_view name;          // "word2vec"
  std::string_view doc;           // one sentence
  std::span<const Param> params;  // static storage
  // Checks beyond the parameter table: combinations of parameters, data formats, roles, the output
  // directory, and with kLocal also whether the data is readable. Writes nothing.
  Status (*validate)(const job::Job& job, DataLocation data) = nullptr;
  // Bodies of the two roles. They return when the task is done or must stop.
  Status (*run_server)(Task& task) = nullptr;
  Status (*run_worker)(Task& task) = nullptr;
  // Accepted data formats, as in a job file, separated by spaces; the first is the default.
  std::string_view formats = "text";
  bool held_out = false;  // evaluates a data entry named "test"
};

// All algorithms; static storage.
std::span<const Algorithm> Algorithms();
// Null if there is none of that name.
const Algorithm* FindAlgorithm(std::string_view name);

// Validates a job of framework shoal: `learn.algorithm` exists, its parameters are in range, its
// data files (with kLocal) are readable, and the output directory is writable (empty, absent, or an
// older model). OK for jobs of other frameworks. InvalidArgument, NotFound, PermissionDenied or
// FailedPrecondition with one sentence.
Status ValidateLearn(const job::Job& job, DataLocation data = DataLocation::kLocal);

// Whether the job's data or model is in a store (s3://, https://) and not in files.
bool UsesStores(const job::Job& job);

// The body of `shoal learn ROLE`: reads the SHOAL_* environment, runs the role, reports the
// outcome. Returns the exit code 0, 1 or 2, after printing one sentence on standard error unless it
// is 0. Installs a SIGTERM handler that drains.
int RunTask(std::string_view role);

// The body of `shoal ps-server`: a parameter server for arbitrary workers. Exit codes and signals
// as RunTask.
int RunServerTask();

}  // namespace shoal::learn
