#include "engine/local/job_records.h"

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"
#include "engine/tasks/task_json.h"

namespace shoal::engine {
namespace {

constexpr size_t kMaxFile = 64 << 20;
constexpr size_t kMaxTasks = 100'000;
constexpr int kVersion = 1;

json::object EncodeTask(const TaskRecord& task) {
  json::object object = EncodeDesiredTask(task.desired);
  object["incarnation"] = task.incarnation;
  object["phase"] = PhaseName(task.phase);
  object["pid"] = task.pid;
  object["start_ticks"] = static_cast<int64_t>(task.start_ticks);
  return object;
}

Result<TaskRecord> DecodeTask(const json::object& object) {
  TaskRecord task;
  TRY_ASSIGN(task.desired, DecodeDesiredTask(object));
  TRY_ASSIGN(task.incarnation, GetSmall(object, "incarnation"));
  TRY_ASSIGN(const std::string phase, GetString(object, "phase"));
  TRY_ASSIGN(task.phase, ParsePhase(phase));
  TRY_ASSIGN(task.pid, GetSmall(object, "pid"));
  TRY_ASSIGN(const int64_t ticks, GetInt(object, "start_ticks"));
  task.start_ticks = static_cast<uint64_t>(ticks);
  return task;
}

}  // namespace

std::string EncodeRecords(const JobRecords& records) {
  json::array tasks;
  for (const TaskRecord& task : records.tasks) tasks.push_back(EncodeTask(task));
  json::object object;
  object["version"] = kVersion;
  object["job"] = records.job_id;
  object["group_bases"] = json::array(records.group_bases.begin(), records.group_bases.end());
  object["tasks"] = std::move(tasks);
  return ToText(object) + "\n";
}

Result<JobRecords> DecodeRecords(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseRecord(text, kVersion));
  JobRecords records;
  TRY_ASSIGN(records.job_id, GetString(object, "job"));
  TRY(CheckName("job", records.job_id));
  TRY_ASSIGN(records.group_bases, GetStrings(object, "group_bases"));
  TRY_ASSIGN(records.tasks, DecodeTasks<TaskRecord>(object, kMaxTasks, DecodeTask));
  return records;
}

Status WriteRecords(const std::string& job_dir, const JobRecords& records) {
  const FileAccessAs owner(job_dir);
  return WriteFileAtomically(EngineDir(job_dir) / "tasks.json", EncodeRecords(records), 0600,
                             false);
}

Result<JobRecords> ReadRecords(const std::string& job_dir) {
  const FileAccessAs owner(job_dir);
  const std::filesystem::path path = EngineDir(job_dir) / "tasks.json";
  TRY_ASSIGN(const std::string text, ReadFile(path, kMaxFile));
  auto records = DecodeRecords(text);
  if (!records.ok()) return records.status().With(path.string());
  return records;
}

}  // namespace shoal::engine
