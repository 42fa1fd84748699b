// The launchers that a job should have and the hosts they must not use, derived from the job file
// and the events of coordinator and engine. Used by job_run.cc; a plain value.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "job/spec/job.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// Indices of the wanted launchers by elastic role. A role that is not in the map has the number in
// its job file.
using MembersByRole = std::map<std::string, std::set<int>>;
// Excluded hosts by task (role and index).
using ExcludedHostsByTask = std::map<std::pair<std::string, int>, std::vector<std::string>>;

class DesiredMembership {
 public:
  // Without any launchers.
  DesiredMembership() = default;
  // `job` must outlive it.
  explicit DesiredMembership(const job::Job* job);

  // Applies an event; returns true if the desired state of the engine has changed.
  //
  // A launcher that has gone silent (its processes are stopped, its container paused) is left out
  // until the engine has ended it. Launchers of an elastic role are added when it grows, and left
  // out after the program of an unwanted or finally failed task has ended. Hosts are excluded per
  // role.
  bool ApplyEvent(const rendezvous::JobEvent& event);
  // A lost launcher is replaced on a host that is not excluded for its role. Nothing changes for
  // running launchers and those that ended well.
  bool ApplyEvent(const engine::TaskEvent& event);

  const MembersByRole& members() const { return members_; }
  const ExcludedHostsByTask& excluded_hosts() const { return excluded_hosts_; }
  bool IsReplaced(const std::string& role, int index) const {
    return replaced_.contains({role, index});
  }

 private:
  bool Resize(const job::Role& role, const rendezvous::JobEvent& event);
  bool Exclude(const rendezvous::JobEvent& event);
  bool UpdateExcludedHosts(const std::string& role, int index);

  const job::Job* job_ = nullptr;
  MembersByRole members_;
  std::map<std::string, int> wanted_;  // wanted number of tasks by elastic role
  std::map<std::string, std::vector<std::string>> excluded_by_role_;  // by role
  ExcludedHostsByTask excluded_hosts_;
  std::set<std::pair<std::string, int>> replaced_;
  std::set<std::pair<std::string, int>> leaving_;  // moving away from an excluded host
};

}  // namespace shoal::controller
