// Which launchers of a job are to exist, and on which hosts not: what the coordinator's and the
// engine's words make of the job file's numbers. Used by job_run.cc; plain value.
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

// Of elastic roles, which indices are to have a launcher; a role that is not named has those that
// its job file says.
using MembersByRole = std::map<std::string, std::set<int>>;
// Of tasks, by role and index, the hosts that they are not to be made on.
using ExcludedHostsByTask = std::map<std::pair<std::string, int>, std::vector<std::string>>;

class DesiredMembership {
 public:
  // With nobody in it.
  DesiredMembership() = default;
  // `job` outlives it.
  explicit DesiredMembership(const job::Job* job);

  // Both are true if the engine is to be told.
  //
  // A launcher that nothing is heard of (its processes are stopped, its container paused) is not
  // named until the engine has ended it.
  //
  // Launchers of an elastic role are made when there are to be more, and not named any more when
  // the program of one that is not wanted, or failed for good, has ended. Hosts are excluded for a
  // role.
  bool ApplyEvent(const rendezvous::JobEvent& event);
  // A launcher that was lost is made again, from now on elsewhere than on its role's excluded
  // hosts. For those that run, or have ended well, nothing changes.
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
  std::map<std::string, int> wanted_;                                 // of elastic roles
  std::map<std::string, std::vector<std::string>> excluded_by_role_;  // by role
  ExcludedHostsByTask excluded_hosts_;
  std::set<std::pair<std::string, int>> replaced_;
  std::set<std::pair<std::string, int>> leaving_;  // left their hosts as excluded ones
};

}  // namespace shoal::controller
