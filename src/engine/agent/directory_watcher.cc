#include "engine/agent/directory_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>

namespace shoal::engine {

Result<DirectoryWatcher> DirectoryWatcher::Make(const std::string& owner) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!wake.valid() || !changes.valid())
    return ErrnoStatus(errno, "cannot start " + owner +
                                  ": no descriptors, or more watchers than the sysctl "
                                  "fs.inotify.max_user_instances allows");
  return DirectoryWatcher(std::move(wake), std::move(changes));
}

void DirectoryWatcher::Add(const std::string& directory) const {
  (void)::inotify_add_watch(changes_.get(), directory.c_str(), IN_MODIFY | IN_CREATE);
}

void DirectoryWatcher::Wake() const {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void DirectoryWatcher::Wait(std::optional<std::chrono::milliseconds> timeout) const {
  pollfd polls[2] = {{wake_.get(), POLLIN, 0}, {changes_.get(), POLLIN, 0}};
  (void)::poll(polls, 2, timeout ? static_cast<int>(timeout->count()) : -1);
  uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof count);
  char block[4096];
  while (::read(changes_.get(), block, sizeof block) > 0) {
  }
}

}  // namespace shoal::engine
