// Renders a job as a Slurm batch script. Pure. Used by the engine and by `shoal plan --engine
// slurm`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/slurm/cell_placement.h"

namespace shoal::engine::slurm {

// Exit code of the script that no other program in it uses.
inline constexpr int kDirectoryNotSeen = 72;  // the node does not see the job's directory

// The whole script with the #SBATCH lines of every component. `program`: path of shoal.
// InvalidArgument if a text contains a line break or an option of the job file is invalid.
Result<std::string> RenderScript(const DesiredJob& desired, const std::vector<CellPlan>& plan,
                                 const std::string& program);

// The commands of an immediate allocation (salloc --immediate), with the agent on this machine.
struct ImmediateRequest {
  std::vector<std::string> salloc;  // reports the allocation as in grant.h and keeps it open
  std::vector<std::string> agent;
};
// For an allocation of one component. Errors as RenderScript.
Result<ImmediateRequest> MakeImmediateRequest(const DesiredJob& desired, const CellPlan& plan,
                                              const std::string& program);

// The command line of an srun that starts `tasks` tasks with these resources in the job's
// allocation, on the nodes listed in a file (one line per task). `overlap`: may use processors of
// other steps. `group`: HetGroupOption in a heterogeneous allocation.
std::vector<std::string> StepArgv(const job::Resources& resources, size_t tasks,
                                  const std::string& nodes_file, bool overlap = false,
                                  const std::string& group = "");

// The option that every srun in a heterogeneous allocation needs, also for component 0.
std::string HetGroupOption(int component);

// The Slurm comment that identifies a Shoal job.
std::string CommentOf(const std::string& job_id);
// The job id in a Slurm comment; empty if the comment is not Shoal's.
std::string JobIdOfComment(std::string_view comment);

}  // namespace shoal::engine::slurm
