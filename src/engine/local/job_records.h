// The local engine's records of a job, from which another process adopts it:
// `<job dir>/engine/tasks.json` (docs/formats/engine-records.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine {

// The record of one task.
struct TaskRecord {
  DesiredTask desired;
  int incarnation = 0;
  TaskPhase phase = TaskPhase::kStarting;
  int64_t pid = 0;
  uint64_t start_ticks = 0;  // identifies the process together with the pid
};

// The records of one job.
struct JobRecords {
  std::string job_id;
  std::vector<std::string> group_bases;  // directories that may contain the job's control groups
  std::vector<TaskRecord> tasks;
};

std::string EncodeRecords(const JobRecords& records);
// Checks everything; InvalidArgument names the field. At most 100,000 tasks.
Result<JobRecords> DecodeRecords(std::string_view text);

// Not synced to disk: after a crash of the machine there is no process to adopt.
Status WriteRecords(const std::string& job_dir, const JobRecords& records);
// NotFound if there are none.
Result<JobRecords> ReadRecords(const std::string& job_dir);

}  // namespace shoal::engine
