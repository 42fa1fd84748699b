// The steps of an allocation that an agent holds: each an srun (for the coordinator, a process of
// the batch step) with pipes, through which it tells of its tasks and hears signals for them.
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

struct StepCallbacks {
  std::function<void(const TaskTable::Incarnation&)> on_started;
  // `words`: what srun said last.
  std::function<void(const TaskTable::Incarnation&, TaskEnd, const std::string& words)> on_ended;
  std::function<void(const TaskTable::Incarnation&, const std::string& reason)> on_refused;
  std::function<void(const std::string& nodes)> on_nodes_failed;  // as Slurm lists them
  std::function<void(const TaskTable::Incarnation&)>
      on_step_ended;  // the step it was started by is over
};

struct StepSpec {
  std::vector<std::string> words;  // of srun; empty: no srun, one task, here
  std::vector<TaskTable::Incarnation> lives;
  std::string file;  // what `shoal slurm step` reads
  // Of the allocation, which its tasks give back when nobody hears of their ends; empty: they do
  // not.
  std::string number = {};
};

// Not thread-safe; callbacks come from Start and Handle.
class StepRunner {
 public:
  // `program`: shoal. `env`: of sruns. What sruns say goes to our standard error.
  StepRunner(std::string program, std::vector<std::string> env, StepCallbacks callbacks)
      : program_(std::move(program)), env_(std::move(env)), callbacks_(std::move(callbacks)) {}

  void Start(const StepSpec& spec);
  // Told through the step; a step none of whose tasks has started is killed itself.
  void Signal(const TaskTable::Incarnation& life, int signal);
  void AddPolls(std::vector<pollfd>* polls) const;
  // Reads whatever there is.
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
    std::string unsent;   // orders that srun has not taken yet
    bool answer = false;  // its tasks wait until we have heard of their ends
  };
  void ReadOut(Step* step);
  void ReadErr(Step* step);
  void Take(Step* step, std::string_view line);
  void End(Step* step);
  static void Send(Step* step);

  const std::string program_;
  const std::vector<std::string> env_;
  const StepCallbacks callbacks_;
  std::list<Step> steps_;
};

}  // namespace shoal::engine::slurm
