#include "engine/local/records.h"

#include "base/file.h"
#include "base/json.h"
#include "engine/restart_rules.h"

namespace shoal::engine {
namespace {

constexpr size_t kMaxFile = 64 << 20;
constexpr size_t kMaxTasks = 100'000;
constexpr int kVersion = 1;

constexpr const char* kPhases[] = {"starting", "running", "ended", "lost", "refused"};

Result<const json::array*> GetArray(const json::object& object, const char* field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_array())
    return InvalidArgument(std::string(field) + ": expected an array");
  return &value->get_array();
}

Result<std::vector<std::string>> GetStrings(const json::object& object, const char* field) {
  TRY_ASSIGN(const json::array* array, GetArray(object, field));
  std::vector<std::string> strings;
  for (const json::value& value : *array) {
    if (!value.is_string()) return InvalidArgument(std::string(field) + ": expected strings");
    strings.emplace_back(value.get_string());
  }
  return strings;
}

json::object EncodeTask(const TaskRecord& task) {
  json::object object = EncodeDesired(task.desired);
  object["incarnation"] = task.incarnation;
  object["phase"] = PhaseName(task.phase);
  object["pid"] = task.pid;
  object["start_ticks"] = static_cast<int64_t>(task.start_ticks);
  return object;
}

Result<int> GetSmall(const json::object& object, const char* field) {
  TRY_ASSIGN(const int64_t value, GetInt(object, field));
  if (value < 0 || value > INT32_MAX)
    return InvalidArgument(std::string(field) + ": got " + std::to_string(value) +
                           ", expected 0 to 2147483647");
  return static_cast<int>(value);
}

Result<TaskRecord> DecodeTask(const json::value& value) {
  if (!value.is_object()) return InvalidArgument("tasks: expected objects");
  const json::object& object = value.get_object();
  TaskRecord task;
  TRY_ASSIGN(task.desired, DecodeDesired(object));
  TRY_ASSIGN(task.incarnation, GetSmall(object, "incarnation"));
  TRY_ASSIGN(const std::string phase, GetString(object, "phase"));
  TRY_ASSIGN(task.phase, ParsePhase(phase));
  TRY_ASSIGN(task.pid, GetSmall(object, "pid"));
  TRY_ASSIGN(const int64_t ticks, GetInt(object, "start_ticks"));
  task.start_ticks = static_cast<uint64_t>(ticks);
  return task;
}

}  // namespace

std::string_view PhaseName(TaskPhase phase) { return kPhases[static_cast<size_t>(phase)]; }

Result<TaskPhase> ParsePhase(std::string_view name) {
  for (size_t i = 0; i < std::size(kPhases); ++i) {
    if (name == kPhases[i]) return static_cast<TaskPhase>(i);
  }
  return InvalidArgument("phase: got \"" + std::string(name) +
                         "\", expected starting, running, ended, …");
}

json::object EncodeDesired(const DesiredTask& task) {
  json::object env;
  for (const auto& [name, value] : task.env) env[name] = value;
  json::object object;
  object["role"] = task.role;
  object["index"] = task.index;
  object["argv"] = json::array(task.argv.begin(), task.argv.end());
  object["env"] = std::move(env);
  object["work_dir"] = task.work_dir;
  object["restart_if_lost"] = task.restart_if_lost;
  return object;
}

Result<DesiredTask> DecodeDesired(const json::object& object) {
  DesiredTask task;
  TRY_ASSIGN(task.role, GetString(object, "role"));
  TRY(CheckName("role", task.role));
  TRY_ASSIGN(task.index, GetSmall(object, "index"));
  TRY_ASSIGN(task.argv, GetStrings(object, "argv"));
  if (task.argv.empty()) return InvalidArgument("argv: is empty");
  if (const json::value* env = object.if_contains("env"); env != nullptr && env->is_object()) {
    for (const auto& [name, text] : env->get_object()) {
      if (!text.is_string()) return InvalidArgument("env: expected strings");
      task.env.emplace(name, text.get_string());
    }
  }
  TRY_ASSIGN(task.work_dir, GetString(object, "work_dir"));
  TRY_ASSIGN(task.restart_if_lost, GetBool(object, "restart_if_lost"));
  return task;
}

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
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  TRY_ASSIGN(const int64_t version, GetInt(object, "version"));
  if (version != kVersion) {
    return InvalidArgument("version: got " + std::to_string(version) +
                           ", expected 1; it was written by another version of shoal");
  }
  JobRecords records;
  TRY_ASSIGN(records.job_id, GetString(object, "job"));
  TRY(CheckName("job", records.job_id));
  TRY_ASSIGN(records.group_bases, GetStrings(object, "group_bases"));
  TRY_ASSIGN(const json::array* tasks, GetArray(object, "tasks"));
  if (tasks->size() > kMaxTasks) return InvalidArgument("tasks: more than 100000");
  for (const json::value& value : *tasks) {
    TRY_ASSIGN(TaskRecord task, DecodeTask(value));
    records.tasks.push_back(std::move(task));
  }
  return records;
}

std::filesystem::path EngineDir(const std::string& job_dir) {
  return std::filesystem::path(job_dir) / "engine";
}

std::filesystem::path TaskLogPath(const std::string& job_dir, const std::string& role, int index) {
  return EngineDir(job_dir) / (role + "-" + std::to_string(index) + ".log");
}

Status WriteRecords(const std::string& job_dir, const JobRecords& records) {
  return WriteFileAtomically(EngineDir(job_dir) / "tasks.json", EncodeRecords(records), 0600,
                             false);
}

Result<JobRecords> ReadRecords(const std::string& job_dir) {
  const std::filesystem::path path = EngineDir(job_dir) / "tasks.json";
  TRY_ASSIGN(const std::string text, ReadFile(path, kMaxFile));
  auto records = DecodeRecords(text);
  if (!records.ok()) return records.status().With(path.string());
  return records;
}

}  // namespace shoal::engine
