// One job as the engine sees it: the desired state it wrote, the events that executors logged, and
// the state of its apps in Marathon. Owned by MarathonEngine and called under its lock. Reads and
// writes files of the job's directory; makes no call to Marathon.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/agent/desired_state.h"
#include "engine/engine.h"
#include "engine/marathon/app_spec.h"
#include "engine/marathon/decode.h"

namespace shoal::engine::marathon {

// URL and authorities of the Marathon that runs the job of this directory, as
// MarathonJob::WriteDesired recorded them; empty if there is no record.
job::Marathon ReadSettings(const std::string& job_dir);

// Made by Make or Find; WriteDesired and WriteStop write the desired state; ReadEvents,
// ReconcileApps and ReportPendingApps return new events. Not thread-safe.
class MarathonJob {
 public:
  using Key = std::pair<std::string, int>;

  // A new job. Removes files that an earlier job with this directory left.
  static Result<std::unique_ptr<MarathonJob>> Make(const std::string& id, const std::string& dir);
  // A job from an earlier engine's records; NotFound if there are none.
  static Result<std::unique_ptr<MarathonJob>> Find(const std::string& id, const std::string& dir);

  // Writes a new desired state. `rest`: all of it but tasks and revision.
  Status WriteDesired(const DesiredJob& desired, DesiredState rest);
  // Writes a desired state that ends all tasks.
  Status WriteStop(std::chrono::milliseconds grace);

  // Events that executors logged since the last call.
  std::vector<TaskEvent> ReadEvents();
  // Slots whose tasks run, with their Mesos tasks. Call it before asking Marathon for apps, and
  // pass the result to ReconcileApps.
  std::map<Key, std::string> Running() const;
  // Compares with the job's apps in Marathon and marks lost tasks. `running`: result of Running()
  // before the query; `said`: ends of Mesos tasks by Marathon's events.
  std::vector<TaskEvent> ReconcileApps(const std::vector<App>& apps,
                                       const std::map<Key, std::string>& running,
                                       const std::map<std::string, Failure>& said);
  // Events with the reasons why Mesos tasks wait, if they changed.
  std::vector<TaskEvent> ReportPendingApps(const std::vector<PendingApp>& waiting);
  // The job's group was removed from Marathon by another party: marks all tasks as lost.
  std::vector<TaskEvent> MarkEnded(const std::string& reason);
  // After a stop: ends of tasks that no executor reported.
  std::vector<TaskEvent> EndRemaining();
  void RemoveRecords() const;

  // The group to send. An app that shrinks keeps its instance count until its surplus Mesos tasks
  // are killed, because Marathon would choose the tasks itself.
  json::object Group(const std::string& program) const;
  // Mesos tasks to kill: those above an app's required count that hold no needed slot. Empty while
  // one of them is still ending. `group_differs` is set if `Group` must be sent again: an app has a
  // larger instance count than it needs but no Mesos task to kill, or another party scaled it down
  // or removed it.
  std::vector<std::string> Surplus(const std::vector<App>& apps, bool* group_differs);

  std::vector<TaskStatus> List() const;
  std::string MesosTaskOf(const std::string& role, int index) const;
  const std::string& dir() const { return dir_; }
  // Settings of the last Apply, without tasks.
  const DesiredJob& settings() const { return settings_; }
  bool stopping() const { return desired_state_.stop; }
  bool over() const { return over_; }
  bool AnyRunning() const;
  bool Waits() const;  // a listed task has not started, or an app has to shrink

 private:
  struct Seen {
    int incarnation = 0;
    TaskPhase phase = TaskPhase::kStarting;
    std::string mesos_task;
  };
  struct Slot {
    explicit Slot(std::filesystem::path path) : reader(std::move(path)) {}
    AgentEventReader reader;
    std::optional<Seen> seen;  // nothing before the first event
    int revision = 0;
    bool named = false;
  };

  MarathonJob(std::string id, std::string dir) : id_(std::move(id)), dir_(std::move(dir)) {}
  Slot& SlotOf(const Key& key);
  void Take(const AgentEvent& line, const Key& key, Slot* place, std::vector<TaskEvent>* events);
  TaskEvent EventOf(const Key& key, const Slot& place, const std::string& reason) const;
  // Counts Mesos tasks that ended before they acquired a slot; gives the role up after several.
  std::vector<TaskEvent> CountFailures(const App& app);
  std::set<std::string> NeededTasks() const;
  // Whether an app has fewer instances than it needs, or is missing; logs it.
  bool IsScaledDown(const std::vector<App>& apps) const;

  const std::string id_;
  const std::string dir_;
  DesiredJob settings_;
  DesiredState desired_state_;
  std::map<Key, Slot> places_;
  std::map<std::string, RoleRequirement> needs_;         // of each role ever listed
  std::map<std::string, int> instances_;                 // instance count by role, as sent
  bool shrinks_ = false;                                 // an app has more instances than it needs
  std::set<std::string> mesos_tasks_;                    // that acquired a slot
  std::map<std::string, std::set<std::string>> failed_;  // by role: ended without a slot
  std::string waits_;                                    // the last reported reason of waiting
  bool over_ = false;
};

}  // namespace shoal::engine::marathon
