// Finds and removes a job's processes and control groups on this machine by the job's id alone:
// groups by name, processes by their environment. Used by the local engine's Stop and by `shoal
// doctor`.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::engine {

// Processes and groups of one job.
struct JobRemains {
  std::string job_id;
  std::string job_dir;  // from a process's environment; empty if unknown
  std::vector<int> pids;
  bool coordinator = false;  // one of them is the job's coordinator
  bool groups = false;       // control groups exist
};

// Kills every process with SHOAL_JOB_ID=job_id (except this process and its ancestors) and
// everything in the job's control groups, removes the groups, and returns when nothing is left.
// DeadlineExceeded names processes that do not end. Costs one pass over /proc if there is nothing.
Status RemoveJobRemains(const std::string& job_id,
                        const std::vector<std::filesystem::path>& group_bases,
                        std::chrono::milliseconds limit = std::chrono::seconds(10));

// Processes and groups of all jobs, by job id. One pass over /proc.
std::vector<JobRemains> FindJobRemains(const std::vector<std::filesystem::path>& group_bases);

// Whether a running engine holds the lock of the job with this directory.
bool HasLiveEngine(const std::string& job_dir);

}  // namespace shoal::engine
