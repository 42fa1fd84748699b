#include "dialect/import/pod_wishes.h"

#include <algorithm>
#include <vector>

#include "dialect/import/kubernetes.h"
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

void ReadNodeSelector(Section* spec, job::PodAsk* wishes) {
  auto selector = spec->Sub("nodeSelector");
  if (!selector) return;
  for (const auto& [key, node] : selector->All()) {
    if (node->kind == Node::Kind::kScalar && wishes->node_selector.size() < kMost)
      wishes->node_selector[key.text] = node->text;
  }
}

void ReadTolerations(Section* spec, job::PodAsk* wishes) {
  for (Section& one : spec->Subs("tolerations")) {
    const std::string key = one.Text("key").value_or("");
    const bool exists = one.Choice("operator", {"Exists", "Equal"}).value_or("Equal") == "Exists";
    const std::string value = one.Text("value").value_or("");
    const std::string effect = one.Text("effect").value_or("");
    if (one.Take("tolerationSeconds") != nullptr) {
      one.Lose("tolerationSeconds",
               "it said how long such a node is tolerated; not kept: it is for good", true);
    }
    one.Rest("Toleration");
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

// No pod here has one. Where the file neither names an account nor asks for one, programs seldom
// do.
void ReadToken(Section* spec, const std::string& account) {
  if (!spec->Flag("automountServiceAccountToken").value_or(!account.empty())) return;
  spec->Lose("automountServiceAccountToken",
             "a token of the account " + job::Shown(account.empty() ? "default" : account) +
                 " was in each pod, at /var/run/secrets/kubernetes.io/serviceaccount; not kept: no "
                 "task has a token of the cluster: its API server does not let programs in");
}

// In Kubernetes' own words.
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
  const std::string& said = *kept = ToText(*value);
  // Selectors by what another system's controller writes on its pods would find none.
  for (const char* domain : {"kubeflow.org/", "volcano.sh/", "mpi-job", "tf-job", "pytorch-job"}) {
    if (said.find(domain) == std::string::npos) continue;
    section->Lose(field, "its selectors name labels of another system (" + std::string(domain) +
                             "), which the pods do not have here; write `shoal.dev/job: "
                             "\"{{shoal.job}}\"` and `shoal.dev/role: NAME` instead");
    break;
  }
}

// On pods of a Job they are the cluster's own.
bool IsLabelOfJobs(const std::string& key) {
  return key == "job-name" || key == "controller-uid" || key == "batch.kubernetes.io/job-name" ||
         key == "batch.kubernetes.io/controller-uid";
}

// Labels or annotations.
void KeepTexts(Section* metadata, const std::string& field,
               std::map<std::string, std::string>* kept) {
  auto texts = metadata->Sub(field);
  if (!texts) return;
  texts->set_at("kubernetes." + field);
  for (const auto& [key, node] : texts->All()) {
    // Notes of kubectl and controllers to themselves.
    if (key.text.starts_with("kubectl.kubernetes.io/last-applied")) continue;
    if (node->kind != Node::Kind::kScalar) continue;
    if (field == "labels" && IsLabelOfJobs(key.text)) {
      texts->Lose(key.text,
                  "not kept: on the pods of a Job, which they are here, Kubernetes itself "
                  "sets this label");
    } else if (kept->size() >= kMost) {
      texts->Lose(key.text, "not kept: a job has at most " + std::to_string(kMost));
    } else {
      (*kept)[key.text] = node->text;
    }
  }
}

// What is mounted at the path already; empty: nothing.
std::string At(const std::string& target, const job::PodAsk& wishes) {
  for (const std::string& volume : wishes.volumes) {
    for (const char* end : {"", ":ro"}) {
      if (volume.ends_with(":" + target + end)) return volume;
    }
  }
  return "";
}

// False if the entry cannot be written, or another one is at that path.
bool AddVolume(const std::string& source, const std::string& target, bool read_only,
               job::PodAsk* wishes) {
  const bool plain = source.find_first_of(" ,\n") == std::string::npos &&
                     target.find_first_of(":,\n") == std::string::npos;
  if (source.empty() || source.ends_with(':') || target.empty() || target[0] != '/' || !plain)
    return false;
  const std::string entry = source + ":" + target + (read_only ? ":ro" : "");
  const std::string there = At(target, *wishes);
  if (!there.empty() || wishes->volumes.size() >= 64) return there == entry;
  wishes->volumes.push_back(entry);
  return true;
}

// Of the entry, without its target; empty if the volume is of another kind.
std::string SourceOf(Section* volume, bool* read_only) {
  if (auto claim = volume->Sub("persistentVolumeClaim")) {
    *read_only = *read_only || claim->Flag("readOnly").value_or(false);
    return "pvc:" + claim->Text("claimName").value_or("");
  }
  if (auto host = volume->Sub("hostPath")) {
    const std::string path = host->Text("path").value_or("");
    return path.find(':') == std::string::npos ? "host:" + path : "";
  }
  if (auto nfs = volume->Sub("nfs")) {
    *read_only = *read_only || nfs->Flag("readOnly").value_or(false);
    return "nfs:" + nfs->Text("server").value_or("") + ":" + nfs->Text("path").value_or("");
  }
  if (auto empty = volume->Sub("emptyDir")) {
    const std::string size = empty->Text("sizeLimit").value_or("");
    const std::string medium = empty->Text("medium").value_or("");
    if (!medium.empty() && medium != "Memory") return "";
    return (medium.empty() ? "empty" : "memory") + (size.empty() ? "" : ":" + size);
  }
  return "";
}

// To the job, where all roles say the same.
template <typename Member>
void Share(Member job::PodAsk::*member, job::Job* job) {
  const Member first = job->roles.front().kubernetes.*member;
  const bool same = std::ranges::all_of(
      job->roles, [&](const job::Role& role) { return role.kubernetes.*member == first; });
  if (!same || first == Member()) return;
  for (job::Role& role : job->roles) role.kubernetes.*member = {};
  job->kubernetes.*member = first;
}

// One by one.
void ShareTexts(std::map<std::string, std::string> job::PodAsk::*member, job::Job* job) {
  const std::map<std::string, std::string> first = job->roles.front().kubernetes.*member;
  for (const auto& [name, value] : first) {
    const bool same = std::ranges::all_of(job->roles, [&](const job::Role& role) {
      const auto& texts = role.kubernetes.*member;
      const auto found = texts.find(name);
      return found != texts.end() && found->second == value;
    });
    if (!same) continue;
    for (job::Role& role : job->roles) (role.kubernetes.*member).erase(name);
    (job->kubernetes.*member)[name] = value;
  }
}

}  // namespace

void KeepPodWishes(Section* spec, job::Role* role) {
  job::PodAsk& wishes = role->kubernetes;
  const std::string at = spec->at();
  spec->set_at("roles." + role->name + ".kubernetes");
  ReadNodeSelector(spec, &wishes);
  ReadTolerations(spec, &wishes);
  wishes.service_account = spec->Text("serviceAccountName").value_or("");
  ReadToken(spec, wishes.service_account);
  wishes.priority_class = spec->Text("priorityClassName").value_or("");
  wishes.runtime_class = spec->Text("runtimeClassName").value_or("");
  for (Section& secret : spec->Subs("imagePullSecrets")) {
    const std::string name = secret.Text("name").value_or("");
    secret.Rest("LocalObjectReference");
    if (!name.empty() && wishes.image_pull_secrets.size() < 16)
      AddUnique(name, &wishes.image_pull_secrets);
  }
  KeepPodValue(spec, "affinity", "Affinity", &wishes.affinity);
  KeepPodValue(spec, "topologySpreadConstraints", "[TopologySpreadConstraint]",
               &wishes.topology_spread);
  KeepPodValue(spec, "securityContext", "PodSecurityContext", &wishes.security_context);
  if (spec->Flag("hostNetwork").value_or(false)) wishes.host_network = true;
  spec->set_at(at);
}

void KeepContainerWishes(Section* container, job::Role* role) {
  const std::string at = container->at();
  container->set_at("roles." + role->name + ".kubernetes");
  KeepPodValue(container, "securityContext", "SecurityContext",
               &role->kubernetes.container_security_context);
  container->set_at(at);
}

void KeepPodMetadata(Section* metadata, job::PodAsk* ask) {
  KeepTexts(metadata, "labels", &ask->labels);
  KeepTexts(metadata, "annotations", &ask->annotations);
}

bool KeepVolume(Section* volume, const std::string& target, bool read_only, job::Role* role,
                JobBuilder* builder) {
  const std::string source = SourceOf(volume, &read_only);
  if (!AddVolume(source, target, read_only, &role->kubernetes)) return false;
  // A container's shared memory, where there is no cluster.
  if (target == "/dev/shm" && source.starts_with("memory:")) {
    int64_t& size = builder->job()->container.shm_bytes;
    const auto wanted = ParseQuantity(source.substr(7)).value_or(0);
    if (wanted >= 1 << 20 && wanted <= static_cast<double>(job::kMaxMemoryBytes))
      size = std::max(size, static_cast<int64_t>(wanted));
  }
  return true;
}

bool KeepClaim(const std::string& claim, const std::string& target, job::Role* role) {
  return AddVolume("pvc:" + claim, target, false, &role->kubernetes);
}

void ShareWishes(job::Job* job) {
  if (job->roles.empty()) return;
  using job::PodAsk;
  Share(&PodAsk::node_selector, job);
  Share(&PodAsk::tolerations, job);
  Share(&PodAsk::image_pull_secrets, job);
  Share(&PodAsk::priority_class, job);
  Share(&PodAsk::affinity, job);
  Share(&PodAsk::topology_spread, job);
  Share(&PodAsk::security_context, job);
  // Rights stay with whom the file gives them, whatever roles a framework adds.
  const std::string& first = job->roles.front().kubernetes.container_security_context;
  const bool rights = first.find("\"privileged\":true") != std::string::npos ||
                      first.find("\"add\":") != std::string::npos;
  if (!rights) Share(&PodAsk::container_security_context, job);
  ShareTexts(&PodAsk::labels, job);
  ShareTexts(&PodAsk::annotations, job);
}

}  // namespace shoal::dialect
