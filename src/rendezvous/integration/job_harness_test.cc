#include "rendezvous/integration/job_harness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/id.h"
#include "job/spec/json.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::rendezvous {

job::Role ShellRole(const std::string& name, int replicas, const std::string& script) {
  job::Role role;
  role.name = name;
  role.replicas = replicas;
  role.command = {"/bin/sh", "-c", script};
  return role;
}

job::Job JobOf(std::vector<job::Role> roles) {
  job::Job job;
  job.name = "bench";
  job.roles = std::move(roles);
  job.success.roles = {job.roles.front().name};
  return job;
}

JobHarness::JobHarness(const job::Job& of)
    : job(of), temp_(TempDir::Create("shoal-rendezvous").value()), dir_(temp_.path().string()) {
  start_ = RealClock::Get()->Now();
  EXPECT_TRUE(WriteFileAtomically(dir_ + "/job.json", job::ToJsonText(job), 0600, false).ok());
  EXPECT_TRUE(WriteFileAtomically(dir_ + "/token", NewToken(), 0600, false).ok());
  // An id of its own: control groups are named after it, and tests run concurrently.
  EXPECT_TRUE(WriteFileAtomically(dir_ + "/id", NewJobId("bench") + "\n", 0600, false).ok());
}

JobHarness::~JobHarness() {
  client.reset();
  launchers.clear();
  coordinator_.reset();
  for (const auto& [pid, exit] : children_) {
    if (exit) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

void JobHarness::StartCoordinator(CoordinatorOptions options) {
  options.job_dir = dir_;
  auto started = Coordinator::Start(&loop_, std::move(options),
                                    [this](const Status& status) { coordinator_end = status; });
  ASSERT_TRUE(started.ok()) << started.status().ToString();
  coordinator_ = std::move(started).value();
}

void JobHarness::StartLauncher(const std::string& role, int index, int incarnation) {
  StartLauncherIn(dir_, role, index, incarnation);
}

std::string JobHarness::StartRemoteLauncher(const std::string& role, int index) {
  namespace fs = std::filesystem;
  const fs::path dir = temp_.path() / ("host-" + role + "-" + std::to_string(index));
  fs::create_directories(dir);
  for (const char* name : {"token", "coordinator.json"}) {
    // A symbolic link: a coordinator that starts again may be somewhere else.
    fs::create_symlink(fs::path(dir_) / name, dir / name);
  }
  StartLauncherIn(dir, role, index, 0);
  return dir;
}

void JobHarness::StartLauncherIn(const std::string& dir, const std::string& role, int index,
                                 int incarnation) {
  LauncherOptions options;
  options.job_dir = dir;
  options.role = role;
  options.index = index;
  options.incarnation = incarnation;
  options.node = node_;
  options.coordinator_timeout = job.limits.coordinator_timeout;
  static const host::Isolation isolation = host::ProbeIsolation();
  options.isolation = isolation;
  const size_t i = launchers.size();
  launcher_exits.emplace_back();
  auto launcher =
      Launcher::Start(&loop_, options, [this, i](int code) { launcher_exits[i] = code; });
  ASSERT_TRUE(launcher.ok()) << launcher.status().ToString();
  launchers.push_back(std::move(launcher).value());
}

void JobHarness::StartAllLaunchers() {
  for (const job::Role& role : job.roles) {
    for (int i = 0; i < role.replicas; ++i) StartLauncher(role.name, i);
  }
}

void JobHarness::StartController(CoordinatorClientOptions options) {
  options.job_dir = dir_;
  CoordinatorClientCallbacks calls;
  calls.on_event = [this](const JobEvent& event) {
    events.push_back(event);
    event_times.push_back(RealClock::Get()->Now() - start_);
    if (event.type == JobEvent::Type::kVerdict) verdict = event.verdict;
  };
  calls.on_log = [this](const LogKey& key, int64_t offset, std::string_view bytes) {
    logs_contiguous = logs_contiguous && offset == static_cast<int64_t>(logs[key].size());
    logs[key] += bytes;
  };
  calls.on_closed = [this](const Status& status) { client_closed = status; };
  client = CoordinatorClient::Connect(&loop_, std::move(options), std::move(calls));
}

namespace {

pid_t Spawn(std::vector<std::string> args) {
  args.insert(args.begin(), RENDEZVOUS_PROCESS);
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  EXPECT_EQ(::posix_spawn(&pid, RENDEZVOUS_PROCESS, &actions, nullptr, argv.data(), environ), 0);
  ::posix_spawn_file_actions_destroy(&actions);
  return pid;
}

}  // namespace

pid_t JobHarness::SpawnCoordinator() {
  const pid_t pid = Spawn({"coordinator", dir_});
  children_[pid] = std::nullopt;
  return pid;
}

pid_t JobHarness::SpawnLauncher(const std::string& role, int index, int incarnation) {
  const pid_t pid = Spawn({"task", dir_, role, std::to_string(index), std::to_string(incarnation)});
  children_[pid] = std::nullopt;
  return pid;
}

void JobHarness::KillProcess(pid_t pid, int signal) {
  ::kill(pid, signal);
  EXPECT_TRUE(Until([&] { return ExitCodeOf(pid).has_value(); }));
}

std::optional<int> JobHarness::ExitCodeOf(pid_t pid) {
  auto& exit = children_[pid];
  int status = 0;
  if (!exit && ::waitpid(pid, &status, WNOHANG) == pid) {
    exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit;
}

bool JobHarness::Until(const std::function<bool()>& done, Duration limit) {
  // Wakes the loop for events that it does not see (files, child processes).
  net::Loop::Id timer = 0;
  std::function<void()> wake = [&] { timer = loop_.After(std::chrono::milliseconds(2), wake); };
  wake();
  const bool reached = loop_.RunUntil(done, limit);
  loop_.Cancel(timer);
  return reached;
}

Verdict JobHarness::RunToVerdict() {
  if (!client) StartController();
  EXPECT_TRUE(Until([&] { return verdict.has_value(); }));
  if (!verdict) return {};
  client->AckVerdict();
  EXPECT_TRUE(Until([&] { return client_closed.has_value(); }));
  EXPECT_TRUE(client_closed && client_closed->ok());
  return *verdict;
}

std::optional<Duration> JobHarness::When(const std::string& role, int index,
                                         job::TaskState state) const {
  for (size_t i = 0; i < events.size(); ++i) {
    const JobEvent& event = events[i];
    if (event.type == JobEvent::Type::kTask && event.role == role && event.index == index &&
        event.task_state == state) {
      return event_times[i];
    }
  }
  return std::nullopt;
}

int JobHarness::Count(const std::string& role, int index, job::TaskState state) const {
  int count = 0;
  for (const JobEvent& event : events) {
    count += event.type == JobEvent::Type::kTask && event.role == role && event.index == index &&
             event.task_state == state;
  }
  return count;
}

const std::string& JobHarness::LogOf(const std::string& role, int index, int attempt) {
  return logs[LogKey{role, index, attempt}];
}

std::string JobHarness::Segment(const std::string& role, int index, int attempt) const {
  return ReadLog(dir_ + "/logs", {role, index, attempt}, 0, size_t{1} << 30).value_or("");
}

std::string JobHarness::ReadOr(const std::string& path, const std::string& other) const {
  return ReadFile(path, size_t{1} << 24).value_or(other);
}

}  // namespace shoal::rendezvous
