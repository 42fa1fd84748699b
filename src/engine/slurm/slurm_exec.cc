#include "engine/slurm/slurm_exec.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "engine/process/child_process.h"
#include "engine/process/spawn.h"
#include "engine/slurm/slurm_helper.h"

namespace shoal::engine::slurm {
namespace {

constexpr int kDialPatience_ms = 30'000;
constexpr size_t kLongestRefusal = 4096;

std::vector<std::string> Words(const ExecTarget& place, const std::string& what) {
  std::vector<std::string> words = {"srun",
                                    "--overlap",
                                    "--jobid=" + std::to_string(place.number),
                                    "--nodelist=" + place.node,
                                    "--nodes=1",
                                    "--ntasks=1",
                                    "--mem=0",
                                    "--gres=none",
                                    "--quiet",
                                    "--unbuffered"};
  if (!place.group.empty()) words.push_back(place.group);
  words.insert(words.end(), {place.program, "slurm", what, place.job_id, place.role,
                             std::to_string(place.index)});
  return words;
}

// A command in a task: an srun that runs `shoal slurm exec` on the task's node.
class StepExecution final : public Execution {
 public:
  explicit StepExecution(Child child) : child_(std::move(child)) {}
  ~StepExecution() override {
    if (waited_) return;
    (void)SignalProcess(child_.pidfd.get(), SIGKILL);
    (void)ReapChild(child_);
  }
  void Signal(int signal) override { (void)SignalProcess(child_.pidfd.get(), signal); }
  // srun tracks the terminal's size itself.
  void Resize(uint16_t /*rows*/, uint16_t /*columns*/) override { Signal(SIGWINCH); }
  Result<ExecEnd> Wait() override {
    pollfd ended{child_.pidfd.get(), POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    const int status = ReapChild(child_);
    waited_ = true;
    ExecEnd end;
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
    return end;
  }

 private:
  const Child child_;
  bool waited_ = false;
};

// Reads the first output of `pipe`: connected, or the reason of a refusal.
Status HearOpen(int fd) {
  std::string said;
  for (;;) {
    pollfd readable{fd, POLLIN, 0};
    const int ready = ::poll(&readable, 1, kDialPatience_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Unavailable("srun has not reached the task's node within 30 s");
    char one = 0;
    const ssize_t got = ::read(fd, &one, 1);
    if (got < 0 && errno == EINTR) continue;
    if (said.empty() && got == 1 && one == kPipeOpen[0]) return Status::Ok();
    if (got <= 0 || said.size() > kLongestRefusal) break;
    said += one;
  }
  if (said.starts_with(kPipeRefused)) return Unavailable(said.substr(kPipeRefused.size()));
  return Unavailable("srun cannot reach the task" + (said.empty() ? "" : ": " + said));
}

}  // namespace

Result<std::unique_ptr<Execution>> ExecByStep(const ExecTarget& place, const ExecSpec& spec) {
  if (spec.argv.empty() || spec.argv[0].empty())
    return InvalidArgument("got no command to run in the task");
  std::vector<std::string> words = Words(place, "exec");
  if (spec.terminal) words.insert(words.begin() + 1, "--pty");
  for (const std::string& entry : spec.env) words.insert(words.end(), {"--env", entry});
  words.push_back("--");
  words.insert(words.end(), spec.argv.begin(), spec.argv.end());
  TRY_ASSIGN(Child child,
             StartChildWithFds(words, place.env, {spec.fds[0], spec.fds[1], spec.fds[2]}));
  return std::unique_ptr<Execution>(std::make_unique<StepExecution>(std::move(child)));
}

Result<UniqueFd> DialByStep(const ExecTarget& place, uint16_t port) {
  std::vector<std::string> words = Words(place, "pipe");
  words.push_back(std::to_string(port));
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoStatus(errno, "cannot make a pair of sockets");
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  TRY_ASSIGN(Child child,
             StartChildWithFds(words, place.env, {theirs.get(), theirs.get(), STDERR_FILENO}));
  theirs.Reset();
  // Ends with the stream, whose other end the caller closes.
  std::thread([child = std::move(child)] { (void)ReapChild(child); }).detach();
  TRY(HearOpen(ours.get()));
  return ours;
}

}  // namespace shoal::engine::slurm
