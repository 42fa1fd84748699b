// The reference of engine.h, for tests: tasks that do what their knobs say, in time that a test
// turns itself.
//
// A FakeWorld is the machine: it outlives engines, as processes outlive a controller. Nothing
// happens but in FakeWorld::Advance and FakeEngine::Stop, on the thread that calls them.
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

// What one task does each time it is started, unless `only_first` says: the first time.
struct TaskKnobs {
  std::chrono::milliseconds start_delay{0};          // between kStarting and kRunning
  std::string refuse;                                // not empty: the start is refused, with this
  std::optional<std::chrono::milliseconds> run_for;  // then it ends by itself; nothing: runs on
  int exit_code = 0;                                 // of that end
  int signal = 0;                                    // not 0: it is killed then
  bool out_of_memory = false;
  bool ignores_term = false;  // ends only when Stop's grace is over
  bool only_first = false;    // later incarnations run on
  std::string says;           // appended to its log at each start
};

struct FakeWorldState;

// Copies share one world. Thread-safe.
class FakeWorld {
 public:
  // `clock` is turned by Advance, and outlives the world.
  explicit FakeWorld(FakeClock* clock, Capacity capacity = {8, int64_t{16} << 30, 0});

  void SetKnobs(const std::string& role, int index, TaskKnobs knobs);
  void SetCapacity(Capacity capacity);
  // The machine's hosts, of which a task is started on the first that is not excluded for it; it
  // finds its name in kNodeVariable. At first "here" alone.
  void SetHosts(std::vector<std::string> hosts);
  // What the coordinator of the job would write; Dial gives it.
  void SetEndpoint(const std::string& job_id, std::optional<Endpoint> endpoint);
  // Kills what runs of this task, as kill -9 or the loss of its machine does.
  void KillTask(const std::string& job_id, const std::string& role, int index);
  // What commands in tasks do, all in Execution::Wait, on its thread; else they end with 0.
  using ExecBehavior = std::function<ExecEnd(const std::string& role, int index, const ExecSpec&)>;
  void SetExec(ExecBehavior does);
  // Turns the clock and does everything that is due in between, at its time and in order.
  void Advance(std::chrono::milliseconds by);

  int Running(const std::string& job_id) const;
  // Environment and arguments of the running incarnation; NotFound if none runs.
  Result<DesiredTask> Started(const std::string& job_id, const std::string& role, int index) const;

 private:
  friend class FakeEngine;
  std::shared_ptr<FakeWorldState> state_;
};

// Several may be on one world, one after the other. Watches deliver during Advance and Stop.
class FakeEngine final : public PublishingEngine {
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
  // Ends by SIGKILL if the task's incarnation does not run any more when it is waited for, by the
  // first signal that it was sent before that, else as FakeWorld::SetExec says.
  Result<std::unique_ptr<Execution>> Exec(const std::string& job_id, const std::string& role,
                                          int index, const ExecSpec& spec) override;

 private:
  const std::shared_ptr<FakeWorldState> world_;
  const RestartRules restart_;
};

}  // namespace shoal::engine
