// Parts of a pod that a job file gives in the schema of the Kubernetes API: affinity, topology
// spread and security contexts. One table holds the fields and types (a test compares it with the
// API's), so misspelt fields are reported with their line, and the cluster receives the right types
// for YAML scalars such as `7` and `yes`.
//
// Used by read_value.cc and the importers of Kubernetes manifests; reference_page.cc derives the
// JSON Schema from it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "job/text/yaml_tree.h"

namespace shoal::job {

// `fields`: space-separated "name=type", or "name!=type" for required fields. A type is text, int,
// flag, the name of a definition, [type] for a list or {text} for a map of texts.
struct PodDefinition {
  std::string_view name;
  std::string_view fields;
};
std::span<const PodDefinition> PodDefinitions();

// Receives every problem that is found.
using PodErrorHandler = std::function<void(const SourceLocation& place, const std::string& path,
                                           const std::string& sentence)>;

// Converts the node to a value of `type`; fields without a value are omitted. Nothing after a
// problem. Definitions are not recursive, so the depth is bounded. O(nodes).
std::optional<json::value> ReadPodValue(const Node& node, std::string_view type,
                                        const std::string& path, const PodErrorHandler& wrong);

// The JSON Schema of the values that ReadPodValue accepts.
json::object PodValueSchema(std::string_view type);

}  // namespace shoal::job
