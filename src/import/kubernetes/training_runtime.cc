#include "import/kubernetes/training_runtime.h"

#include <unordered_map>
#include <utility>

namespace shoal::importer {
namespace {

using job::Node;

constexpr const char* kStepLabel = "trainer.kubeflow.org/trainjob-ancestor-step";

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

Node* FindItem(Node* list, std::string_view key, std::string_view value) {
  if (list == nullptr || list->kind != Node::Kind::kList) return nullptr;
  for (Node& item : list->items) {
    const Node* found = item.Find(key);
    if (found != nullptr && found->text == value) return &item;
  }
  return nullptr;
}

Node Number(int value, const job::SourceLocation& place) {
  Node node;
  node.kind = Node::Kind::kScalar;
  node.text = std::to_string(value);
  node.place = place;
  return node;
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

Node* FindReplicatedJob(Node* spec, std::string_view step) {
  Node* jobs = spec == nullptr ? nullptr : spec->Find("replicatedJobs");
  if (jobs == nullptr || jobs->kind != Node::Kind::kList) return nullptr;
  for (Node& one : jobs->items) {
    const Node* at = &one;
    for (const char* key : {"template", "metadata", "labels", kStepLabel}) {
      if (at != nullptr) at = at->Find(key);
    }
    if (at != nullptr && at->text == step) return &one;
  }
  return nullptr;
}

Node* FindReplicatedJobNamed(Node* spec, const std::string& name) {
  return spec == nullptr ? nullptr : FindItem(spec->Find("replicatedJobs"), "name", name);
}

Node* PodTemplateOf(Node* replicated) {
  return FindOrAdd(FindOrAdd(FindOrAdd(replicated, "template"), "spec"), "template");
}

Node* FindContainer(Node* replicated, std::string_view name) {
  Node* pod = PodTemplateOf(replicated);
  Node* spec = pod == nullptr ? nullptr : pod->Find("spec");
  Node* containers = spec == nullptr ? nullptr : spec->Find("containers");
  Node* named = FindItem(containers, "name", name);
  const bool some =
      containers != nullptr && containers->kind == Node::Kind::kList && !containers->items.empty();
  return named == nullptr && some ? &containers->items.front() : named;
}

std::string NameOfReplicatedJob(const Node& replicated) {
  const Node* name = replicated.Find("name");
  return name == nullptr ? "job" : name->text;
}

void SetNodes(int nodes, const job::SourceLocation& place, Node* replicated) {
  SetField(replicated, "replicas", Number(1, place));
  Node* spec = FindOrAdd(FindOrAdd(replicated, "template"), "spec");
  SetField(spec, "completions", Number(nodes, place));
  SetField(spec, "parallelism", Number(nodes, place));
}

}  // namespace shoal::importer
