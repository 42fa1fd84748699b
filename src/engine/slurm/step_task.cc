// `shoal slurm step FILE`: one task of a step, under srun (or, for the coordinator, under the agent
// itself). Starts the file's entry for its number in the step, reports start and end, and forwards
// the agent's signals. It exits when its task has ended, and kills the task if the agent is gone.
// If the allocation is held by salloc outside of it, which only the agent would release, it cancels
// the allocation then.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "base/log.h"
#include "engine/local/job_records.h"
#include "engine/process/child_process.h"
#include "engine/process/spawn.h"
#include "engine/process/task_process.h"
#include "engine/slurm/slurm_helper.h"
#include "engine/slurm/step_protocol.h"

namespace shoal::engine::slurm {
namespace {

constexpr size_t kMaxFile = 64 << 20;
constexpr int kOrphanGrace_ms = 10'000;   // between SIGTERM and SIGKILL when the agent is gone
constexpr int kHearPatience_ms = 30'000;  // to wait for the acknowledgement of an end

void Say(const StepEvent& line) { (void)WriteAll(STDOUT_FILENO, EncodeStepEvent(line)); }

// The number of this task in the step.
int OwnNumber() {
  const char* number = std::getenv("SLURM_PROCID");
  return number == nullptr ? 0 : std::atoi(number);
}

// Blocks the signals and reads them from a signalfd. Programs start with default signals.
UniqueFd ReadSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

// Supervises one task until its end has been reported and acknowledged. Single-threaded.
class StepTask {
 public:
  StepTask(int number, Spawned spawned) : number_(number), spawned_(std::move(spawned)) {}

  // False if the agent was gone at the end.
  bool Run(const UniqueFd& taken, bool answered) {
    ::fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    int timeout = -1;
    bool heard = true;  // the agent may still send signals
    for (;;) {
      pollfd polls[3] = {{spawned_.pidfd.get(), POLLIN, 0},
                         {taken.get(), POLLIN, 0},
                         {heard ? STDIN_FILENO : -1, POLLIN, 0}};
      const int ready = ::poll(polls, 3, timeout);
      if (ready == 0) Signal(SIGKILL);
      if (polls[0].revents != 0) {
        TellEnd();
        return !answered || (heard && AwaitAnswer());
      }
      if (polls[1].revents != 0) HandOn(taken.get());
      if (polls[2].revents == 0 || Listen()) continue;
      heard = false;
      Signal(SIGTERM);
      timeout = kOrphanGrace_ms;
    }
  }

 private:
  void Signal(int signal) { (void)SignalProcess(spawned_.pidfd.get(), signal); }
  void Obey(int signal) {
    if (ended_) answered_ = signal == SIGKILL;
    if (!ended_) Signal(signal);
  }

  // The agent acknowledges the end of a task by "kill".
  bool AwaitAnswer() {
    ended_ = true;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    while (!answered_) {
      if (::poll(&input, 1, kHearPatience_ms) <= 0 || !Listen()) return false;
    }
    return true;
  }

  // Slurm's SIGTERM (scancel, time limit) reaches all processes of the step; processes that it did
  // not reach get it here.
  void HandOn(int fd) {
    signalfd_siginfo info{};
    if (::read(fd, &info, sizeof info) == sizeof info && info.ssi_signo == SIGTERM) Signal(SIGTERM);
  }

  // False at the end of the agent's messages.
  bool Listen() {
    char block[4096];
    const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    heard_.append(block, static_cast<size_t>(got));
    for (size_t end = heard_.find('\n'); end != std::string::npos; end = heard_.find('\n')) {
      const auto order = DecodeStepSignal(std::string_view(heard_).substr(0, end));
      if (order && order->task == number_) Obey(order->signal);
      heard_.erase(0, end + 1);
    }
    if (heard_.size() > sizeof block) heard_.clear();
    return true;
  }

  void TellEnd() {
    int status = -1;
    (void)ReadEnd(spawned_.pidfd.get(), spawned_.pid, spawned_.start_ticks, &status);
    Say({StepEventKind::kEnded, number_, DecodeWaitStatus(status)});
  }

  const int number_;
  Spawned spawned_;
  std::string heard_;
  bool ended_ = false;
  bool answered_ = false;
};

void GiveBack(const std::string& number) {
  const auto ran = RunCommand({"scancel", "--quiet", number}, CurrentEnvironment());
  if (!ran.ok()) LogWarning("{}", ran.status().message());
}

}  // namespace

Result<int> RunStepTask(const std::string& file, const std::string& allocation) {
  const UniqueFd signals = ReadSignals();
  const int number = OwnNumber();
  const auto refuse = [&](const std::string& reason) {
    StepEvent line{StepEventKind::kRefused, number, {}};
    line.end.reason = reason;
    Say(line);
    return 0;
  };
  const auto text = ReadFile(file, kMaxFile);
  if (!text.ok()) {
    const char* const node = std::getenv("SLURMD_NODENAME");
    return refuse("the node " + std::string(node == nullptr ? "of the task" : node) +
                  " does not see the job's directory (" + text.status().message() +
                  "); put SHOAL_HOME on a file system that all nodes see");
  }
  auto step = DecodeRecords(*text);
  if (!step.ok()) return refuse(step.status().With(file).message());
  if (number < 0 || static_cast<size_t>(number) >= step->tasks.size())
    return refuse(file + " has no task " + std::to_string(number));
  const TaskRecord& record = step->tasks[static_cast<size_t>(number)];
  const std::string job_dir = std::filesystem::path(file).parent_path().parent_path();
  const TaskIdentity place{step->job_id, job_dir, record.desired.role, record.desired.index,
                           record.incarnation};
  std::vector<std::string> env = WithoutSlurm(CurrentEnvironment());
  env.emplace_back("SHOAL_GPUS_GIVEN=1");   // Slurm leases them (cli/internal/prepare.cc)
  env.emplace_back("SHOAL_SIGNALS_ALL=1");  // Slurm does (rendezvous/launcher/engine_interface.h)
  if (const char* const node = std::getenv("SLURMD_NODENAME"); node != nullptr)
    env.emplace_back(std::string(kNodeVariable) + "=" + node);
  SpawnSpec spec = MakeSpawnSpec(place, record.desired, std::move(env));
  // If Slurm tracks processes by their parents, a process that is started while its step is killed
  // would survive.
  spec.ends_with_us = true;
  auto spawned = Spawn(spec);
  if (!spawned.ok()) return refuse(spawned.status().message());
  Say({StepEventKind::kStarted, number, {}});
  if (!StepTask(number, std::move(*spawned)).Run(signals, !allocation.empty()))
    GiveBack(allocation);
  return 0;
}

}  // namespace shoal::engine::slurm
