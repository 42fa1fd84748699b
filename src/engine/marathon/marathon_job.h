// One job as the engine sees it: what it ordered, what holders wrote, what Marathon says. Owned by
// the engine and called under its lock; its I/O is files of the job's directory.
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

// Where the job of this directory was sent, as MarathonJob::Order wrote it: url and authorities.
// Nothing if it was not.
job::Marathon ReadSettings(const std::string& job_dir);

class MarathonJob {
 public:
  using Key = std::pair<std::string, int>;

  // A job of which nothing exists: what an earlier life of it left is removed.
  static Result<std::unique_ptr<MarathonJob>> Make(const std::string& id, const std::string& dir);
  // From what an earlier engine wrote; NotFound if it wrote nothing.
  static Result<std::unique_ptr<MarathonJob>> Find(const std::string& id, const std::string& dir);

  // Writes what is to exist now. `rest`: of the orders, all but tasks and number.
  Status Order(const DesiredJob& desired, DesiredState rest);
  // Writes that all is to end.
  Status OrderStop(std::chrono::milliseconds grace);

  // What holders wrote since the last call.
  std::vector<TaskEvent> Read();
  // Places whose tasks run, by their Mesos tasks: to be compared with what Marathon then says.
  std::map<Key, std::string> Running() const;
  // What Marathon says of the job's apps. `running`: Running() before it was asked; `said`: what
  // its events told of Mesos tasks' ends.
  std::vector<TaskEvent> Look(const std::vector<App>& apps,
                              const std::map<Key, std::string>& running,
                              const std::map<std::string, Failure>& said);
  // Why Mesos tasks wait.
  std::vector<TaskEvent> TellWaiting(const std::vector<PendingApp>& waiting);
  // The job's group is not Marathon's any more, and we did not remove it.
  std::vector<TaskEvent> OverWith(const std::string& reason);
  // After a stop: what was not told of what ran.
  std::vector<TaskEvent> EndAll();
  void RemoveRecords() const;

  // The body to be sent. An app that has to shrink keeps its instances until `Surplus` are gone:
  // Marathon would choose which.
  json::object Group(const std::string& program) const;
  // Mesos tasks of which an app has too many and which no place needs; empty while one still ends.
  // `group_shrinks`: an app has more instances than it needs and no Mesos task to kill for it, so
  // that `Group` is to be sent again.
  std::vector<std::string> Surplus(const std::vector<App>& apps, bool* group_shrinks);

  std::vector<TaskStatus> List() const;
  std::string MesosTaskOf(const std::string& role, int index) const;
  const std::string& dir() const { return dir_; }
  // As applied last, without tasks.
  const DesiredJob& settings() const { return settings_; }
  bool stopping() const { return orders_.stop; }
  bool over() const { return over_; }
  bool AnyRunning() const;
  bool Waits() const;  // a place that is named has not begun, or something has to shrink

 private:
  struct Seen {
    int incarnation = 0;
    TaskPhase phase = TaskPhase::kStarting;
    std::string mesos_task;
  };
  struct Slot {
    explicit Slot(std::filesystem::path path) : reader(std::move(path)) {}
    AgentEventReader reader;
    std::optional<Seen> seen;  // nothing before its first line
    int round = 0;
    bool named = false;
  };

  MarathonJob(std::string id, std::string dir) : id_(std::move(id)), dir_(std::move(dir)) {}
  Slot& SlotOf(const Key& key);
  void Take(const AgentEvent& line, const Key& key, Slot* place, std::vector<TaskEvent>* events);
  TaskEvent EventOf(const Key& key, const Slot& place, const std::string& reason) const;
  // Mesos tasks that end before they take a place: the role is given up after some.
  std::vector<TaskEvent> CountFailures(const App& app);
  std::set<std::string> NeededTasks() const;

  const std::string id_;
  const std::string dir_;
  DesiredJob settings_;
  DesiredState orders_;
  std::map<Key, Slot> places_;
  std::map<std::string, RoleRequirement> needs_;         // of each role that was ever named
  std::map<std::string, int> instances_;                 // of its app, as it is sent
  bool shrinks_ = false;                                 // an app has more than it needs
  std::set<std::string> mesos_tasks_;                    // that took a place
  std::map<std::string, std::set<std::string>> failed_;  // of a role, before they took one
  std::string waits_;                                    // why, as it was told last
  bool over_ = false;
};

}  // namespace shoal::engine::marathon
