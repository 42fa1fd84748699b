// A dialect knows what one framework's programs expect to find in their environment. One file a
// framework, registered in the table of dialect.cc.
//
// The coordinator renders each task's environment with it; launchers do not link it.
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

// Linux's bound for one "NAME=value" with its end (MAX_ARG_STRLEN, 32 pages).
inline constexpr size_t kMaxVariableBytes = 131'072;

// One task, and what only its coordinator or launcher knows. A path that is empty is left out of
// the environment: the launcher adds what it alone knows.
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
  int report_fd = -1;  // -1: left out
};

// Stateless, thread-safe.
class FrameworkEnvironment {
 public:
  virtual ~FrameworkEnvironment() = default;
  virtual job::Framework framework() const = 0;
  // False if the framework starts a task's `processes` itself, so that the launcher starts one.
  virtual bool StartsProcesses() const { return true; }
  // Adds this framework's own variables for one task; the common SHOAL_… ones are there already.
  virtual Status AddVariables(const job::Job& job, const ClusterDescription& cluster,
                              const TaskContext& task, Environment* env) const = 0;
  // For one process of a task of several (`processes` of its role): changes in `env`, which holds
  // all that was rendered for the task (that is, for local rank 0), what is different in the
  // process `local_rank`, 0 … processes - 1. SHOAL_LOCAL_RANK and SHOAL_LOCAL_SIZE are set already,
  // and here nothing is different besides.
  virtual Status AddProcessVariables(const job::Job& job, const ClusterDescription& cluster,
                                     const TaskContext& task, int local_rank,
                                     Environment* env) const;
};

// The dialect of a framework; Unimplemented names those that exist.
Result<const FrameworkEnvironment*> FindFrameworkEnvironment(job::Framework framework);

// The whole environment of one task: the job's and the role's variables, the common SHOAL_… ones,
// the framework's. SHOAL_CLUSTER is not in it, so that thousands of tasks share one
// SerializedCluster: who starts the program adds it when SerializedCluster::fits_variable (see
// AddClusterVariable). InvalidArgument for an unknown role or index; ResourceExhausted names a
// variable that is too long.
Result<Environment> RenderEnvironment(const job::Job& job, const ClusterDescription& cluster,
                                      const TaskContext& task);

// What the processes of one task have over `env`, which RenderEnvironment gave for the task: by
// local rank, only the variables that `env` lacks or has with another value. One entry, an empty
// one, for a role of one process.
Result<std::vector<Environment>> RenderProcesses(const job::Job& job,
                                                 const ClusterDescription& cluster,
                                                 const TaskContext& task, const Environment& env);

// Sets SHOAL_CLUSTER if the text fits a variable; leaves it out otherwise.
void AddClusterVariable(const SerializedCluster& text, Environment* env);

}  // namespace shoal::framework
