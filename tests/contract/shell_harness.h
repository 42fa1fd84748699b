// Base of the harnesses whose engines start processes or containers of this machine: tasks are
// shell scripts.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/file.h"
#include "contract/harness.h"

namespace shoal::engine {

// Tasks work in a temporary job directory; running tasks are found among this machine's processes
// by the job's id.
class ShellHarness : public Harness {
 public:
  Engine& engine() override { return *engine_; }
  void Reopen() override;
  std::string job_dir() override { return dir_.path(); }
  DesiredTask Task(TaskBehavior kind, const std::string& role, int index) override;
  int Alive(const std::string& job_id) override;
  void KillTask(const std::string& job_id, const std::string& role, int index) override;
  // Writes coordinator.json, as a coordinator does.
  void Listen(const std::string& job_id, const Endpoint& endpoint) override;
  bool Await(const std::function<bool()>& condition) override;

 protected:
  // `first_process`: a task is the first process of a namespace, which gets no signal that it has
  // not asked for.
  ShellHarness(std::chrono::seconds patience, bool first_process);

 private:
  // Makes an engine without jobs.
  virtual Result<std::unique_ptr<Engine>> Make() = 0;

  const std::chrono::seconds patience_;
  const bool first_process_;
  TempDir dir_;
  std::unique_ptr<Engine> engine_;
};

// A harness of an engine that is made of options; lost tasks are restarted after 5 ms.
template <typename Options, auto kMakeEngine>
class OptionsHarness : public ShellHarness {
 protected:
  using ShellHarness::ShellHarness;
  // Sets further options.
  virtual void Adjust(Options* /*options*/) {}

 private:
  Result<std::unique_ptr<Engine>> Make() override {
    Options options;
    options.restart.first = std::chrono::milliseconds(5);
    Adjust(&options);
    return kMakeEngine(options);
  }
};

// Path of the program with the commands `shoal slurm` and `shoal marathon`, beside this one.
std::string HelperProgram();

// Creates a harness with an open engine.
template <typename H>
std::unique_ptr<Harness> MakeHarness() {
  auto harness = std::make_unique<H>();
  harness->Reopen();
  return harness;
}

}  // namespace shoal::engine
