// Hosts on which no program of a role is started any more, because a rule of the job file
// (EndAction::kExcludeHost) blames the host for a task's end. Programs that run there go on; a task
// that would start again leaves, and its engine creates it elsewhere.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rendezvous/lifecycle/core_state.h"

namespace shoal::rendezvous {

class HostExclusions {
 public:
  explicit HostExclusions(CoreState* state) : state_(state), excluded_(state->job.roles.size()) {}

  // Excludes the host of the task's launcher for the task's role. Nothing if the host is unknown.
  void ExcludeHostOf(int number, const std::string& why);
  bool Contains(size_t role, const std::string& node) const {
    return excluded_[role].contains(node);
  }
  // The reason given when it was excluded; it must be.
  const std::string& Reason(size_t role, const std::string& node) const {
    return excluded_[role].find(node)->second;
  }
  bool OnExcludedHost(const Task& task) const;
  // Completes a sentence that says that a task of the role has no launcher; empty without
  // exclusions.
  std::string DescribeExcludedHosts(size_t role) const;

  // Applies kExcluded.
  Status Apply(const JournalRecord& record);

 private:
  CoreState* const state_;
  std::vector<std::map<std::string, std::string>> excluded_;  // by role: host → reason
};

}  // namespace shoal::rendezvous
