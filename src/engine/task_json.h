// Tasks as they stand in engines' records (docs/formats/engine-records.md).
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine {

// "starting" and so on, as they stand in records.
std::string_view PhaseName(TaskPhase phase);
Result<TaskPhase> ParsePhase(std::string_view name);

// A task that is to exist; its resources are not among it.
json::object EncodeDesired(const DesiredTask& task);
Result<DesiredTask> DecodeDesired(const json::object& object);

// A record with a field `version`, which must be `expected`.
Result<json::object> ParseRecord(std::string_view text, int expected);

// From 0 to 2^31 - 1.
Result<int> GetSmall(const json::object& object, const char* field);
Result<const json::array*> GetArray(const json::object& object, const char* field);
Result<std::vector<std::string>> GetStrings(const json::object& object, const char* field);

}  // namespace shoal::engine
