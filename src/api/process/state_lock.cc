#include "api/process/state_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/private_files.h"

namespace shoal::api {

Result<UniqueFd> LockState(const std::filesystem::path& state, bool shared) {
  const std::filesystem::path file = state / "server.lock";
  TRY_ASSIGN(UniqueFd fd, OpenPrivateFile(file, O_RDWR | O_CREAT));
  if (::flock(fd.get(), (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    const int error = errno;
    if (error != EWOULDBLOCK) return ErrnoStatus(error, file.string());
    std::string holder = ReadFile(file, 64).value_or("");
    while (!holder.empty() && holder.back() == '\n') holder.pop_back();
    return FailedPrecondition("another shoal server" +
                              (holder.empty() ? "" : ", process " + holder + ",") +
                              " uses the state directory " + state.string() +
                              "; stop it, or choose another directory with --state");
  }
  if (::ftruncate(fd.get(), 0) != 0) return ErrnoStatus(errno, file.string());
  TRY(WriteAllAt(fd.get(), std::to_string(::getpid()) + "\n", 0));
  return fd;
}

}  // namespace shoal::api
