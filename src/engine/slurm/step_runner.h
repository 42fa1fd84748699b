// The running steps of an allocation. Each step is an srun (for the coordinator: a process of the
// batch step) with pipes that carry the messages of step_protocol.h.
#pragma once

#include <poll.h>

#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "engine/agent/task_table.h"
#include "engine/process/child_process.h"
#include "engine/slurm/step_protocol.h"

namespace shoal::engine::slurm {

// Called for tasks of a step; `nodes` are in Slurm's list syntax.
struct StepCallbacks {
  std::function<void(const TaskTable::Incarnation&)> on_started;
  // `words`: the last lines of srun's standard error.
  std::function<void(const TaskTable::Incarnation&, TaskEnd, const std::string& words)> on_ended;
  std::function<void(const TaskTable::Incarnation&, const std::string& reason)> on_refused;
  std::function<void(const std::string& nodes)> on_nodes_failed;  // in Slurm's list syntax
  std::function<void(const TaskTable::Incarnation&)>
      on_step_ended;  // called for each task of a step that has ended
};

// One step to start.
struct StepSpec {
  std::vector<std::string> words;  // srun's command line; empty: one task, without srun
  std::vector<TaskTable::Incarnation> incarnations;
  std::string file;  // the file that `shoal slurm step` reads
  // Allocation that the tasks cancel if no agent reads the report of their ends; empty: none.
  std::string number = {};
};

// Start begins a step; the owner polls the descriptors of AddPolls and calls Handle when one is
// ready. Not thread-safe; callbacks run inside Start and Handle.
class StepRunner {
 public:
  // `program`: path of shoal. `env`: environment of srun, whose messages go to this process's
  // standard error.
  StepRunner(std::string program, std::vector<std::string> env, StepCallbacks callbacks)
      : program_(std::move(program)), env_(std::move(env)), callbacks_(std::move(callbacks)) {}

  void Start(const StepSpec& spec);
  // Sends a signal to a task through its step. If no task of the step has started yet, srun itself
  // is killed.
  void Signal(const TaskTable::Incarnation& life, int signal);
  void AddPolls(std::vector<pollfd>* polls) const;
  // Reads all available messages. Does not block.
  void Handle();
  bool empty() const { return steps_.empty(); }

 private:
  struct Member {
    TaskTable::Incarnation life;
    bool started = false;
    bool over = false;
  };
  struct Step {
    Child child;
    std::vector<Member> members;
    std::string out;
    std::string err;
    std::string last_words;
    std::string unsent;   // signals that srun has not read yet
    bool answer = false;  // tasks wait for an acknowledgement of their ends
  };
  void ReadOut(Step* step);
  void ReadErr(Step* step);
  void HandleLine(Step* step, std::string_view line);
  void End(Step* step);
  static void Send(Step* step);

  const std::string program_;
  const std::vector<std::string> env_;
  const StepCallbacks callbacks_;
  std::list<Step> steps_;
};

}  // namespace shoal::engine::slurm
