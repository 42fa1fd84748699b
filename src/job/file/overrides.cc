// Applies --set PATH=VALUE to the tree before it is decoded, so overrides pass the same checks as
// the file.
#include "job/file/decode.h"

namespace shoal::job {
namespace {

std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> parts(1);
  for (const char c : path) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Expands a scalar in place of a section ("worker: 4") to the section it abbreviates.
bool WidenShorthand(const std::vector<std::string>& parts, size_t depth, Node* node) {
  if (depth != 1) return false;
  const Field* field = FindField(parts[0]);
  if (field == nullptr || field->shorthand.empty()) return false;
  Node section;
  section.kind = Node::Kind::kMap;
  section.place = node->place;
  section.keys.push_back({std::string(field->shorthand), node->place});
  section.items.push_back(std::move(*node));
  *node = std::move(section);
  return true;
}

// The child of `node` with this name, created if missing.
Node* Child(Node* node, const std::string& name, const SourceLocation& place) {
  if (Node* found = node->Find(name)) return found;
  node->keys.push_back({name, place});
  node->items.emplace_back();
  node->items.back().place = place;
  return &node->items.back();
}

Node ParseSetValue(std::string_view text, int set, Errors* errors) {
  if (!text.empty() && std::string_view("[{\"'").find(text[0]) != std::string_view::npos) {
    return ParseYaml(text, set, errors);
  }
  Node node;
  node.place.set = set;
  if (!IsText(text)) {
    errors->Add(node.place, "", "got " + PrintableText(text) + ", expected a text of UTF-8");
    return node;
  }
  node.kind = text.empty() ? Node::Kind::kNull : Node::Kind::kScalar;
  node.text = text;
  return node;
}

// Applies one argument, number `set`: walks the path, creates missing sections and sets the value.
void ApplyOne(const std::string& argument, int set, Node* root, Errors* errors) {
  const SourceLocation place{0, 0, set};
  const size_t equals = argument.find('=');
  const std::vector<std::string> parts = Split(std::string_view(argument).substr(0, equals));
  for (const std::string& part : parts) {
    if (!part.empty() && equals != std::string::npos && parts.size() <= kMaxDepth) continue;
    errors->Add(place, "", "expected PATH=VALUE, such as roles.worker.replicas=8");
    return;
  }
  Node* node = root;
  std::string path;
  for (size_t depth = 0; depth < parts.size(); ++depth) {
    if (node->kind == Node::Kind::kNull) {
      node->kind = Node::Kind::kMap;
      node->text.clear();
    }
    if (node->kind != Node::Kind::kMap && !WidenShorthand(parts, depth - 1, node)) {
      errors->Add(place, path,
                  "this is " + DescribeNode(*node) + " in the job, expected a section of fields");
      return;
    }
    if (node->Find(parts[depth]) == nullptr && node->keys.size() >= kMaxNodes) return;
    node = Child(node, parts[depth], place);
    path += (depth > 0 ? "." : "") + parts[depth];
  }
  *node = ParseSetValue(std::string_view(argument).substr(equals + 1), set, errors);
}

}  // namespace

void ApplyOverrides(const std::vector<std::string>& overrides, Node* root, Errors* errors) {
  for (size_t i = 0; i < overrides.size(); ++i) {
    ApplyOne(overrides[i], static_cast<int>(i), root, errors);
  }
}

}  // namespace shoal::job
