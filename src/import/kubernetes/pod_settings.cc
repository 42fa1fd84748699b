#include "import/kubernetes/pod_settings.h"

#include <algorithm>
#include <vector>

#include "import/kubernetes/pod_template.h"
#include "job/file/pod_fields.h"
#include "job/text/yaml_tree.h"

namespace shoal::importer {
namespace {

using job::Node;

constexpr size_t kMost = 256;  // of each

void AddUnique(const std::string& text, std::vector<std::string>* list) {
  if (list->size() < kMost && std::find(list->begin(), list->end(), text) == list->end())
    list->push_back(text);
}

void ReadNodeSelector(FieldReader* spec, job::PodSettings* settings) {
  auto selector = spec->ReadObject("nodeSelector");
  if (!selector) return;
  for (const auto& [key, node] : selector->ReadAll()) {
    if (node->kind == Node::Kind::kScalar && settings->node_selector.size() < kMost)
      settings->node_selector[key.text] = node->text;
  }
}

void ReadTolerations(FieldReader* spec, job::PodSettings* settings) {
  for (FieldReader& one : spec->ReadObjects("tolerations")) {
    const std::string key = one.ReadText("key").value_or("");
    const bool exists =
        one.ReadChoice("operator", {"Exists", "Equal"}).value_or("Equal") == "Exists";
    const std::string value = one.ReadText("value").value_or("");
    const std::string effect = one.ReadText("effect").value_or("");
    if (one.ReadNode("tolerationSeconds") != nullptr) {
      one.AddLoss("tolerationSeconds",
                  "it said how long such a node is tolerated; not kept: it is for good", true);
    }
    one.ReportUnread("Toleration");
    if (key.empty()) {
      one.AddLoss("",
                  "these pods tolerated every node; not kept: name the taints in "
                  "kubernetes.tolerations");
      continue;
    }
    const std::string what = exists || value.empty() ? key : key + "=" + value;
    AddUnique(effect.empty() ? what : what + ":" + effect, &settings->tolerations);
  }
}

// Shoal's pods mount no service-account token. Without an account or a request for a token in the
// file, programs rarely need one, so that it is not reported.
void ReadToken(FieldReader* spec, const std::string& account) {
  if (!spec->ReadFlag("automountServiceAccountToken").value_or(!account.empty())) return;
  spec->AddLoss(
      "automountServiceAccountToken",
      "a token of the account " + job::PrintableText(account.empty() ? "default" : account) +
          " was in each pod, at /var/run/secrets/kubernetes.io/serviceaccount; not kept: no "
          "task has a token of the cluster: its API server does not let programs in");
}

// Copies the value as Kubernetes defines it.
void CopyPodValue(FieldReader* section, const std::string& field, std::string_view type,
                  std::string* kept) {
  const Node* node = section->ReadNode(field);
  const bool nothing =
      node == nullptr || (node->kind != Node::Kind::kScalar && node->items.empty());
  if (nothing) return;
  const auto value = job::ReadPodValue(
      *node, type, section->PathOf(field),
      [&](const job::SourceLocation& place, const std::string& path, const std::string& sentence) {
        section->diagnostics()->AddError(place, path, sentence);
      });
  if (!value) return;
  const std::string& said = *kept = ToText(*value);
  // Label selectors on labels that another system's controller sets would match nothing.
  for (const char* domain : {"kubeflow.org/", "volcano.sh/", "mpi-job", "tf-job", "pytorch-job"}) {
    if (said.find(domain) == std::string::npos) continue;
    section->AddLoss(field, "its selectors name labels of another system (" + std::string(domain) +
                                "), which the pods do not have here; write `shoal.dev/job: "
                                "\"{{shoal.job}}\"` and `shoal.dev/role: NAME` instead");
    break;
  }
}

// Labels that the cluster sets on pods of a Job.
bool IsLabelOfJobs(const std::string& key) {
  return key == "job-name" || key == "controller-uid" || key == "batch.kubernetes.io/job-name" ||
         key == "batch.kubernetes.io/controller-uid";
}

// What an annotation asks of JobSet's controller; null: it is for others.
const char* UseOfController(const std::string& name) {
  if (name == "alpha.jobset.sigs.k8s.io/exclusive-topology")
    return "each Job had a topology domain (a rack, a node pool) to itself";
  if (name == "alpha.jobset.sigs.k8s.io/node-selector")
    return "each Job ran on nodes that were labelled for it before";
  return nullptr;
}

// Labels or annotations.
void CopyTexts(FieldReader* metadata, const std::string& field,
               std::map<std::string, std::string>* kept) {
  auto texts = metadata->ReadObject(field);
  if (!texts) return;
  texts->set_at("kubernetes." + field);
  for (const auto& [key, node] : texts->ReadAll()) {
    // Annotations of kubectl and controllers for their own use.
    if (key.text.starts_with("kubectl.kubernetes.io/last-applied")) continue;
    if (node->kind != Node::Kind::kScalar) continue;
    if (field == "labels" && IsLabelOfJobs(key.text)) {
      texts->AddLoss(key.text,
                     "not kept: on the pods of a Job, which they are here, Kubernetes itself "
                     "sets this label");
    } else if (const char* const heeded = UseOfController(key.text); heeded != nullptr) {
      texts->AddLoss(key.text, std::string(heeded) +
                                   "; not kept: only JobSet's controller heeds it, which does not "
                                   "run the job here");
    } else if (kept->size() >= kMost) {
      texts->AddLoss(key.text, "not kept: a job has at most " + std::to_string(kMost));
    } else {
      (*kept)[key.text] = node->text;
    }
  }
}

// The source that is mounted at the path; empty: none.
std::string At(const std::string& target, const job::PodSettings& settings) {
  for (const std::string& volume : settings.volumes) {
    for (const char* end : {"", ":ro"}) {
      if (volume.ends_with(":" + target + end)) return volume;
    }
  }
  return "";
}

// False if the entry cannot be written, or another volume is at that path.
bool AddVolume(const std::string& source, const std::string& target, bool read_only,
               job::PodSettings* settings) {
  const bool plain = source.find_first_of(" ,\n") == std::string::npos &&
                     target.find_first_of(":,\n") == std::string::npos;
  if (source.empty() || source.ends_with(':') || target.empty() || target[0] != '/' || !plain)
    return false;
  const std::string entry = source + ":" + target + (read_only ? ":ro" : "");
  const std::string there = At(target, *settings);
  if (!there.empty() || settings->volumes.size() >= 64) return there == entry;
  settings->volumes.push_back(entry);
  return true;
}

// The source part of the entry; empty for an unsupported kind of volume.
std::string SourceOf(FieldReader* volume, bool* read_only) {
  if (auto claim = volume->ReadObject("persistentVolumeClaim")) {
    *read_only = *read_only || claim->ReadFlag("readOnly").value_or(false);
    return "pvc:" + claim->ReadText("claimName").value_or("");
  }
  if (auto host = volume->ReadObject("hostPath")) {
    const std::string path = host->ReadText("path").value_or("");
    return path.find(':') == std::string::npos ? "host:" + path : "";
  }
  if (auto nfs = volume->ReadObject("nfs")) {
    *read_only = *read_only || nfs->ReadFlag("readOnly").value_or(false);
    return "nfs:" + nfs->ReadText("server").value_or("") + ":" + nfs->ReadText("path").value_or("");
  }
  if (auto empty = volume->ReadObject("emptyDir")) {
    const std::string size = empty->ReadText("sizeLimit").value_or("");
    const std::string medium = empty->ReadText("medium").value_or("");
    if (!medium.empty() && medium != "Memory") return "";
    return (medium.empty() ? "empty" : "memory") + (size.empty() ? "" : ":" + size);
  }
  return "";
}

}  // namespace

void ReadPodSettings(FieldReader* spec, job::Role* role) {
  job::PodSettings& settings = role->kubernetes;
  const std::string at = spec->at();
  spec->set_at("roles." + role->name + ".kubernetes");
  ReadNodeSelector(spec, &settings);
  ReadTolerations(spec, &settings);
  settings.service_account = spec->ReadText("serviceAccountName").value_or("");
  ReadToken(spec, settings.service_account);
  settings.priority_class = spec->ReadText("priorityClassName").value_or("");
  settings.runtime_class = spec->ReadText("runtimeClassName").value_or("");
  for (FieldReader& secret : spec->ReadObjects("imagePullSecrets")) {
    const std::string name = secret.ReadText("name").value_or("");
    secret.ReportUnread("LocalObjectReference");
    if (!name.empty() && settings.image_pull_secrets.size() < 16)
      AddUnique(name, &settings.image_pull_secrets);
  }
  CopyPodValue(spec, "affinity", "Affinity", &settings.affinity);
  CopyPodValue(spec, "topologySpreadConstraints", "[TopologySpreadConstraint]",
               &settings.topology_spread);
  CopyPodValue(spec, "securityContext", "PodSecurityContext", &settings.security_context);
  if (spec->ReadFlag("hostNetwork").value_or(false)) settings.host_network = true;
  spec->set_at(at);
}

void ReadContainerSettings(FieldReader* container, job::Role* role) {
  const std::string at = container->at();
  container->set_at("roles." + role->name + ".kubernetes");
  CopyPodValue(container, "securityContext", "SecurityContext",
               &role->kubernetes.container_security_context);
  container->set_at(at);
}

void ReadPodMetadata(FieldReader* metadata, job::PodSettings* ask) {
  CopyTexts(metadata, "labels", &ask->labels);
  CopyTexts(metadata, "annotations", &ask->annotations);
}

bool AddVolumeFrom(FieldReader* volume, const std::string& target, bool read_only, job::Role* role,
                   JobBuilder* builder) {
  const std::string source = SourceOf(volume, &read_only);
  if (!AddVolume(source, target, read_only, &role->kubernetes)) return false;
  // Other engines give each container its own shared memory.
  if (target == "/dev/shm" && source.starts_with("memory:")) {
    int64_t& size = builder->job()->container.shm_bytes;
    const auto wanted = ParseQuantity(source.substr(7)).value_or(0);
    if (wanted >= 1 << 20 && wanted <= static_cast<double>(job::kMaxMemoryBytes))
      size = std::max(size, static_cast<int64_t>(wanted));
  }
  return true;
}

bool AddVolumeClaim(const std::string& claim, const std::string& target, job::Role* role) {
  return AddVolume("pvc:" + claim, target, false, &role->kubernetes);
}

}  // namespace shoal::importer
