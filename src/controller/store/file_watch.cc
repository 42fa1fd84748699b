#include "controller/store/file_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace shoal::controller {
namespace {

class ThreadedWatch final : public FileWatch {
 public:
  ThreadedWatch(UniqueFd changes, UniqueFd stop, std::string name, std::function<void()> on_change)
      : changes_(std::move(changes)), stop_(std::move(stop)), name_(std::move(name)) {
    thread_ = std::thread([this, call = std::move(on_change)] { Loop(call); });
  }
  ~ThreadedWatch() override {
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void Loop(const std::function<void()>& on_change) {
    while (true) {
      pollfd fds[2] = {{changes_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
      if (fds[1].revents != 0) return;
      if (fds[0].revents != 0 && ConsumeChanges(changes_.get(), name_)) on_change();
    }
  }

  UniqueFd changes_;
  UniqueFd stop_;
  std::string name_;
  std::thread thread_;
};

}  // namespace

Result<UniqueFd> OpenDirectoryWatch(const std::filesystem::path& directory) {
  UniqueFd fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, "inotify");
  constexpr uint32_t kEvents = IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_DELETE;
  if (inotify_add_watch(fd.get(), directory.c_str(), kEvents) < 0)
    return ErrnoStatus(errno, directory.string());
  return fd;
}

bool ConsumeChanges(int fd, const std::string& name) {
  alignas(inotify_event) char buffer[8192];
  bool changed = false;
  while (true) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got <= 0) return changed;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      // After a queue overflow any file may have changed.
      const bool overflow = (event->mask & IN_Q_OVERFLOW) != 0;
      if (overflow || name.empty() || (event->len > 0 && name == event->name)) changed = true;
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
}

Result<std::unique_ptr<FileWatch>> FileWatch::Start(const std::filesystem::path& directory,
                                                    std::string name,
                                                    std::function<void()> on_change) {
  TRY_ASSIGN(UniqueFd changes, OpenDirectoryWatch(directory));
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return ErrnoStatus(errno, "eventfd");
  return std::unique_ptr<FileWatch>(std::make_unique<ThreadedWatch>(
      std::move(changes), std::move(stop), std::move(name), std::move(on_change)));
}

}  // namespace shoal::controller
