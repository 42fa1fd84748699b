// Fields of the section `kubernetes` of a job and of a role.
#include <algorithm>
#include <list>

#include "job/file/fields.h"

namespace shoal::job {
namespace {

// Parses "NAME=VALUE" entries.
std::map<std::string, std::string> Pairs(const std::vector<std::string>& texts) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const size_t is = std::min(text.find('='), text.size());
    pairs[text.substr(0, is)] = text.substr(std::min(is + 1, text.size()));
  }
  return pairs;
}

using V = const Value&;
using T = const Target&;

PodSettings& PodsOf(T t) { return t.role != nullptr ? t.role->kubernetes : t.job->kubernetes; }

// clang-format off
constexpr Field kOfJobs[] = {
  {.path = "kubernetes", .type = Type::kSection, .fallback = "see its fields",
   .doc = "Settings for `--engine kubernetes` besides the roles' resources (docs/engines/kubernetes.md); "
          "other engines ignore them."},
  {.path = "kubernetes.context", .type = Type::kText, .most = 256, .fallback = "the kubeconfig's current context",
   .doc = "The cluster and user: a context of the kubeconfig.",
   .apply = [](V v, T t) { t.job->kubernetes.context = v.text; }},
  {.path = "kubernetes.namespace", .type = Type::kText, .most = 63, .fallback = "the context's",
   .doc = "The namespace of all the job's objects.",
   .apply = [](V v, T t) { t.job->kubernetes.name_space = v.text; }},
  {.path = "kubernetes.launcher", .type = Type::kText, .most = 1024, .fallback = "$SHOAL_KUBE_LAUNCHER_IMAGE",
   .doc = "An image that holds /shoal-task (docker/Dockerfile), from which each pod copies the launcher.",
   .apply = [](V v, T t) { t.job->kubernetes.launcher = v.text; }},
  {.path = "kubernetes.gpu_resource", .type = Type::kText, .most = 253, .fallback = "nvidia.com/gpu",
   .doc = "The cluster's resource name for GPUs.",
   .apply = [](V v, T t) { t.job->kubernetes.gpu_resource = v.text; }},
  {.path = "kubernetes.resources", .type = Type::kTexts, .most = 32, .fallback = "none",
   .doc = "Extended resources of each task's pod, or of one role's pods: [rdma/hca=1, "
          "\"worker:google.com/tpu=8\"].",
   .apply = [](V v, T t) { t.job->kubernetes.resources = v.texts; }},
};

// Paths are below `kubernetes` of the job, or of a role.
constexpr Field kOfPods[] = {
  {.path = "labels", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "NAME=VALUE on each Job and pod: [kueue.x-k8s.io/queue-name=research].",
   .apply = [](V v, T t) { PodsOf(t).labels = Pairs(v.texts); }},
  {.path = "annotations", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "NAME=VALUE on each Job and pod: [sidecar.istio.io/inject=false].",
   .apply = [](V v, T t) { PodsOf(t).annotations = Pairs(v.texts); }},
  {.path = "node_selector", .type = Type::kTexts, .most = 256, .fallback = "any node",
   .doc = "NAME=VALUE of required node labels: [topology.kubernetes.io/zone=b].",
   .apply = [](V v, T t) { PodsOf(t).node_selector = Pairs(v.texts); }},
  {.path = "tolerations", .type = Type::kTexts, .most = 256, .fallback = "none",
   .doc = "Tolerated taints: KEY or KEY=VALUE, optionally followed by :EFFECT.",
   .apply = [](V v, T t) { PodsOf(t).tolerations = v.texts; }},
  {.path = "service_account", .type = Type::kText, .most = 253, .fallback = "the namespace's default",
   .doc = "Service account of the pods. Its token is not mounted.",
   .apply = [](V v, T t) { PodsOf(t).service_account = v.text; }},
  {.path = "image_pull_secrets", .type = Type::kTexts, .most = 16, .fallback = "none", .doc = "Secrets for pulling images.",
   .apply = [](V v, T t) { PodsOf(t).image_pull_secrets = v.texts; }},
  {.path = "priority_class", .type = Type::kText, .most = 253, .fallback = "the cluster's default",
   .doc = "The priority class of the pods.",
   .apply = [](V v, T t) { PodsOf(t).priority_class = v.text; }},
  {.path = "runtime_class", .type = Type::kText, .most = 253, .fallback = "the cluster's default",
   .doc = "The runtime class of the pods: nvidia.",
   .apply = [](V v, T t) { PodsOf(t).runtime_class = v.text; }},
  {.path = "volumes", .type = Type::kTexts, .most = 64, .fallback = "none",
   .doc = "`pvc:CLAIM:/TARGET`, `host:/PATH:/TARGET`, `nfs:SERVER:/PATH:/TARGET`, `empty:SIZE:/TARGET`, "
          "or `memory:SIZE:/TARGET`, whose files are in memory. SIZE may be omitted for no separate "
          "limit. Append `:ro` for read-only.",
   .apply = [](V v, T t) { PodsOf(t).volumes = v.texts; }},
  {.path = "affinity", .type = Type::kPodValue, .choices = "Affinity", .fallback = "none",
   .doc = "Node and pod affinity of the pods, in the schema of the Kubernetes API; `{{shoal.job}}` is the "
          "job's ID, as in `shoal.dev/job`.",
   .apply = [](V v, T t) { PodsOf(t).affinity = v.text; }},
  {.path = "topology_spread", .type = Type::kPodValue, .choices = "[TopologySpreadConstraint]", .fallback = "none",
   .doc = "Distribution of the pods over nodes and zones: Kubernetes' `topologySpreadConstraints`.",
   .apply = [](V v, T t) { PodsOf(t).topology_spread = v.text; }},
  {.path = "security_context", .type = Type::kPodValue, .choices = "PodSecurityContext", .fallback = "container.user",
   .doc = "Pod security context, in the schema of the Kubernetes API: `{runAsNonRoot: true, runAsUser: "
          "1000, fsGroup: 100}`.",
   .apply = [](V v, T t) { PodsOf(t).security_context = v.text; }},
  {.path = "container_security_context", .type = Type::kPodValue, .choices = "SecurityContext", .fallback = "no privilege escalation",
   .doc = "Security context of each container: `{readOnlyRootFilesystem: true, capabilities: {drop: "
          "[ALL]}}`.",
   .apply = [](V v, T t) { PodsOf(t).container_security_context = v.text; }},
  {.path = "host_network", .type = Type::kChoice, .choices = "true|false", .fallback = "false",
   .doc = "Whether the pods use the node's network, as RDMA often requires.",
   .apply = [](V v, T t) { PodsOf(t).host_network = v.text == "true"; }},
};
// clang-format on

constexpr std::string_view kAdded[] = {"labels", "annotations"};

// Returns the fields with paths below `section`; their texts live as long as the process.
void AddPods(std::string_view section, bool of_role, std::vector<Field>* fields) {
  static std::list<std::string> texts;
  const auto keep = [&](std::string text) {
    return std::string_view(texts.emplace_back(std::move(text)));
  };
  for (Field field : kOfPods) {
    const std::string name(field.path);
    field.path = keep(std::string(section) + "." + name);
    const bool added = std::ranges::find(kAdded, name) != std::end(kAdded);
    if (of_role)
      field.fallback =
          keep((added ? "only the job's `kubernetes." : "the job's `kubernetes.") + name + "`");
    fields->push_back(field);
  }
}

}  // namespace

std::vector<Field> KubernetesFields() {
  std::vector<Field> fields(std::begin(kOfJobs), std::end(kOfJobs));
  AddPods("kubernetes", false, &fields);
  return fields;
}

std::vector<Field> RoleKubernetesFields() {
  std::vector<Field> fields = {{.path = "roles.*.kubernetes",
                                .type = Type::kSection,
                                .fallback = "the job's",
                                .doc = "Pod settings of this role that override the job's "
                                       "`kubernetes`; labels and annotations are merged "
                                       "with the job's."}};
  AddPods("roles.*.kubernetes", true, &fields);
  return fields;
}

}  // namespace shoal::job
