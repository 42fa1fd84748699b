#include "framework/cluster_references.h"

#include "job/spec/cluster_reference.h"

namespace shoal::framework {
namespace {

using job::ReferencePart;
using job::ReferenceTo;

Result<std::string> JoinMembers(const ClusterRole& role, bool with_ports) {
  std::string list;
  for (const ClusterMember& member : role.members) {
    if (member.host.empty()) continue;
    if (with_ports && member.ports.empty()) {
      return InvalidArgument("role '" + role.name + "' has no port; give it one under 'ports'");
    }
    list += list.empty() ? "" : ",";
    list += with_ports ? FormatAddress(member.host, member.ports[0]) : member.host;
  }
  return list;
}

Result<std::string> ExpandReference(const ReferencePart& part, const ClusterDescription& cluster,
                                    const TaskContext& task) {
  if (part.to == ReferenceTo::kText) return part.text;
  if (part.to == ReferenceTo::kIndex) return std::to_string(task.index);
  if (part.to == ReferenceTo::kSecret || part.to == ReferenceTo::kSecretFile)
    return job::SecretMark(part.text, part.to == ReferenceTo::kSecretFile);
  const bool own = part.to == ReferenceTo::kHost;
  const ClusterRole* role = cluster.FindRole(own ? task.role : part.text);
  if (role == nullptr) return InvalidArgument("role '" + part.text + "' is not in the job");
  if (own) return role->members[static_cast<size_t>(task.index)].host;
  if (part.to == ReferenceTo::kCount) return std::to_string(role->members.size());
  return JoinMembers(*role, part.to == ReferenceTo::kAddresses);
}

}  // namespace

Status ExpandClusterReferences(const ClusterDescription& cluster, const TaskContext& task,
                               Environment* env) {
  for (auto& [name, value] : *env) {
    if (!job::HasReference(value)) continue;
    const std::string where = "the environment variable " + name + ": ";
    const auto parts = job::ParseReferences(value);
    if (!parts.ok()) return InvalidArgument(where + parts.status().message());
    std::string filled;
    for (const ReferencePart& part : *parts) {
      const auto text = ExpandReference(part, cluster, task);
      if (!text.ok()) return InvalidArgument(where + text.status().message());
      filled += *text;
    }
    value = std::move(filled);
  }
  return Status::Ok();
}

}  // namespace shoal::framework
