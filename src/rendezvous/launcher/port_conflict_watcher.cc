#include "rendezvous/launcher/port_conflict_watcher.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/network/port_lease.h"

namespace shoal::rendezvous {
namespace {

std::string Describe(const host::Listener& thief) {
  const std::string who = thief.pid == 0
                              ? "a process of the user " + std::to_string(thief.uid)
                              : "process " + std::to_string(thief.pid) + " (" + thief.program + ")";
  return who + ", which is not of this task, listens at " + thief.address;
}

// Reads the kernel's table of listening sockets, often at first and then every `times.every`. A
// foreign listener is reported only when a second look confirms it, because a socket may have been
// passed on within the task's own tree.
class SocketTableWatcher final : public PortConflictWatcher {
 public:
  SocketTableWatcher(net::Loop* loop, std::vector<uint16_t> ports,
                     std::function<std::vector<pid_t>()> tree,
                     std::function<void(uint16_t, const std::string&)> on_conflict,
                     PortConflictWatcherTimes times)
      : loop_(loop),
        ports_(std::move(ports)),
        tree_(std::move(tree)),
        on_conflict_(std::move(on_conflict)),
        times_(times),
        wait_(times.first),
        known_(ports_.size()),
        suspects_(ports_.size()) {}

  ~SocketTableWatcher() override { loop_->Cancel(timer_); }

  void Later(Duration wait) {
    timer_ = loop_->After(wait, [this] { Look(); });
  }

 private:
  void Look() {
    const auto sockets = host::ListeningSockets(ports_);
    std::vector<pid_t> tree;
    bool doubtful = false;
    for (size_t i = 0; i < ports_.size(); ++i) {
      // The same sockets as when they were found to belong to the tree.
      if (sockets[i].empty() || sockets[i] == known_[i]) continue;
      if (tree.empty()) tree = tree_();
      host::Listener thief;
      if (host::CheckPortOwner(ports_[i], tree, &thief) != host::PortOwner::kOther) {
        known_[i] = sockets[i];
        continue;
      }
      doubtful = true;
      if (suspects_[i] != sockets[i]) {
        suspects_[i] = sockets[i];  // it may have been passed on or closed meanwhile
        continue;
      }
      const auto on_conflict = on_conflict_;
      on_conflict(ports_[i], Describe(thief));
      return;
    }
    Later(doubtful ? times_.again : wait_);
    wait_ = std::min(wait_ * 2, times_.every);
  }

  net::Loop* const loop_;
  const std::vector<uint16_t> ports_;
  const std::function<std::vector<pid_t>()> tree_;
  const std::function<void(uint16_t, const std::string&)> on_conflict_;
  const PortConflictWatcherTimes times_;
  Duration wait_;
  std::vector<std::vector<uint64_t>> known_;     // inodes of the tree's own listeners, by port
  std::vector<std::vector<uint64_t>> suspects_;  // foreign listeners of the last look
  net::Loop::Id timer_ = 0;
};

}  // namespace

std::unique_ptr<PortConflictWatcher> PortConflictWatcher::Start(
    net::Loop* loop, std::vector<uint16_t> ports, std::function<std::vector<pid_t>()> tree,
    std::function<void(uint16_t port, const std::string& who)> on_conflict,
    PortConflictWatcherTimes times) {
  auto watch = std::make_unique<SocketTableWatcher>(loop, std::move(ports), std::move(tree),
                                                    std::move(on_conflict), times);
  watch->Later(times.first);
  return watch;
}

std::string DescribePortConflict(const std::vector<uint16_t>& ports) {
  const auto sockets = host::ListeningSockets(ports);
  for (size_t i = 0; i < ports.size(); ++i) {
    host::Listener thief;
    const std::string taken = "its port " + std::to_string(ports[i]) + " is taken: ";
    if (sockets[i].empty()) {
      if (host::IsBoundWithoutListener(ports[i]))
        return taken + "a process holds it without listening";
    } else if (host::CheckPortOwner(ports[i], {}, &thief) == host::PortOwner::kOther) {
      return taken + Describe(thief);
    }
  }
  return {};
}

std::string DescribeReportedPortConflict(const std::vector<uint16_t>& ports,
                                         std::string_view last_line) {
  if (ports.empty() || last_line.find(std::strerror(EADDRINUSE)) == std::string_view::npos)
    return {};
  std::string names;
  for (const uint16_t port : ports) names += (names.empty() ? "" : ", ") + std::to_string(port);
  return "its port " + names +
         " was taken: the program said so, and the process that had it is gone";
}

}  // namespace shoal::rendezvous
