#include "engine/kubernetes/pod_placement.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace shoal::engine::kubernetes {
namespace {

constexpr int kNodeLoss = 30;  // seconds until the tasks of a lost node are started elsewhere
constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
// Labels that the cluster sets on a Job's pods.
constexpr const char* kLabelsOfJobs[] = {"job-name", "controller-uid",
                                         "batch.kubernetes.io/job-name",
                                         "batch.kubernetes.io/controller-uid"};
constexpr std::string_view kJobMark = "{{shoal.job}}";

// Numeric "UID:GID"; nothing for a name, which only the image can resolve.
void AddUser(const std::string& user, json::object* context) {
  const size_t colon = user.find(':');
  const auto number = [](const std::string& text) -> std::optional<int64_t> {
    int64_t value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || *rest != 0) return std::nullopt;
    return value;
  };
  if (const auto uid = number(user.substr(0, colon)); uid) (*context)["runAsUser"] = *uid;
  if (colon == std::string::npos) return;
  if (const auto gid = number(user.substr(colon + 1)); gid) {
    (*context)["runAsGroup"] = *gid;
    (*context)["fsGroup"] = *gid;
  }
}

json::object Toleration(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string left = text.substr(0, colon);
  const size_t is = left.find('=');
  json::object toleration{{"key", left.substr(0, is)},
                          {"operator", is == std::string::npos ? "Exists" : "Equal"}};
  if (is != std::string::npos) toleration["value"] = left.substr(is + 1);
  if (colon != std::string::npos) toleration["effect"] = text.substr(colon + 1);
  return toleration;
}

json::array Tolerations(const job::PodSettings& wishes) {
  json::array all;
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    all.push_back({{"key", key},
                   {"operator", "Exists"},
                   {"effect", "NoExecute"},
                   {"tolerationSeconds", kNodeLoss}});
  }
  for (const std::string& text : wishes.tolerations) all.push_back(Toleration(text));
  return all;
}

// A raw Kubernetes setting of the job with the job's id filled in; null: not set.
Result<json::value> Said(const std::string& text, const DesiredJob& job) {
  if (text.empty()) return json::value(nullptr);
  std::string named = text;
  for (size_t at = 0; (at = named.find(kJobMark, at)) != std::string::npos;)
    named.replace(at, kJobMark.size(), job.job_id);
  return ParseJson(named);
}

// The input was checked by CheckPlacement.
json::value SaidOrNothing(const std::string& text, const DesiredJob& job) {
  Result<json::value> said = Said(text, job);
  return said.ok() ? std::move(*said) : json::value(nullptr);
}

json::object With(json::object usual, const json::value& said) {
  if (!said.is_object()) return usual;
  for (const auto& field : said.get_object()) usual[field.key()] = field.value();
  return usual;
}

bool IsTrue(const json::object& section, const char* field) {
  const json::value* value = section.if_contains(field);
  return value != nullptr && value->is_bool() && value->get_bool();
}

// What the API server rejects together with allowPrivilegeEscalation: false.
bool NeedsEscalation(const json::object& context) {
  if (IsTrue(context, "privileged")) return true;
  const json::value* capabilities = context.if_contains("capabilities");
  if (capabilities == nullptr || !capabilities->is_object()) return false;
  const json::value* added = capabilities->get_object().if_contains("add");
  if (added == nullptr || !added->is_array()) return false;
  return std::ranges::any_of(added->get_array(), [](const json::value& one) {
    return one == "CAP_SYS_ADMIN" || one == "SYS_ADMIN";
  });
}

// A container's security context without privileges.
json::object WithoutRights(json::object context) {
  context.erase("privileged");
  context.erase("procMount");
  if (IsTrue(context, "allowPrivilegeEscalation")) context.erase("allowPrivilegeEscalation");
  if (json::value* capabilities = context.if_contains("capabilities");
      capabilities != nullptr && capabilities->is_object()) {
    capabilities->get_object().erase("add");
    if (capabilities->get_object().empty()) context.erase("capabilities");
  }
  return context;
}

// Rejects pairs of settings that no cluster accepts or no node starts.
Status CheckSecurity(const DesiredJob& job, const job::PodSettings& ask) {
  const json::object container = ContainerSecurity(job, ask);
  const json::value* escalation = container.if_contains("allowPrivilegeEscalation");
  if (escalation != nullptr && *escalation == false && NeedsEscalation(container)) {
    return InvalidArgument(
        "kubernetes.container_security_context: got allowPrivilegeEscalation: false beside "
        "privileged: true or the capability SYS_ADMIN, which a cluster does not take; leave out "
        "one");
  }
  const json::object pod = PodSecurity(job, ask);
  const auto of = [&](const char* field) -> json::value {
    if (const json::value* own = container.if_contains(field)) return *own;
    const json::value* all = pod.if_contains(field);
    return all == nullptr ? json::value() : *all;
  };
  const json::value user = of("runAsUser");
  if (of("runAsNonRoot") == true && user.is_int64() && user.get_int64() == 0) {
    return InvalidArgument(
        "kubernetes.security_context: got runAsNonRoot: true and the user 0, with which no node "
        "starts a pod; name another runAsUser, or leave out runAsNonRoot");
  }
  return Status::Ok();
}

// The section of this name; created if missing.
json::object& Below(json::object* object, const char* name) {
  json::value& section = (*object)[name];
  if (!section.is_object()) section = json::object();
  return section.get_object();
}

// Uses node names, because host name labels may differ. Terms are alternatives, so each of them
// must exclude the node.
void AddExclusions(const std::vector<std::string>& nodes, json::object* affinity) {
  json::array fields;
  for (const std::string& node : nodes) {
    fields.push_back(json::object{
        {"key", "metadata.name"}, {"operator", "NotIn"}, {"values", json::array{node}}});
  }
  json::object& required = Below(&Below(affinity, "nodeAffinity"), kRequired);
  json::value& terms = required["nodeSelectorTerms"];
  if (!terms.is_array()) terms = json::array{json::object()};
  for (json::value& term : terms.get_array()) {
    if (!term.is_object()) continue;
    json::value& there = term.get_object()["matchFields"];
    if (!there.is_array()) there = json::array();
    for (const json::value& field : fields) there.get_array().push_back(field);
  }
}

}  // namespace

bool IsQualified(const std::string& text) {
  return !text.empty() && text.size() <= 316 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ||
           c == '/';
  });
}

job::PodSettings AskOf(const DesiredJob& job, const std::string& role) {
  const auto found = job.pod_settings.find(role);
  if (found != job.pod_settings.end()) return MergePodSettings(job.kubernetes, found->second);
  job::PodSettings ask = job.kubernetes;
  if (IsCoordinator(role) && !ask.container_security_context.empty()) {
    if (const auto said = Said(ask.container_security_context, job); said.ok() && said->is_object())
      ask.container_security_context = ToText(WithoutRights(said->get_object()));
  }
  return ask;
}

Status CheckPlacement(const DesiredJob& job, const job::PodSettings& ask) {
  const std::pair<const char*, const std::string&> texts[] = {
      {"affinity", ask.affinity},
      {"topology_spread", ask.topology_spread},
      {"security_context", ask.security_context},
      {"container_security_context", ask.container_security_context}};
  for (const auto& [name, text] : texts) {
    const Result<json::value> said = Said(text, job);
    const bool list = &text == &ask.topology_spread;
    if (said.ok() && (said->is_null() || said->is_array() == list)) continue;
    return InvalidArgument("kubernetes." + std::string(name) +
                           ": got no JSON of the kind; submit the job again");
  }
  for (const std::string& text : ask.tolerations) {
    const size_t colon = text.rfind(':');
    const std::string effect = colon == std::string::npos ? "NoExecute" : text.substr(colon + 1);
    const bool known =
        effect == "NoSchedule" || effect == "PreferNoSchedule" || effect == "NoExecute";
    if (!known || !IsQualified(text.substr(0, std::min(text.find('='), colon))))
      return InvalidArgument("kubernetes.tolerations: got \"" + text +
                             "\", expected KEY, KEY=VALUE or KEY=VALUE:EFFECT, the effect being "
                             "NoSchedule, PreferNoSchedule or NoExecute");
  }
  for (const char* name : kLabelsOfJobs) {
    if (!ask.labels.contains(name)) continue;
    return InvalidArgument("kubernetes.labels: got " + std::string(name) +
                           ", which Kubernetes itself puts on a Job's pods; leave it out");
  }
  return CheckSecurity(job, ask);
}

void AddPlacement(const DesiredJob& job, const job::PodSettings& wishes, const DesiredTask& task,
                  json::object* spec) {
  (*spec)["tolerations"] = Tolerations(wishes);
  if (!wishes.node_selector.empty()) {
    json::object selector;
    for (const auto& [name, value] : wishes.node_selector) selector[name] = value;
    (*spec)["nodeSelector"] = std::move(selector);
  }
  json::object affinity = With({}, SaidOrNothing(wishes.affinity, job));
  if (task.kind() == TaskKind::kCoordinator) {
    affinity.erase("podAffinity");
    affinity.erase("podAntiAffinity");
  }
  if (!task.excluded_hosts.empty()) AddExclusions(task.excluded_hosts, &affinity);
  if (!affinity.empty()) (*spec)["affinity"] = std::move(affinity);
  if (json::value spread = SaidOrNothing(wishes.topology_spread, job);
      !spread.is_null() && task.kind() != TaskKind::kCoordinator)
    (*spec)["topologySpreadConstraints"] = std::move(spread);
  if (!wishes.service_account.empty()) (*spec)["serviceAccountName"] = wishes.service_account;
  if (!wishes.priority_class.empty()) (*spec)["priorityClassName"] = wishes.priority_class;
  if (!wishes.runtime_class.empty()) (*spec)["runtimeClassName"] = wishes.runtime_class;
  json::array secrets;
  for (const std::string& name : wishes.image_pull_secrets)
    secrets.push_back(json::object{{"name", name}});
  if (!secrets.empty()) (*spec)["imagePullSecrets"] = std::move(secrets);
  if (wishes.host_network.value_or(false)) {
    (*spec)["hostNetwork"] = true;
    (*spec)["dnsPolicy"] = "ClusterFirstWithHostNet";
  }
}

json::object PodSecurity(const DesiredJob& job, const job::PodSettings& ask) {
  json::object context{{"seccompProfile", {{"type", "RuntimeDefault"}}}};
  AddUser(job.container.user, &context);
  return With(std::move(context), SaidOrNothing(ask.security_context, job));
}

json::object ContainerSecurity(const DesiredJob& job, const job::PodSettings& ask) {
  const json::value said = SaidOrNothing(ask.container_security_context, job);
  json::object usual;
  if (!said.is_object() || !NeedsEscalation(said.get_object()))
    usual["allowPrivilegeEscalation"] = false;
  return With(std::move(usual), said);
}

json::object LauncherSecurity(const DesiredJob& job, const job::PodSettings& ask) {
  const json::value said = SaidOrNothing(ask.container_security_context, job);
  if (!said.is_object()) return ContainerSecurity(job, ask);
  return With({{"allowPrivilegeEscalation", false}}, WithoutRights(said.get_object()));
}

}  // namespace shoal::engine::kubernetes
