// Finds and ends what a job has left on this machine, by its id alone: control groups by name,
// processes by their environment. Used by the local engine's Stop and by `shoal doctor`.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::engine {

// What exists of one job.
struct JobRemains {
  std::string job_id;
  std::string job_dir;  // as a process of its says; empty if none does
  std::vector<int> pids;
  bool coordinator = false;  // one of them is the job's coordinator
  bool groups = false;       // it has control groups
};

// Kills every process with SHOAL_JOB_ID=job_id (but us and our ancestors) and everything in the
// job's control groups, removes the groups, and returns when nothing is left. DeadlineExceeded
// names what does not end. Costs one pass over /proc if there is nothing.
Status RemoveJobRemains(const std::string& job_id,
                        const std::vector<std::filesystem::path>& group_bases,
                        std::chrono::milliseconds limit = std::chrono::seconds(10));

// Processes and groups of all jobs, by job id. One pass over /proc.
std::vector<JobRemains> FindJobRemains(const std::vector<std::filesystem::path>& group_bases);

// True if a living engine looks after the job with this directory.
bool HasLiveEngine(const std::string& job_dir);

}  // namespace shoal::engine
