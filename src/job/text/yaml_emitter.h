// Writes a tree of nodes as YAML in the style of a handwritten file: block style for sections, flow
// style for values that fit on a line, literal blocks for scripts, and comments before the fields
// they describe. The counterpart of yaml_tree.h; write_yaml.h uses it for jobs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "job/text/yaml_tree.h"

namespace shoal::job {

// Comments by the path of the field they precede ("roles.worker.restart"); "" is the top of the
// file. A comment whose field is not in the tree goes before the innermost section that is.
using Comments = std::map<std::string, std::vector<std::string>>;

// Scalars with `quoted` are texts, quoted where a YAML reader could take them for a number, a flag
// or null. ParseYaml restores the same tree, except its locations. `root` is a map. O(nodes).
std::string EmitYaml(const Node& root, const Comments& comments);

// Constructors of nodes without a location.
Node PlainScalar(std::string text);  // numbers, flags, enumerators
Node TextScalar(std::string text);
Node TextListNode(const std::vector<std::string>& texts);
Node NullNode();
// Converts a JSON value to the node that a file would have for it.
Node FromJson(const json::value& value);
// Appends a field to a map; a null node becomes a map. Returns the field's node, valid until the
// next field is added to the same map.
Node* AddField(Node* map, std::string key, Node value);

}  // namespace shoal::job
