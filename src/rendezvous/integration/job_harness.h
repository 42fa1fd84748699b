// A job directory, a loop, and real coordinators, launchers and controllers on it, for this room's
// tests.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "job/spec/job.h"
#include "net/event_loop.h"
#include "rendezvous/client/coordinator_client.h"
#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/launcher/launcher.h"

namespace shoal::rendezvous {

// One role of `replicas` tasks that run `sh -c script`.
job::Role ShellRole(const std::string& name, int replicas, const std::string& script);
// A generic job of these roles; the first decides over success.
job::Job JobOf(std::vector<job::Role> roles);

class JobHarness {
 public:
  explicit JobHarness(const job::Job& job);
  ~JobHarness();

  const std::string& dir() const { return dir_; }
  net::Loop& loop() { return loop_; }

  // In this process.
  void StartCoordinator(CoordinatorOptions options = {});
  void CrashCoordinator() { coordinator_.reset(); }
  void StartLauncher(const std::string& role, int index, int incarnation = 0);
  // Launchers started from now on report this host.
  void SetNode(const std::string& node) { node_ = node; }
  void StartAllLaunchers();
  // A launcher with a directory of its own, as on another host; gives that directory.
  std::string StartRemoteLauncher(const std::string& role, int index);
  void StartController(CoordinatorClientOptions options = {});
  // As processes of their own; killed when the harness goes.
  pid_t SpawnCoordinator();
  pid_t SpawnLauncher(const std::string& role, int index, int incarnation = 0);
  void KillProcess(pid_t pid, int signal);
  // How a spawned process ended; nothing while it runs.
  std::optional<int> ExitCodeOf(pid_t pid);

  bool Until(const std::function<bool()>& done, Duration limit = std::chrono::seconds(30));
  // Runs until the verdict; acknowledges it, and waits for the coordinator's own end.
  Verdict RunToVerdict();
  // When an event of this task first arrived, since the harness was created.
  std::optional<Duration> When(const std::string& role, int index, job::TaskState state) const;
  int Count(const std::string& role, int index, job::TaskState state) const;
  // Log lines received of an attempt.
  const std::string& LogOf(const std::string& role, int index, int attempt = 0);
  // Contents of the segment's file.
  std::string Segment(const std::string& role, int index, int attempt = 0) const;
  std::string ReadOr(const std::string& path, const std::string& other) const;

  job::Job job;
  std::unique_ptr<Coordinator> coordinator_;
  std::optional<Status> coordinator_end;
  std::vector<std::unique_ptr<Launcher>> launchers;
  std::vector<std::optional<int>> launcher_exits;
  std::unique_ptr<CoordinatorClient> client;
  std::optional<Status> client_closed;
  std::vector<JobEvent> events;
  std::vector<Duration> event_times;
  std::map<LogKey, std::string> logs;
  std::optional<Verdict> verdict;
  bool logs_contiguous = true;

 private:
  void StartLauncherIn(const std::string& dir, const std::string& role, int index, int incarnation);

  TempDir temp_;
  std::string dir_;
  std::string node_;
  net::Loop loop_;
  TimePoint start_;
  std::map<pid_t, std::optional<int>> children_;
};

}  // namespace shoal::rendezvous
