#include "engine/slurm/at_once.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "engine/child.h"
#include "engine/job_files.h"
#include "engine/slurm/inside.h"
#include "engine/spawn.h"

namespace shoal::engine::slurm {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kLook_ms = 1;
constexpr int kEndPatience_ms = 2'000;

bool Ended(const Child& child, int timeout_ms) {
  pollfd ended{child.pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, timeout_ms) > 0;
}

std::string LastWords(const std::string& job_dir) {
  constexpr size_t kTail = 512;
  std::string text = ReadTail(AgentLogPath(job_dir), kTail).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

bool MayAskAtOnce(const std::vector<std::string>& environment) {
  return std::none_of(environment.begin(), environment.end(),
                      [](const std::string& entry) { return entry.starts_with("SBATCH_"); });
}

Result<int64_t> AllocateAtOnce(const std::vector<std::string>& words,
                               const std::vector<std::string>& environment,
                               const std::string& job_dir, std::chrono::milliseconds patience) {
  TRY_ASSIGN(const UniqueFd nothing, OpenFile("/dev/null", O_RDWR));
  TRY_ASSIGN(const UniqueFd log,
             OpenFile(AgentLogPath(job_dir), O_WRONLY | O_CREAT | O_APPEND, 0600));
  // Where it starts is what Slurm says of the job's directory, whatever --chdir says (22.05).
  TRY_ASSIGN(Child child,
             StartWithFds(words, environment, {nothing.get(), nothing.get(), log.get()}, job_dir));
  const auto deadline = SteadyClock::now() + patience;
  bool ended = false;
  while (SteadyClock::now() < deadline) {
    ended = Ended(child, kLook_ms);
    const int64_t number = ReadAllocation(job_dir).number;
    if (number != 0) {  // and if it has ended, so has the job
      std::thread([child = std::move(child)] { (void)Reap(child); }).detach();
      return number;
    }
    if (ended) break;
  }
  if (!ended) {
    (void)SignalProcess(child.pidfd.get(), SIGTERM);  // it gives back what it has got
    if (!Ended(child, kEndPatience_ms)) (void)SignalProcess(child.pidfd.get(), SIGKILL);
  }
  (void)Reap(child);
  return Unavailable("there is no allocation at once: " + LastWords(job_dir));
}

}  // namespace shoal::engine::slurm
