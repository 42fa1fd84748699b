// Changes of YAML trees, for importers that build one description from several: the values of one
// document are put into another, which is then read as usual. Every node keeps its location.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/text/yaml_tree.h"

namespace shoal::importer {

// Merges `patch` into `target` as a strategic merge patch: maps by their keys; lists of containers,
// variables, volumes, replicated jobs and pull secrets by name, and mounts by path; any other value
// replaces the target. `field`: the name of the field that holds both. Does nothing if `target` is
// nullptr. Cost: O(nodes of both).
void MergePatch(const job::Node& patch, std::string_view field, job::Node* target);

// The value of `key` in a map, added as null if it is missing. A null node becomes a map. nullptr
// if `map` is nullptr or of another kind, which the reader of the result reports.
job::Node* FindOrAdd(job::Node* map, const std::string& key);
// Sets a field of such a map; does nothing where FindOrAdd gives nullptr.
void SetField(job::Node* map, const std::string& key, job::Node value);
// A list with these items, at the place of `like`.
job::Node ListOf(std::vector<job::Node> items, const job::Node& like);

}  // namespace shoal::importer
