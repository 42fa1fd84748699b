#include "import/conversion/node_edit.h"

#include <unordered_map>
#include <utility>

namespace shoal::importer {
namespace {

using job::Node;

// The field by which items of a list are the same; empty: the list is replaced as a whole.
std::string_view KeyOfItems(std::string_view list) {
  for (const std::string_view named :
       {"containers", "initContainers", "env", "volumes", "replicatedJobs", "imagePullSecrets"}) {
    if (list == named) return "name";
  }
  return list == "volumeMounts" ? "mountPath" : "";
}

void MergeMaps(const Node& patch, Node* target) {
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < target->keys.size(); ++i) index.emplace(target->keys[i].text, i);
  for (size_t i = 0; i < patch.keys.size(); ++i) {
    const auto [found, added] = index.emplace(patch.keys[i].text, target->keys.size());
    if (added) {
      target->keys.push_back(patch.keys[i]);
      target->items.push_back(patch.items[i]);
    } else {
      MergePatch(patch.items[i], patch.keys[i].text, &target->items[found->second]);
    }
  }
}

void MergeLists(const Node& patch, std::string_view key, Node* target) {
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < target->items.size(); ++i) {
    const Node* name = target->items[i].Find(key);
    if (name != nullptr) index.emplace(name->text, i);
  }
  for (const Node& item : patch.items) {
    const Node* name = item.Find(key);
    const auto found = name == nullptr ? index.end() : index.find(name->text);
    if (found != index.end()) {
      MergePatch(item, "", &target->items[found->second]);
    } else {
      if (name != nullptr) index.emplace(name->text, target->items.size());
      target->items.push_back(item);
    }
  }
}

}  // namespace

void MergePatch(const Node& patch, std::string_view field, Node* target) {
  if (target == nullptr) return;
  const std::string_view key = KeyOfItems(field);
  if (patch.kind == Node::Kind::kMap && target->kind == Node::Kind::kMap) {
    MergeMaps(patch, target);
  } else if (patch.kind == Node::Kind::kList && target->kind == Node::Kind::kList && !key.empty()) {
    MergeLists(patch, key, target);
  } else if (patch.kind != Node::Kind::kNull) {
    *target = patch;
  }
}

Node* FindOrAdd(Node* map, const std::string& key) {
  if (map == nullptr) return nullptr;
  if (map->kind == Node::Kind::kNull) map->kind = Node::Kind::kMap;
  if (map->kind != Node::Kind::kMap) return nullptr;
  Node* found = map->Find(key);
  if (found != nullptr) return found;
  map->keys.push_back({key, map->place});
  map->items.emplace_back();
  map->items.back().place = map->place;
  return &map->items.back();
}

void SetField(Node* map, const std::string& key, Node value) {
  Node* field = FindOrAdd(map, key);
  if (field != nullptr) *field = std::move(value);
}

Node ListOf(std::vector<Node> items, const Node& like) {
  Node list;
  list.kind = Node::Kind::kList;
  list.place = like.place;
  list.items = std::move(items);
  return list;
}

}  // namespace shoal::importer
