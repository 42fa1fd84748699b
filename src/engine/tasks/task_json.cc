#include "engine/tasks/task_json.h"

#include <iterator>

#include "engine/tasks/restart_rules.h"

namespace shoal::engine {
namespace {

constexpr const char* kPhases[] = {"starting", "running", "ended", "lost", "refused"};

}  // namespace

std::string_view PhaseName(TaskPhase phase) { return kPhases[static_cast<size_t>(phase)]; }

Result<TaskPhase> ParsePhase(std::string_view name) {
  for (size_t i = 0; i < std::size(kPhases); ++i) {
    if (name == kPhases[i]) return static_cast<TaskPhase>(i);
  }
  return InvalidArgument("phase: got \"" + std::string(name) +
                         "\", expected starting, running, ended, …");
}

json::object EncodeDesiredTask(const DesiredTask& task) {
  json::object env;
  for (const auto& [name, value] : task.env) env[name] = value;
  json::object object;
  object["role"] = task.role;
  object["index"] = task.index;
  object["argv"] = json::array(task.argv.begin(), task.argv.end());
  object["env"] = std::move(env);
  object["work_dir"] = task.work_dir;
  object["restart_if_lost"] = task.restart_if_lost;
  if (!task.excluded_hosts.empty())
    object["excluded_hosts"] = json::array(task.excluded_hosts.begin(), task.excluded_hosts.end());
  return object;
}

Result<DesiredTask> DecodeDesiredTask(const json::object& object) {
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
  if (object.contains("excluded_hosts")) {
    TRY_ASSIGN(task.excluded_hosts, GetStrings(object, "excluded_hosts"));
  }
  return task;
}

Result<json::object> ParseRecord(std::string_view text, int expected) {
  TRY_ASSIGN(json::object object, ParseJsonObject(text));
  TRY_ASSIGN(const int64_t version, GetInt(object, "version"));
  if (version == expected) return object;
  return InvalidArgument("version: got " + std::to_string(version) + ", expected " +
                         std::to_string(expected) + "; it was written by another version of shoal");
}

Result<int> GetSmall(const json::object& object, const char* field) {
  TRY_ASSIGN(const int64_t value, GetInt(object, field));
  if (value < 0 || value > INT32_MAX)
    return InvalidArgument(std::string(field) + ": got " + std::to_string(value) +
                           ", expected 0 to 2147483647");
  return static_cast<int>(value);
}

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

}  // namespace shoal::engine
