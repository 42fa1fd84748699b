#include "import/kubernetes/job_set_labels.h"

#include <algorithm>
#include <iterator>

#include "job/text/units.h"

namespace shoal::importer {
namespace {

constexpr const char* kOwnIndex = "{{shoal.index}}";
// Values of variables until SetCounts replaces them; no value of a file can look like one, because
// these have their references escaped.
constexpr const char* kJobIndex = "{{shoal.jobset.job-index}}";
constexpr const char* kGlobalIndex = "{{shoal.jobset.job-global-index}}";
constexpr const char* kGroupIndex = "{{shoal.jobset.job-group-index}}";
constexpr const char* kRestarts = "{{shoal.jobset.restart-attempt}}";
constexpr const char* kPrefix = "jobset.sigs.k8s.io/";

std::string TextOf(const job::Node& node, std::string_view field, const std::string& otherwise) {
  const job::Node* found = node.Find(field);
  return found != nullptr && found->kind == job::Node::Kind::kScalar ? found->text : otherwise;
}

int64_t NumberOf(const job::Node& node, std::string_view field, int64_t otherwise) {
  const auto number = job::ParseInteger(TextOf(node, field, ""));
  return number && *number >= 0 && *number <= job::kMaxReplicas ? *number : otherwise;
}

std::string GroupOf(const job::Node& job) { return TextOf(job, "groupName", "default"); }

const std::vector<job::Node>& JobsOf(const job::Node& spec) {
  static const std::vector<job::Node> none;
  const job::Node* jobs = spec.Find("replicatedJobs");
  return jobs != nullptr && jobs->kind == job::Node::Kind::kList ? jobs->items : none;
}

// The coordinator's pod as a host; empty without one.
std::string CoordinatorOf(const job::Node& spec, const std::string& set) {
  const job::Node* pod = spec.Find("coordinator");
  if (pod == nullptr) return "";
  const job::Node* network = spec.Find("network");
  const std::string domain = network == nullptr ? set : TextOf(*network, "subdomain", set);
  return set + "-" + TextOf(*pod, "replicatedJob", "") + "-" + TextOf(*pod, "jobIndex", "0") + "-" +
         TextOf(*pod, "podIndex", "0") + "." + domain;
}

// What a variable's value becomes: a constant or a reference, or an expression of the shell.
struct Count {
  std::string value;
  std::string expression;
};

// `before` + the index of the task's Job.
Count CountOfJob(const ReplicatedJobPlace& place, int64_t before) {
  if (place.jobs <= 1) return {std::to_string(before), ""};
  if (place.pods <= 1 && before == 0) return {kOwnIndex, ""};
  const std::string job = place.pods <= 1 ? "" : " / " + std::to_string(place.pods);
  return {"", "$((SHOAL_INDEX" + job + (before == 0 ? "" : " + " + std::to_string(before)) + "))"};
}

// nullopt for other values.
std::optional<Count> CountOf(const std::string& value, const ReplicatedJobPlace& place) {
  if (value == kOwnIndex) {
    if (place.jobs <= 1) return std::nullopt;
    if (place.pods <= 1) return Count{"0", ""};
    return Count{"", "$((SHOAL_INDEX % " + std::to_string(place.pods) + "))"};
  }
  if (value == kJobIndex) return CountOfJob(place, 0);
  if (value == kGlobalIndex) return CountOfJob(place, place.before);
  if (value == kGroupIndex) return CountOfJob(place, place.group_before);
  if (value == kRestarts) return place.restarts == 0 ? Count{"0", ""} : Count{"", "$SHOAL_ATTEMPT"};
  return std::nullopt;
}

}  // namespace

ReplicatedJobPlace FindPlace(const job::Node& spec, const std::string& name) {
  ReplicatedJobPlace place;
  std::string group;
  for (const job::Node& job : JobsOf(spec)) {
    if (TextOf(job, "name", "") == name) group = GroupOf(job);
  }
  for (const job::Node& job : JobsOf(spec)) {
    const int64_t jobs = NumberOf(job, "replicas", 1);
    if (TextOf(job, "name", "") == name) {
      place.jobs = jobs;
      break;
    }
    place.before += jobs;
    if (GroupOf(job) == group) place.group_before += jobs;
  }
  return place;
}

KnownPodFields FindLabels(const job::Node& spec, const std::string& set, const std::string& name) {
  int64_t all = 0;
  int64_t of_group = 0;
  std::string group;
  for (const job::Node& job : JobsOf(spec)) {
    if (TextOf(job, "name", "") == name) group = GroupOf(job);
  }
  for (const job::Node& job : JobsOf(spec)) {
    all += NumberOf(job, "replicas", 1);
    if (GroupOf(job) == group) of_group += NumberOf(job, "replicas", 1);
  }
  const std::string prefix = kPrefix;
  KnownPodFields fields = {
      {"batch.kubernetes.io/job-completion-index", {kOwnIndex, "the task's index in its Job"}},
      {prefix + "jobset-name", {set, ""}},
      {prefix + "replicatedjob-name", {name, ""}},
      {prefix + "replicatedjob-replicas", {std::to_string(FindPlace(spec, name).jobs), ""}},
      {prefix + "global-replicas", {std::to_string(all), ""}},
      {prefix + "group-name", {group, ""}},
      {prefix + "group-replicas", {std::to_string(of_group), ""}},
      {prefix + "job-index", {kJobIndex, "the index of the task's Job"}},
      {prefix + "job-global-index", {kGlobalIndex, "the index of the task's Job in the set"}},
      {prefix + "job-group-index", {kGroupIndex, "the index of the task's Job in its group"}},
      {prefix + "restart-attempt",
       {kRestarts, "the number of restarts; a resume after a suspension counts too"}},
  };
  const std::string coordinator = CoordinatorOf(spec, set);
  if (!coordinator.empty()) fields[prefix + "coordinator"] = {coordinator, ""};
  return fields;
}

UnsetCounts SetCounts(const ReplicatedJobPlace& place, job::Role* role) {
  UnsetCounts unset;
  std::string statement;
  for (auto it = role->env.begin(); it != role->env.end();) {
    const auto count = CountOf(it->second, place);
    if (count && count->expression.empty()) it->second = count->value;
    if (!count || count->expression.empty()) {
      ++it;
      continue;
    }
    if (it->second == kRestarts && place.restarts_alone) {
      unset.restarts.push_back(it->first);
    } else if (role->command.empty()) {
      unset.no_shell.push_back(it->first);
    } else {
      statement += (statement.empty() ? "export " : " ") + it->first + "=" + count->expression;
    }
    it = role->env.erase(it);
  }
  if (!statement.empty()) PrependStatement(statement, role);
  return unset;
}

}  // namespace shoal::importer
