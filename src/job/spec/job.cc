#include "job/spec/job.h"

namespace shoal::job {
namespace {

template <typename Value>
void Put(const Value& said, Value* ask) {
  if (said != Value()) *ask = said;
}

}  // namespace

PodSettings MergePodSettings(PodSettings ask, const PodSettings& role) {
  for (const auto& [name, value] : role.labels) ask.labels[name] = value;
  for (const auto& [name, value] : role.annotations) ask.annotations[name] = value;
  Put(role.node_selector, &ask.node_selector);
  Put(role.tolerations, &ask.tolerations);
  Put(role.service_account, &ask.service_account);
  Put(role.image_pull_secrets, &ask.image_pull_secrets);
  Put(role.priority_class, &ask.priority_class);
  Put(role.runtime_class, &ask.runtime_class);
  Put(role.volumes, &ask.volumes);
  Put(role.host_network, &ask.host_network);
  Put(role.affinity, &ask.affinity);
  Put(role.topology_spread, &ask.topology_spread);
  Put(role.security_context, &ask.security_context);
  Put(role.container_security_context, &ask.container_security_context);
  return ask;
}

const Role* Job::FindRole(const std::string& role) const {
  for (const Role& candidate : roles) {
    if (candidate.name == role) return &candidate;
  }
  return nullptr;
}

std::vector<std::string> Job::CommandOf(const Role& role) const {
  std::vector<std::string> words = role.command.empty() ? command : role.command;
  if (!words.empty()) words.insert(words.end(), role.args.begin(), role.args.end());
  return words;
}

}  // namespace shoal::job
