#include "engine/kubernetes/placement.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace shoal::engine::kubernetes {
namespace {

constexpr int kNodeLoss = 30;  // seconds until what a lost node held is made elsewhere
constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr std::string_view kJobMark = "{{shoal.job}}";

// "UID:GID", numbers; nothing of a name that only the image knows.
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

json::array Tolerations(const job::Kubernetes& wishes) {
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

// What the job says in Kubernetes' own words, with its ID where it is meant; null: nothing.
Result<json::value> Said(const std::string& text, const DesiredJob& job) {
  if (text.empty()) return json::value(nullptr);
  std::string named = text;
  for (size_t at = 0; (at = named.find(kJobMark, at)) != std::string::npos;)
    named.replace(at, kJobMark.size(), job.job_id);
  return ParseJson(named);
}

// CheckPlacement has seen it.
json::value SaidOrNothing(const std::string& text, const DesiredJob& job) {
  Result<json::value> said = Said(text, job);
  return said.ok() ? std::move(*said) : json::value(nullptr);
}

json::object With(json::object usual, const json::value& said) {
  if (!said.is_object()) return usual;
  for (const auto& field : said.get_object()) usual[field.key()] = field.value();
  return usual;
}

// The section of this name, made where it is not.
json::object& Below(json::object* object, const char* name) {
  json::value& section = (*object)[name];
  if (!section.is_object()) section = json::object();
  return section.get_object();
}

// By the nodes' own names: labels of hosts may be others. A node may be used if any one of the
// terms allows it, so each of them has to exclude it.
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

Status CheckPlacement(const DesiredJob& job) {
  const job::Kubernetes& wishes = job.kubernetes;
  for (const std::string* text : {&wishes.affinity, &wishes.topology_spread,
                                  &wishes.security_context, &wishes.container_security_context}) {
    const Result<json::value> said = Said(*text, job);
    const bool list = text == &wishes.topology_spread;
    if (said.ok() && (said->is_null() || said->is_array() == list)) continue;
    return InvalidArgument("kubernetes." +
                           std::string(text == &wishes.affinity ? "affinity"
                                       : list                   ? "topology_spread"
                                       : text == &wishes.security_context
                                           ? "security_context"
                                           : "container_security_context") +
                           ": got no JSON of the kind; submit the job again");
  }
  for (const std::string& text : job.kubernetes.tolerations) {
    const size_t colon = text.rfind(':');
    const std::string effect = colon == std::string::npos ? "NoExecute" : text.substr(colon + 1);
    const bool known =
        effect == "NoSchedule" || effect == "PreferNoSchedule" || effect == "NoExecute";
    if (!known || !IsQualified(text.substr(0, std::min(text.find('='), colon))))
      return InvalidArgument("kubernetes.tolerations: got \"" + text +
                             "\", expected KEY, KEY=VALUE or KEY=VALUE:EFFECT, the effect being "
                             "NoSchedule, PreferNoSchedule or NoExecute");
  }
  return Status::Ok();
}

void AddPlacement(const DesiredJob& job, const DesiredTask& task, json::object* spec) {
  const job::Kubernetes& wishes = job.kubernetes;
  (*spec)["tolerations"] = Tolerations(wishes);
  if (!wishes.node_selector.empty()) {
    json::object selector;
    for (const auto& [name, value] : wishes.node_selector) selector[name] = value;
    (*spec)["nodeSelector"] = std::move(selector);
  }
  json::object affinity = With({}, SaidOrNothing(wishes.affinity, job));
  if (task.role == "coordinator") {
    affinity.erase("podAffinity");
    affinity.erase("podAntiAffinity");
  }
  if (!task.excluded_hosts.empty()) AddExclusions(task.excluded_hosts, &affinity);
  if (!affinity.empty()) (*spec)["affinity"] = std::move(affinity);
  if (json::value spread = SaidOrNothing(wishes.topology_spread, job);
      !spread.is_null() && task.role != "coordinator")
    (*spec)["topologySpreadConstraints"] = std::move(spread);
  if (!wishes.service_account.empty()) (*spec)["serviceAccountName"] = wishes.service_account;
  if (!wishes.priority_class.empty()) (*spec)["priorityClassName"] = wishes.priority_class;
  json::array secrets;
  for (const std::string& name : wishes.image_pull_secrets)
    secrets.push_back(json::object{{"name", name}});
  if (!secrets.empty()) (*spec)["imagePullSecrets"] = std::move(secrets);
  if (wishes.host_network) {
    (*spec)["hostNetwork"] = true;
    (*spec)["dnsPolicy"] = "ClusterFirstWithHostNet";
  }
}

json::object PodSecurity(const DesiredJob& job) {
  json::object context{{"seccompProfile", {{"type", "RuntimeDefault"}}}};
  AddUser(job.container.user, &context);
  return With(std::move(context), SaidOrNothing(job.kubernetes.security_context, job));
}

json::object ContainerSecurity(const DesiredJob& job) {
  return With({{"allowPrivilegeEscalation", false}},
              SaidOrNothing(job.kubernetes.container_security_context, job));
}

}  // namespace shoal::engine::kubernetes
