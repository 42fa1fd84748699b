#include "engine/slurm/immediate_allocation.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/file.h"
#include "engine/process/spawn.h"
#include "engine/slurm/slurm_helper.h"
#include "engine/tasks/job_files.h"

namespace shoal::engine::slurm {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kEndPatience{2'000};

bool Ended(const Child& child, milliseconds time) {
  pollfd ended{child.pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, static_cast<int>(time.count())) > 0;
}

void End(const Child& child) {
  (void)SignalProcess(child.pidfd.get(), SIGTERM);
  if (!Ended(child, kEndPatience)) (void)SignalProcess(child.pidfd.get(), SIGKILL);
  (void)ReapChild(child);
}

std::string ReadLogTail(const std::string& job_dir) {
  constexpr size_t kTail = 512;
  std::string text = ReadTail(AgentLogPath(job_dir), kTail).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// The number that the agent prints when it has its allocation; 0 if it ends or prints none in time.
int64_t HearNumber(int fd, milliseconds patience) {
  const auto deadline = SteadyClock::now() + patience;
  std::string text;
  while (text.find('\n') == std::string::npos) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - SteadyClock::now());
    pollfd readable{fd, POLLIN, 0};
    if (left.count() <= 0) return 0;
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    char block[64];
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got <= 0 || text.size() > sizeof block) return 0;
    text.append(block, static_cast<size_t>(got));
  }
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Result<std::array<UniqueFd, 2>> MakeSocketPair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoStatus(errno, "cannot make a pair of sockets");
  return std::array{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

bool CanAllocateImmediately(const std::vector<std::string>& environment) {
  return std::none_of(environment.begin(), environment.end(),
                      [](const std::string& entry) { return entry.starts_with("SBATCH_"); });
}

Result<ImmediateAllocation> AllocateImmediately(const ImmediateRequest& request,
                                                const std::vector<std::string>& environment,
                                                const std::string& job_dir, milliseconds patience) {
  TRY_ASSIGN(const UniqueFd log,
             OpenFile(AgentLogPath(job_dir), O_WRONLY | O_CREAT | O_APPEND, 0600));
  TRY_ASSIGN(auto between, MakeSocketPair());
  TRY_ASSIGN(auto told, MakeSocketPair());
  ImmediateAllocation at_once;
  // Slurm reports salloc's working directory as the job's, whatever --chdir says (22.05).
  TRY_ASSIGN(at_once.salloc,
             StartChildWithFds(request.salloc, environment,
                               {between[1].get(), between[1].get(), log.get()}, job_dir));
  auto agent = StartChildWithFds(request.agent, environment,
                                 {between[0].get(), told[1].get(), log.get()}, job_dir);
  between = {};
  told[1].Reset();
  if (agent.ok()) {
    at_once.agent = std::move(*agent);
    at_once.number = HearNumber(told[0].get(), patience);
    if (at_once.number != 0) return at_once;
  }
  End(at_once.salloc);  // releases the allocation, which ends the agent
  if (agent.ok()) End(at_once.agent);
  return Unavailable("there is no allocation at once: " +
                     (agent.ok() ? ReadLogTail(job_dir) : agent.status().message()));
}

}  // namespace shoal::engine::slurm
