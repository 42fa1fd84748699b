#include "import/kubernetes/pod_hosts.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "import/kubernetes/operator_files.h"
#include "job/spec/cluster_reference.h"

namespace shoal::importer {
namespace {

// True if the text goes on with an index, or with what a shell or a program expands to one.
bool IsIndex(std::string_view text) {
  if (text.starts_with('{')) return !text.starts_with("{{");  // {0..3}, not a reference of ours
  return !text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 ||
                           std::string_view("$\"'`[%*").find(text[0]) != std::string_view::npos);
}
bool IsHostChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; }

// Finds the host of the first pod in the text: (position, length); (npos, 0) if it is absent.
std::pair<size_t, size_t> FindHost(const PodHosts& pods, const std::string& text) {
  const auto part = [&](size_t i) { return i < text.size() && IsHostChar(text[i]); };
  const auto dot = [&](size_t i) { return text.compare(i, 1, ".") == 0 && part(i + 1); };
  for (size_t at = text.find(pods.first); at != text.npos; at = text.find(pods.first, at + 1)) {
    size_t end = at + pods.first.size();
    const bool inside = at > 0 && (part(at - 1) || text[at - 1] == '.');
    if (inside || part(end)) continue;
    const std::string domain = "." + pods.domain;
    const bool in_domain = pods.domain.empty() || (text.compare(end, domain.size(), domain) == 0 &&
                                                   !part(end + domain.size()));
    if (!in_domain && dot(end)) continue;
    while (part(end) || dot(end)) ++end;
    return {at, end - at};
  }
  return {text.npos, 0};
}

// True if the text contains the host of any of the pods: the prefix, and an index.
bool ContainsHost(const PodHosts& pods, const std::string& text) {
  for (size_t at = text.find(pods.prefix); at != text.npos; at = text.find(pods.prefix, at + 1)) {
    const size_t end = at + pods.prefix.size();
    const bool inside = at > 0 && IsHostChar(text[at - 1]);
    if (!inside && IsIndex(std::string_view(text).substr(end))) return true;
  }
  return false;
}

// Replaces the host in a variable by the task's address. Works if the role has one task, or if a
// shell can cut the list of addresses at a comma behind the host.
void ReplaceInVariable(const PodHosts& pods, const std::string& name, std::string* value,
                       job::Role* role, FieldReader* spec, JobBuilder* builder) {
  const auto [at, length] = FindHost(pods, *value);
  if (at == value->npos) return;
  const std::string host = value->substr(at, length);
  const std::string before = value->substr(0, at);
  const std::string behind = value->substr(at + length);
  const std::string hosts = "{{shoal.hosts." + pods.role + "}}";
  const job::Role* other = builder->FindRole(pods.role);
  if (other == nullptr) return;
  if (other->replicas != 1) {
    const std::string reference = "$(" + name + ")";
    const bool named = std::ranges::any_of(
        role->command, [&](const std::string& word) { return word.find(reference) != word.npos; });
    const bool plain = (before + behind).find_first_of(",'\n") == value->npos;
    if (role->command.empty() || named || !plain || job::HasReference(before + behind)) return;
    PrependStatement(
        "export " + name + "=\"${" + name + "%%,*}\"" + (behind.empty() ? "" : "'" + behind + "'"),
        role);
  }
  *value = before + hosts + (other->replicas == 1 ? behind : "");
  spec->AddLoss("",
                "the variable " + name + " named the host " + job::PrintableText(host) +
                    ", a pod's; kept as the host of that task",
                true);
}

void ReportHosts(const PodHosts& pods, const job::Role& role, FieldReader* spec) {
  const auto names = [&](const std::string& text) { return ContainsHost(pods, text); };
  const bool said = std::ranges::any_of(role.command, names) ||
                    std::ranges::any_of(role.args, names) ||
                    std::ranges::any_of(role.env, [&](const auto& v) { return names(v.second); });
  if (!said) return;
  spec->AddLoss("", "it names the host " + job::PrintableText(pods.prefix + "…") +
                        ", a pod's name there, which no host has here; give it in a variable: "
                        "{{shoal.hosts." +
                        pods.role + "}} is a list of the hosts of that role");
}

}  // namespace

void ReplacePodHosts(const std::vector<PodHosts>& pods, FieldReader* spec, JobBuilder* builder) {
  for (job::Role& role : builder->job()->roles) {
    spec->set_at("roles." + role.name);
    if (builder->job()->framework != job::Framework::kMpi && CommandCalls(role, "ssh")) {
      spec->AddLoss(
          "",
          "the command calls ssh; tasks have no ssh daemon and no keys, and no host has a "
          "pod's name, so that a loop that waits for others never ends; where it starts "
          "mpirun make it a job of framework mpi, which reaches workers without ssh");
    }
    for (const PodHosts& one : pods) {
      for (auto& [name, value] : role.env)
        ReplaceInVariable(one, name, &value, &role, spec, builder);
      ReportHosts(one, role, spec);
    }
  }
}

}  // namespace shoal::importer
