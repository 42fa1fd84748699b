// A model's history and versions as JSON: of `shoal models --json` and of the REST interface.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/status.h"
#include "serving/registry/model_history.h"

namespace shoal::serving {

enum class Detail : uint8_t {
  kBrief,  // versions that live, with their measures
  kWhole,  // all versions with files and metadata, from which HistoryFromJson makes the history
};

// All that is known of a version, with `name`, `tags` and `bytes`.
json::object VersionJson(const std::string& name, const ModelVersion& version,
                         const ModelHistory& history);
// {"name", "tags": {TAG: N}, "previous": N of a rollback or 0, "versions": […]}.
json::object HistoryJson(const std::string& name, const ModelHistory& history, Detail detail);
// What HistoryJson made with kWhole; it knows no more what tags have named before. DataLoss.
Result<ModelHistory> HistoryFromJson(const json::object& object);

// What a version was measured with: the object `held_out` or `validation` of its metadata.
const json::object* MeasuresOf(const ModelVersion& version);

// Fields of model.json, as "OUTER.INNER", and digests of files that differ: by name the texts of
// both, empty where one has none.
using Differences = std::map<std::string, std::pair<std::string, std::string>>;
Differences Compare(const ModelVersion& first, const ModelVersion& second);
// Fields of nested objects as "OUTER.INNER".
std::map<std::string, std::string> FlatFields(const json::object& object);
// {"versions": [`first`, `second`], "differences": {NAME: [TEXT, TEXT]}}.
json::object DifferencesJson(const std::string& first, const std::string& second,
                             const Differences& differences);

}  // namespace shoal::serving
