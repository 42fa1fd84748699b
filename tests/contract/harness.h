// Interface between the engine contract suite and each engine under test: tasks with known
// behaviour, passing of time, and a view of the existing processes. One implementation per engine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace shoal::engine {

// Behaviour of a task of the suite.
enum class TaskBehavior {
  kRuns,         // runs until it is stopped; ends on SIGTERM
  kStubborn,     // ignores SIGTERM
  kSucceeds,     // ends at once with 0
  kFailsOnce,    // ends with 77 the first time, then runs
  kFailsAlways,  // prints "no corpus" and ends with 3 at once
  kCannotStart,  // its program does not exist
  kTalks,        // prints "aside" to stderr, 199 times "line" and "last words" to stdout, and runs
};

class Harness {
 public:
  virtual ~Harness() = default;
  virtual Engine& engine() = 0;
  // Replaces the engine object by a new one, as if another controller process took over.
  virtual void Reopen() = 0;
  virtual std::string job_dir() = 0;
  // Adds the settings that the engine needs of a job beside its tasks.
  virtual void Prepare(DesiredJob* /*job*/) {}
  virtual DesiredTask Task(TaskBehavior kind, const std::string& role, int index) = 0;
  // Number of running tasks of the job on the machine, started by any engine.
  virtual int Alive(const std::string& job_id) = 0;
  // Kills a task as kill -9 from outside does.
  virtual void KillTask(const std::string& job_id, const std::string& role, int index) = 0;
  // Makes the job's coordinator publish this address.
  virtual void Listen(const std::string& job_id, const Endpoint& endpoint) = 0;
  // All hosts of the engine, by the names that tasks see; empty: unknown to the suite.
  virtual std::vector<std::string> Hosts() { return {}; }
  // Whether Dial returns the address of a relay instead of the coordinator's.
  virtual bool DialsRelay() { return false; }
  // Lets time pass until the condition holds; false if it does not hold within a long time.
  virtual bool Await(const std::function<bool()>& condition) = 0;
};

struct EngineUnderTest {
  const char* name;
  std::unique_ptr<Harness> (*make)();
  const char* engine = nullptr;  // name of the engine, if the suite runs over it in several modes
};
// The engines that this program is linked with.
std::vector<EngineUnderTest> EnginesUnderTest();

std::unique_ptr<Harness> MakeLocalHarness();
std::unique_ptr<Harness> MakeFakeHarness();

}  // namespace shoal::engine
