#include "import/kubernetes/training_runtime.h"

#include <utility>

namespace shoal::importer {
namespace {

using job::Node;

constexpr const char* kStepLabel = "trainer.kubeflow.org/trainjob-ancestor-step";

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
