#include "base/output.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace shoal {
namespace {

// A terminal that was closed answers with EIO.
bool MeansReaderGone(int fd, int error) {
  struct stat status {};
  return error == EPIPE || error == ECONNRESET ||
         (error == EIO && ::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode));
}

void WaitForRoom(int fd) {
  pollfd one{fd, POLLOUT, 0};
  (void)::poll(&one, 1, -1);  // an error shows at the next write
}

}  // namespace

bool OutputStream::Write(std::string_view text) {
  while (!text.empty() && !reader_gone_ && status_.ok()) {
    const ssize_t put = ::write(fd_, text.data(), text.size());
    if (put >= 0) {
      text.remove_prefix(static_cast<size_t>(put));
    } else if (errno == EAGAIN) {
      WaitForRoom(fd_);
    } else if (const int error = errno; error != EINTR) {
      reader_gone_ = MeansReaderGone(fd_, error);
      if (!reader_gone_) status_ = ErrnoStatus(error, "cannot write to standard output");
    }
  }
  return !reader_gone_ && status_.ok();
}

}  // namespace shoal
