// What the engine contract suite needs of each engine: tasks of a few kinds, time that passes, and
// a view of what exists. One implementation an engine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// What a task of the suite does.
enum class TaskBehavior {
  kRuns,         // until it is stopped; obeys SIGTERM
  kStubborn,     // ignores SIGTERM
  kSucceeds,     // ends at once with 0
  kFailsOnce,    // ends with 77 the first time, then runs
  kFailsAlways,  // says "no corpus" and ends with 3 at once
  kCannotStart,  // there is no such program
  kTalks,        // says 200 lines, the last being "last words", and runs
};

class Harness {
 public:
  virtual ~Harness() = default;
  virtual Engine& engine() = 0;
  // Another process of ours takes over: the engine object is gone, a new one is there.
  virtual void Reopen() = 0;
  virtual std::string job_dir() = 0;
  // What the engine needs of a job beside its tasks.
  virtual void Prepare(DesiredJob* /*job*/) {}
  virtual DesiredTask Task(TaskBehavior kind, const std::string& role, int index) = 0;
  // What exists of the job on the machine, whoever started it.
  virtual int Alive(const std::string& job_id) = 0;
  // As kill -9 from outside.
  virtual void KillTask(const std::string& job_id, const std::string& role, int index) = 0;
  // Makes the coordinator of the job say where it listens.
  virtual void Listen(const std::string& job_id, const Endpoint& endpoint) = 0;
  // All hosts that the engine has, as tasks are told of them; empty: the suite cannot know.
  virtual std::vector<std::string> Hosts() { return {}; }
  // Whether Dial gives a door of the engine's own, behind which the coordinator is.
  virtual bool DialsRelay() { return false; }
  // Lets time pass until the condition holds; false if it does not within a long time.
  virtual bool Await(const std::function<bool()>& condition) = 0;
};

struct EngineUnderTest {
  const char* name;
  std::unique_ptr<Harness> (*make)();
  const char* engine = nullptr;  // its own name, where the suite runs over it in several ways
};
// Those that this program is linked with.
std::vector<EngineUnderTest> EnginesUnderTest();

std::unique_ptr<Harness> MakeLocalHarness();
std::unique_ptr<Harness> MakeFakeHarness();

}  // namespace shoal::engine
