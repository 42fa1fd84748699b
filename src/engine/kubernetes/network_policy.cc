#include "engine/kubernetes/network_policy.h"

#include <utility>

#include "engine/kubernetes/decode.h"

namespace shoal::engine::kubernetes {
namespace {

json::object PolicyObject(const DesiredJob& job, const Owner& owner, const std::string& name,
                          json::object selector, json::object rule) {
  json::object meta{
      {"name", name},
      {"labels", {{"app.kubernetes.io/managed-by", "shoal"}, {kJobLabel, job.job_id}}}};
  if (!owner.uid.empty())
    meta["ownerReferences"] = json::array{
        {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", owner.name}, {"uid", owner.uid}}};
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", std::move(meta)},
          {"spec",
           {{"podSelector", {{"matchLabels", std::move(selector)}}},
            {"policyTypes", json::array{"Ingress"}},
            {"ingress", json::array{std::move(rule)}}}}};
}

}  // namespace

std::vector<json::object> NetworkPolicyObjects(const DesiredJob& job, const Owner& owner) {
  const auto team = job.kubernetes.labels.find(kTeamLabel);
  if (team == job.kubernetes.labels.end()) return {};
  const std::string base = BaseName(job.job_id);
  const json::object peer{{"podSelector", {{"matchLabels", {{kTeamLabel, team->second}}}}}};
  const json::object port{{"protocol", "TCP"}, {"port", CoordinatorAddress(job.job_id, "").port}};
  return {PolicyObject(job, owner, base, {{kJobLabel, job.job_id}}, {{"from", json::array{peer}}}),
          PolicyObject(job, owner, base + "-coordinator",
                       {{kJobLabel, job.job_id}, {kRoleLabel, kCoordinatorRole}},
                       {{"ports", json::array{port}}})};
}

}  // namespace shoal::engine::kubernetes
