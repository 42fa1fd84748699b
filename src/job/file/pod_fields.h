// The parts of a pod that a job file gives in Kubernetes' own words: where its pods may run beside
// which others, and as whom. Fields and their types are Kubernetes' definitions (one table,
// compared with the API's in a test), so that a misspelt one is told here, with its line, and what
// the cluster gets has the right types whatever YAML makes of `7` or `yes`.
//
// read_value.cc and the importers of Kubernetes' files read with it, reference.cc makes the JSON
// Schema of it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "job/text/yaml_tree.h"

namespace shoal::job {

// `fields`: "name=type" with blanks between, "name!=type" for those that must be there. A type is
// text, int, flag, a definition's name, [type] for a list or {text} for named texts.
struct PodDefinition {
  std::string_view name;
  std::string_view fields;
};
std::span<const PodDefinition> PodDefinitions();

// Told of each thing that is wrong.
using PodErrorHandler = std::function<void(const SourceLocation& place, const std::string& path,
                                           const std::string& sentence)>;

// The node as a value of `type`; fields without a value are left out. Nothing if something is
// wrong. The definitions do not contain themselves, so depth is bounded. O(nodes).
std::optional<json::value> ReadPodValue(const Node& node, std::string_view type,
                                        const std::string& path, const PodErrorHandler& wrong);

// What ReadPodValue takes, as JSON Schema.
json::object PodValueSchema(std::string_view type);

}  // namespace shoal::job
