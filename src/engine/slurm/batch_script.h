// The batch script that a job is to Slurm. Used by the engine and by `shoal plan --engine slurm`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/slurm/cell_placement.h"

namespace shoal::engine::slurm {

// Exit codes of the script, told from those of anything else.
inline constexpr int kDirectoryNotSeen = 72;  // the job's directory is not there on the node

// The whole script, its #SBATCH lines included, those of each component. `program`: shoal.
// InvalidArgument where a text has a line break or an option of the file is none.
Result<std::string> RenderScript(const DesiredJob& desired, const std::vector<CellPlan>& plan,
                                 const std::string& program);

// The same, asked for at once or not at all, with the job's agent on this machine.
struct ImmediateRequest {
  std::vector<std::string> salloc;  // tells the allocation as grant.h has it, and holds it
  std::vector<std::string> agent;
};
// Of an allocation of one component. Errors as RenderScript.
Result<ImmediateRequest> MakeImmediateRequest(const DesiredJob& desired, const CellPlan& plan,
                                              const std::string& program);

// The words of an srun that starts `tasks` tasks with such resources in the job's allocation on
// the nodes of a file (one line a task). `overlap`: on processors that steps hold already. `group`:
// the component, where there are several (HetGroupOption).
std::vector<std::string> StepArgv(const job::Resources& resources, size_t tasks,
                                  const std::string& nodes_file, bool overlap = false,
                                  const std::string& group = "");

// What every srun in a heterogeneous allocation must say, also for the first component.
std::string HetGroupOption(int component);

// What identifies our jobs: their comment.
std::string CommentOf(const std::string& job_id);
// The inverse; empty if it is no comment of ours.
std::string JobIdOfComment(std::string_view comment);

}  // namespace shoal::engine::slurm
