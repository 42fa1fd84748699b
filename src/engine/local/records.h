// What the local engine writes down of a job, so that another process can take it over:
// `<job dir>/engine/tasks.json` (docs/formats/engine-records.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine {

struct TaskRecord {
  DesiredTask desired;
  int incarnation = 0;
  TaskPhase phase = TaskPhase::kStarting;
  int64_t pid = 0;
  uint64_t start_ticks = 0;  // with the pid: this process and no later one
};

struct JobRecords {
  std::string job_id;
  std::vector<std::string> group_bases;  // directories below which control groups may be
  std::vector<TaskRecord> tasks;
};

// "starting" and so on, as they stand in records.
std::string_view PhaseName(TaskPhase phase);
Result<TaskPhase> ParsePhase(std::string_view name);

// A task that is to exist, as it stands in these and in other engines' records; its resources are
// not among it.
json::object EncodeDesired(const DesiredTask& task);
Result<DesiredTask> DecodeDesired(const json::object& object);

std::string EncodeRecords(const JobRecords& records);
// Checks everything; InvalidArgument names the field. At most 100,000 tasks.
Result<JobRecords> DecodeRecords(std::string_view text);

// The directory of the engine's own files, and names in it.
std::filesystem::path EngineDir(const std::string& job_dir);
std::filesystem::path TaskLogPath(const std::string& job_dir, const std::string& role, int index);

// Not synced: after a crash of the machine there are no processes to find.
Status WriteRecords(const std::string& job_dir, const JobRecords& records);
// NotFound if there are none.
Result<JobRecords> ReadRecords(const std::string& job_dir);

}  // namespace shoal::engine
