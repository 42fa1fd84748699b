#include "engine/agent/desired_state_watcher.h"

#include <signal.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/log.h"
#include "engine/tasks/job_files.h"

namespace shoal::engine {

using std::chrono::milliseconds;

Result<DesiredStateWatcher> DesiredStateWatcher::Make(const std::string& job_dir,
                                                      std::initializer_list<int> signals) {
  DesiredStateWatcher watch;
  watch.job_dir_ = job_dir;
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int signal : signals) ::sigaddset(&taken, signal);
  ::sigprocmask(SIG_BLOCK, &taken, nullptr);
  watch.signals_.Reset(::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  watch.changes_.Reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!watch.signals_.valid() || !watch.changes_.valid())
    return ErrnoStatus(errno, "there are no descriptors to hear of orders");
  (void)::inotify_add_watch(watch.changes_.get(), EngineDir(job_dir).c_str(), IN_MOVED_TO);
  return watch;
}

void DesiredStateWatcher::Wait(std::vector<pollfd>* polls, std::optional<Duration> time) const {
  constexpr milliseconds kLookAgain{1000};
  auto timeout = kLookAgain;
  if (time)
    timeout = std::clamp(std::chrono::ceil<milliseconds>(*time), milliseconds(0), kLookAgain);
  polls->push_back({signals_.get(), POLLIN, 0});
  polls->push_back({changes_.get(), POLLIN, 0});
  (void)::poll(polls->data(), polls->size(), static_cast<int>(timeout.count()));
}

std::vector<int> DesiredStateWatcher::ReadSignals() const {
  std::vector<int> signals;
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal)
    signals.push_back(static_cast<int>(signal.ssi_signo));
  return signals;
}

// The inotify event decides: two changes within the clock's resolution have the same time.
std::optional<DesiredState> DesiredStateWatcher::PollDesiredState(int64_t number) {
  char events[4096];
  bool told = false;
  while (::read(changes_.get(), events, sizeof events) > 0) told = true;
  std::error_code error;
  const auto changed = std::filesystem::last_write_time(DesiredStatePath(job_dir_), error);
  if (error || (!told && changed == time_)) return std::nullopt;
  auto orders = ReadDesiredState(job_dir_);
  if (!orders.ok()) {
    LogError("{}", orders.status().message());
    return std::nullopt;
  }
  time_ = changed;
  if (orders->revision == number) return std::nullopt;
  return std::move(*orders);
}

}  // namespace shoal::engine
