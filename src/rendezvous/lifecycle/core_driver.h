// A CoordinatorCore with a clock and events that the test controls: for the core's tests.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

// As all tests of the core call them.
using job::JobState;
using job::TaskState;
using Kind = Action::Kind;

inline job::Job Make(int workers, int servers) {
  job::Job job;
  job.roles.resize(servers > 0 ? 2 : 1);
  job.roles[0].name = "worker";
  job.roles[0].replicas = workers;
  if (servers > 0) {
    job.roles[1].name = "server";
    job.roles[1].replicas = servers;
    job.roles[1].follows = "worker";
    job.roles[1].ports = {{"ps", false}};
  }
  job.success.roles = {"worker"};
  return job;
}

// Drives a core by hand and keeps its actions and records.
class CoreDriver {
 public:
  // `journal`: records of an earlier coordinator, from which this one goes on; `resumes`: how often
  // the job was resumed.
  explicit CoreDriver(const job::Job& job, bool controller = true,
                      const std::vector<JournalRecord>& journal = {}, int resumes = 0,
                      const CoreLimits& limits = {})
      : core(job, limits), records(journal) {
    SHOAL_CHECK(core.Restore(journal).ok());
    if (!journal.empty()) now = journal.back().at;
    Take(core.Begin(now, resumes));
    if (controller) Do(ControllerConnected{});
  }
  void Do(const Event& event) { Take(core.Handle(event, now)); }
  // Lets time pass; `last` then holds all actions of it.
  void Pass(Millis by) {
    const Millis until = now + by;
    std::vector<Action> all;
    do {
      now = std::min(until, std::max(now, core.NextDeadline().value_or(until)));
      Do(Tick{});
      all.insert(all.end(), last.begin(), last.end());
    } while (now < until);
    last = std::move(all);
  }
  void Join(MemberId member, const std::string& role, int index, int incarnation = 0,
            const std::string& node = "") {
    Do(LauncherJoined{member, role, index, incarnation, "i" + std::to_string(member), 0, -1, false,
                      node});
    Do(PortsLeased{member, "h" + std::to_string(member), {static_cast<uint16_t>(4000 + member)}});
  }
  void JoinAll() {
    MemberId member = 1;
    for (const job::Role& role : core.job().roles) {
      for (int i = 0; i < role.replicas; ++i) Join(member++, role.name, i);
    }
  }
  void End(MemberId member, const job::TaskEnd& end, const std::string& line = "") {
    Do(ProgramEnded{member, core.attempt_of(*core.TaskOf(member)), end, line, -1, ""});
  }
  int Count(Action::Kind kind, int task = -1) const {
    return static_cast<int>(std::count_if(last.begin(), last.end(), [&](const Action& one) {
      return one.kind == kind && (task < 0 || one.task == task);
    }));
  }
  std::string Text(Action::Kind kind) const {
    for (const Action& one : last) {
      if (one.kind == kind) return one.text;
    }
    return "(none)";
  }
  void Take(std::vector<Action> actions) {
    last = std::move(actions);
    for (const Action& one : last) {
      if (one.kind == Action::Kind::kRecord) records.push_back(one.record);
    }
  }

  Millis now{0};
  CoordinatorCore core;
  std::vector<Action> last;
  std::vector<JournalRecord> records;
};

}  // namespace shoal::rendezvous
