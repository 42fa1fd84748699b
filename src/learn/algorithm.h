// The built-in trainers: a registry from name to what an algorithm must bring. A new algorithm is a
// folder below src/learn and one line in algorithm.cc.
//
// src/controller calls ValidateLearn before a job is stored and src/cli makes flags from `params`;
// `shoal learn server|worker` (src/cli/internal/learn.cc) calls RunServer and RunWorker inside the
// tasks.
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

// Whether the machine of the command sees the files that the tasks will read. On a Kubernetes
// cluster they lie in volumes: then the workers are the first who can say what is wrong with them.
enum class DataLocation { kLocal, kRemote };

struct Algorithm {
  std::string_view name;          // "word2vec"
  std::string_view doc;           // one sentence
  std::span<const Param> params;  // constant, lives for ever
  // What the table cannot say: combinations of parameters, data formats, roles. Reads the output
  // directory and, where it is kLocal, whether the data can be read; writes nothing.
  Status (*validate)(const job::Job& job, DataLocation data) = nullptr;
  // Bodies of the two roles; they return when the task has done its part or must stop.
  Status (*run_server)(Task& task) = nullptr;
  Status (*run_worker)(Task& task) = nullptr;
  // Formats of its data, as a job file says them, separated by spaces; the first is the default.
  std::string_view formats = "text";
  bool held_out = false;  // measures a data entry named test
};

// All of them; constant, lives for ever.
std::span<const Algorithm> Algorithms();
// Null if there is none of that name.
const Algorithm* FindAlgorithm(std::string_view name);

// The whole check of a job of framework shoal: `learn.algorithm` is there and known, its parameters
// are in range, its data files, if they are here, exist and can be read, the output directory may
// be written (empty, absent, or an older model). OK for jobs of other frameworks. InvalidArgument,
// NotFound, PermissionDenied or FailedPrecondition, one sentence.
Status ValidateLearn(const job::Job& job, DataLocation data = DataLocation::kLocal);

// The body of `shoal learn ROLE`: reads the SHOAL_* environment, runs the role, reports the
// outcome. Returns the process's exit code (0, 1 or 2) after printing one sentence on standard
// error if it is not 0. Installs a SIGTERM handler: drain.
int RunTask(std::string_view role);

// The body of `shoal ps-server`: a parameter server for whatever the job's workers run. Exit codes
// and signals as RunTask.
int RunServerTask();

}  // namespace shoal::learn
