// The reference implementation of engine.h, for tests: tasks behave as their knobs say, and the
// test advances the clock.
//
// A FakeWorld is the machine: it outlives engines, as processes outlive a controller. State changes
// only in FakeWorld::Advance and FakeEngine::Stop, on the thread that calls them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/event_hub.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

// Behaviour of a task at each start, or only at the first one if `only_first` is set.
struct TaskKnobs {
  std::chrono::milliseconds start_delay{0};  // between kStarting and kRunning
  std::string refuse;                        // not empty: the start is refused with this reason
  std::optional<std::chrono::milliseconds> run_for;  // time until it ends by itself; nothing: never
  int exit_code = 0;                                 // exit code of that end
  int signal = 0;                                    // not 0: it ends by this signal
  bool out_of_memory = false;
  bool ignores_term = false;  // ends only when Stop's grace is over
  bool only_first = false;    // later incarnations run on
  std::string says;           // appended to its log at each start
};

struct FakeWorldState;

// Copies share one world. Thread-safe.
class FakeWorld {
 public:
  // `clock` is advanced by Advance and outlives the world.
  explicit FakeWorld(FakeClock* clock, Capacity capacity = {8, int64_t{16} << 30, 0});

  void SetKnobs(const std::string& role, int index, TaskKnobs knobs);
  void SetCapacity(Capacity capacity);
  // Simulated hosts; by default "here" alone. A task starts on the first host that it does not
  // exclude, and finds the host's name in kNodeVariable.
  void SetHosts(std::vector<std::string> hosts);
  // Sets the address that Dial returns.
  void SetEndpoint(const std::string& job_id, std::optional<Endpoint> endpoint);
  // Kills the running task, as kill -9 or the loss of its machine does.
  void KillTask(const std::string& job_id, const std::string& role, int index);
  // Behaviour of commands in tasks, executed in Execution::Wait; by default they end with 0.
  using ExecBehavior = std::function<ExecEnd(const std::string& role, int index, const ExecSpec&)>;
  void SetExec(ExecBehavior does);
  // Advances the clock and executes all actions that are due, in order and at their times.
  void Advance(std::chrono::milliseconds by);

  int Running(const std::string& job_id) const;
  // Environment and arguments of the running incarnation; NotFound if none runs.
  Result<DesiredTask> Started(const std::string& job_id, const std::string& role, int index) const;

 private:
  friend class FakeEngine;
  std::shared_ptr<FakeWorldState> state_;
};

// Several engines may use one world, one after the other. Watches are called during Advance and
// Stop.
class FakeEngine final : public PublishingEngine, public Executes {
 public:
  explicit FakeEngine(FakeWorld world, RestartRules restart = {});
  ~FakeEngine() override;

  std::string name() const override { return "fake"; }
  Result<Capacity> GetCapacity() override;
  Status Apply(const DesiredJob& desired) override;
  Status Stop(const std::string& job_id, std::chrono::milliseconds grace) override;
  Result<std::vector<TaskStatus>> Adopt(const std::string& job_id,
                                        const std::string& job_dir) override;
  Result<Endpoint> Dial(const std::string& job_id) override;
  Result<std::string> TaskLog(const std::string& job_id, const std::string& role, int index,
                              size_t limit) override;
  Executes* executes() override { return this; }
  // In Wait the command ends by SIGKILL if the task's incarnation has ended, else by the first
  // signal that it was sent, else as FakeWorld::SetExec says.
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) override;
  // Unimplemented: fake tasks have no ports.
  Result<UniqueFd> DialTask(const std::string& job_id, const std::string& role, int index,
                            uint16_t port) override;

 private:
  const std::shared_ptr<FakeWorldState> world_;
  const RestartRules restart_;
};

}  // namespace shoal::engine
