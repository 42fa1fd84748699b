#include "dialect/import/pod_wishes.h"

#include <algorithm>
#include <vector>

#include "job/pod_fields.h"
#include "job/yaml_tree.h"

namespace shoal::dialect {
namespace {

using job::Node;

constexpr size_t kMost = 256;  // of each

void AddUnique(const std::string& text, std::vector<std::string>* list) {
  if (list->size() < kMost && std::find(list->begin(), list->end(), text) == list->end())
    list->push_back(text);
}

void ReadNodeSelector(Section* spec, job::Kubernetes* wishes) {
  auto selector = spec->Sub("nodeSelector");
  if (!selector) return;
  for (const auto& [key, node] : selector->All()) {
    if (node->kind != Node::Kind::kScalar || wishes->node_selector.size() >= kMost) continue;
    const auto [there, fresh] = wishes->node_selector.try_emplace(key.text, node->text);
    if (fresh || there->second == node->text) continue;
    selector->Lose(key.text, "these pods ran on nodes where it is " + job::Shown(node->text) +
                                 "; not kept: all tasks of a job run on nodes where it is " +
                                 job::Shown(there->second));
  }
}

void ReadTolerations(Section* spec, job::Kubernetes* wishes) {
  for (Section& one : spec->Subs("tolerations")) {
    const std::string key = one.Text("key").value_or("");
    const bool exists = one.Choice("operator", {"Exists", "Equal"}).value_or("Equal") == "Exists";
    const std::string value = one.Text("value").value_or("");
    const std::string effect = one.Text("effect").value_or("");
    if (one.Take("tolerationSeconds") != nullptr) {
      one.Lose("tolerationSeconds",
               "it said how long such a node is tolerated; not kept: it is for good", true);
    }
    one.Rest({});
    if (key.empty()) {
      one.Lose("",
               "these pods tolerated every node; not kept: name the taints in "
               "kubernetes.tolerations");
      continue;
    }
    const std::string what = exists || value.empty() ? key : key + "=" + value;
    AddUnique(effect.empty() ? what : what + ":" + effect, &wishes->tolerations);
  }
}

// One that the whole job has.
void KeepOne(Section* spec, const std::string& field, std::string* kept) {
  const auto said = spec->Text(field);
  if (!said || said->empty() || *kept == *said) return;
  if (kept->empty()) {
    *kept = *said;
    return;
  }
  spec->Lose(field, "got " + job::Shown(*said) + "; not kept: all tasks of a job have " +
                        job::Shown(*kept));
}

// One that the whole job has, in Kubernetes' own words.
void KeepPodValue(Section* section, const std::string& field, std::string_view type,
                  std::string* kept) {
  const Node* node = section->Take(field);
  const bool nothing =
      node == nullptr || (node->kind != Node::Kind::kScalar && node->items.empty());
  if (nothing) return;
  const auto value = job::ReadPodValue(
      *node, type, section->PathOf(field),
      [&](const job::Place& place, const std::string& path, const std::string& sentence) {
        section->notes()->Wrong(place, path, sentence);
      });
  if (!value) return;
  const std::string said = ToText(*value);
  if (kept->empty()) *kept = said;
  if (*kept != said)
    section->Lose(field, "not kept: all tasks of a job have what the first pods have");
  // Selectors by what another system's controller writes on its pods would find none.
  for (const char* domain : {"kubeflow.org/", "volcano.sh/", "mpi-job", "tf-job", "pytorch-job"}) {
    if (said.find(domain) == std::string::npos) continue;
    section->Lose(field, "its selectors name labels of another system (" + std::string(domain) +
                             "), which the pods do not have here; write `shoal.dev/job: "
                             "\"{{shoal.job}}\"` and `shoal.dev/role: NAME` instead");
    break;
  }
}

// Labels or annotations, which all pods of a job have alike.
void KeepTexts(Section* metadata, const std::string& field,
               std::map<std::string, std::string>* kept) {
  auto texts = metadata->Sub(field);
  if (!texts) return;
  texts->set_at("kubernetes." + field);
  for (const auto& [key, node] : texts->All()) {
    // Notes of kubectl and controllers to themselves.
    if (key.text.starts_with("kubectl.kubernetes.io/last-applied")) continue;
    if (node->kind != Node::Kind::kScalar) continue;
    if (kept->size() >= kMost) {
      texts->Lose(key.text, "not kept: a job has at most " + std::to_string(kMost));
      continue;
    }
    const auto [there, fresh] = kept->try_emplace(key.text, node->text);
    if (fresh || there->second == node->text) continue;
    texts->Lose(key.text, "got " + job::Shown(node->text) +
                              "; not kept: on all pods of a job it is " +
                              job::Shown(there->second));
  }
}

// What is mounted at the path already; empty: nothing.
std::string At(const std::string& target, const job::Kubernetes& wishes) {
  for (const std::string& volume : wishes.volumes) {
    for (const char* end : {"", ":ro"}) {
      if (volume.ends_with(":" + target + end)) return volume;
    }
  }
  return "";
}

// Of the entry, without its target; empty if the volume is of another kind.
std::string SourceOf(Section* volume, bool* read_only) {
  if (auto claim = volume->Sub("persistentVolumeClaim")) {
    *read_only = *read_only || claim->Flag("readOnly").value_or(false);
    return "pvc:" + claim->Text("claimName").value_or("");
  }
  if (auto host = volume->Sub("hostPath")) return "host:" + host->Text("path").value_or("");
  if (auto nfs = volume->Sub("nfs")) {
    *read_only = *read_only || nfs->Flag("readOnly").value_or(false);
    return "nfs:" + nfs->Text("server").value_or("") + ":" + nfs->Text("path").value_or("");
  }
  if (auto empty = volume->Sub("emptyDir")) {
    const std::string size = empty->Text("sizeLimit").value_or("");
    return size.empty() ? "" : "empty:" + size;
  }
  return "";
}

}  // namespace

void KeepPodWishes(Section* spec, JobBuilder* builder) {
  job::Kubernetes& wishes = builder->job()->kubernetes;
  const std::string at = spec->at();
  spec->set_at("kubernetes");
  for (const char* field :
       {"nodeSelector", "tolerations", "serviceAccountName", "priorityClassName", "affinity",
        "topologySpreadConstraints", "securityContext", "hostNetwork"}) {
    const Node* said = spec->Has(field) ? spec->Take(field) : nullptr;
    if (said != nullptr && said->text != "false") builder->Wish(field, *spec, field);
  }
  ReadNodeSelector(spec, &wishes);
  ReadTolerations(spec, &wishes);
  KeepOne(spec, "serviceAccountName", &wishes.service_account);
  KeepOne(spec, "priorityClassName", &wishes.priority_class);
  for (Section& secret : spec->Subs("imagePullSecrets")) {
    const std::string name = secret.Text("name").value_or("");
    secret.Rest({});
    if (!name.empty() && wishes.image_pull_secrets.size() < 16)
      AddUnique(name, &wishes.image_pull_secrets);
  }
  KeepPodValue(spec, "affinity", "Affinity", &wishes.affinity);
  KeepPodValue(spec, "topologySpreadConstraints", "[TopologySpreadConstraint]",
               &wishes.topology_spread);
  KeepPodValue(spec, "securityContext", "PodSecurityContext", &wishes.security_context);
  wishes.host_network = spec->Flag("hostNetwork").value_or(false) || wishes.host_network;
  spec->set_at(at);
}

void KeepContainerWishes(Section* container, JobBuilder* builder) {
  const std::string at = container->at();
  container->set_at("kubernetes");
  if (container->Has("securityContext")) {
    builder->Wish("container's securityContext", *container, "securityContext");
  }
  KeepPodValue(container, "securityContext", "SecurityContext",
               &builder->job()->kubernetes.container_security_context);
  container->set_at(at);
}

void KeepPodMetadata(Section* metadata, JobBuilder* builder) {
  job::Kubernetes& wishes = builder->job()->kubernetes;
  KeepTexts(metadata, "labels", &wishes.labels);
  KeepTexts(metadata, "annotations", &wishes.annotations);
}

bool KeepVolume(Section* volume, const std::string& target, bool read_only, JobBuilder* builder) {
  job::Kubernetes& wishes = builder->job()->kubernetes;
  const std::string source = SourceOf(volume, &read_only);
  const bool plain = source.find_first_of(" ,\n") == std::string::npos &&
                     target.find_first_of(":,\n") == std::string::npos;
  if (source.empty() || source.ends_with(':') || target.empty() || target[0] != '/' || !plain)
    return false;
  const std::string entry = source + ":" + target + (read_only ? ":ro" : "");
  builder->Wish(entry, *volume, "");
  const std::string there = At(target, wishes);
  if (!there.empty() || wishes.volumes.size() >= 64) return there == entry;
  wishes.volumes.push_back(entry);
  return true;
}

}  // namespace shoal::dialect
