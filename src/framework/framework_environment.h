// The environment variables that a framework's programs expect: one implementation for each
// framework, registered in framework_environment.cc.
//
// The coordinator renders the environment of every task with these functions and sends it to the
// task's launcher. Launchers do not link this code.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "framework/cluster.h"
#include "job/spec/job.h"

namespace shoal::framework {

using Environment = std::map<std::string, std::string>;

// Linux's limit for one "NAME=value" with its terminating NUL (MAX_ARG_STRLEN, 32 pages).
inline constexpr size_t kMaxVariableBytes = 131'072;

// The identity of one task, and paths that only its coordinator or launcher knows. An empty path is
// left out of the environment; the launcher then adds it.
struct TaskContext {
  std::string job_id;
  std::string role;
  int index = 0;
  int attempt = 0;
  std::string token_file;
  std::string scratch;
  std::string job_dir;
  std::string cluster_file;
  std::string checkpoint_dir;
  int report_fd = -1;        // -1: left out
  int initial_replicas = 0;  // of an elastic role, when all tasks last began; 0: left out
};

// The variables of one framework. Implementations are stateless singletons that live as long as the
// process; all methods are thread-safe and pure.
//
// RenderEnvironment calls AddVariables once for each task, and RenderProcesses calls
// AddProcessVariables once for each process of a task that has several.
class FrameworkEnvironment {
 public:
  virtual ~FrameworkEnvironment() = default;
  virtual job::Framework framework() const = 0;
  // False if the framework itself starts the `processes` of a task (mpirun does): the launcher then
  // starts one process.
  virtual bool StartsProcesses() const { return true; }
  // Adds the framework's variables for one task to `env`, which already holds the job's variables
  // and the common SHOAL_… ones. InvalidArgument if the job lacks a role or a port that the
  // framework needs.
  virtual Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                              const TaskContext& task, Environment* env) const = 0;
  // For a task with several processes: sets in `env` the variables whose values differ in process
  // `local_rank` (0 … processes − 1). `env` holds the environment of the task, which is that of
  // local rank 0, with SHOAL_LOCAL_RANK and SHOAL_LOCAL_SIZE already set for this process. The
  // default implementation changes nothing.
  virtual Status AddProcessVariables(const job::Job& job, const ClusterDescription& cluster,
                                     const TaskContext& task, int local_rank,
                                     Environment* env) const;
};

// The implementation for a framework. Unimplemented, with the list of supported frameworks, if
// there is none.
Result<const FrameworkEnvironment*> FindFrameworkEnvironment(job::Framework framework);

// Renders the environment of one task: the variables of the job and of the role, the common SHOAL_…
// variables, and the framework's.
//
// SHOAL_CLUSTER is not included, so that thousands of tasks can share one SerializedCluster: the
// launcher adds it with AddClusterVariable. InvalidArgument for an unknown role or index;
// ResourceExhausted names a variable longer than kMaxVariableBytes. O(tasks of the job) for
// frameworks that list all addresses.
Result<Environment> RenderEnvironment(const job::Job& job, const ClusterDescription& cluster,
                                      const TaskContext& task);

// The differences between the processes of one task: for each local rank the variables whose values
// differ from `env` (the result of RenderEnvironment) or are missing there. A role with one process
// gives one empty entry.
Result<std::vector<Environment>> RenderProcesses(const job::Job& job,
                                                 const ClusterDescription& cluster,
                                                 const TaskContext& task, const Environment& env);

// Sets SHOAL_CLUSTER if the text fits into one variable; otherwise does nothing.
void AddClusterVariable(const SerializedCluster& text, Environment* env);

}  // namespace shoal::framework
