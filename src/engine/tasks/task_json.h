// JSON encoding of tasks in engines' records (docs/formats/engine-records.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine {

// The names of phases in records: "starting", …
std::string_view PhaseName(TaskPhase phase);
Result<TaskPhase> ParsePhase(std::string_view name);

// A desired task without its resources.
json::object EncodeDesiredTask(const DesiredTask& task);
Result<DesiredTask> DecodeDesiredTask(const json::object& object);

// Parses a record and checks that its field `version` is `expected`.
Result<json::object> ParseRecord(std::string_view text, int expected);

// An integer field in [0, 2^31 - 1].
Result<int> GetSmall(const json::object& object, const char* field);
Result<const json::array*> GetArray(const json::object& object, const char* field);
Result<std::vector<std::string>> GetStrings(const json::object& object, const char* field);

// Decodes the objects of the array `tasks`, at most `most` of them, by `decode`.
template <typename Task>
Result<std::vector<Task>> DecodeTasks(const json::object& object, size_t most,
                                      Result<Task> (*decode)(const json::object&)) {
  TRY_ASSIGN(const json::array* array, GetArray(object, "tasks"));
  if (array->size() > most) return InvalidArgument("tasks: more than " + std::to_string(most));
  std::vector<Task> tasks;
  for (const json::value& value : *array) {
    if (!value.is_object()) return InvalidArgument("tasks: expected objects");
    TRY_ASSIGN(Task task, decode(value.get_object()));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace shoal::engine
