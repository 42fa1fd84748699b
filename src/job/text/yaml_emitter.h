// A tree of nodes as the YAML that people would have written: block style above, flow style for
// what fits a line, literal blocks for scripts, comments where they belong. The counterpart of
// yaml_tree.h; write.h uses it for jobs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "job/text/yaml_tree.h"

namespace shoal::job {

// Sentences that stand as comments before a field, by its path ("roles.worker.restart"); "" is the
// top of the file. One whose field is not in the tree stands before the innermost section that is.
using Comments = std::map<std::string, std::vector<std::string>>;

// Scalars with `quoted` are texts: put in quotes where a reader of YAML might take them for a
// number, a flag or nothing. ParseYaml gives the same tree back, places aside. `root` is a map.
// O(nodes).
std::string EmitYaml(const Node& root, const Comments& comments);

// Makers of nodes without a place.
Node PlainScalar(std::string text);  // numbers, flags, enumerators
Node TextScalar(std::string text);
Node TextListNode(const std::vector<std::string>& texts);
Node NullNode();
// A value of JSON as it would stand in a file.
Node FromJson(const json::value& value);
// Adds a field to a map (or to a null node, which becomes one).
Node* AddField(Node* map, std::string key, Node value);

}  // namespace shoal::job
