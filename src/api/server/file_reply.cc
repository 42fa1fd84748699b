#include "api/server/file_reply.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "rendezvous/logs/log_segment.h"

namespace shoal::api {
namespace {

constexpr size_t kPiece = size_t{256} << 10;
constexpr int kOk = 200;

// A file on its way. Held by the callbacks of its stream.
struct Sending {
  std::shared_ptr<net::HttpReplyStream> stream;
  UniqueFd file;
  int64_t at = 0;
  int64_t end = 0;
};

// One piece; the next one when it has gone.
void SendPiece(const std::shared_ptr<Sending>& sending) {
  const auto left = static_cast<size_t>(sending->end - sending->at);
  if (left == 0) return sending->stream->Finish();
  const auto bytes = rendezvous::ReadAt(sending->file.get(), sending->at, std::min(left, kPiece));
  // A file that has shrunk ends the connection before its announced end.
  if (!bytes.ok() || bytes->empty()) return sending->stream->OnDrained({});
  sending->at += static_cast<int64_t>(bytes->size());
  sending->stream->Write(*bytes);
}

}  // namespace

Result<UniqueFd> OpenBelow(const std::filesystem::path& root, const std::string& path) {
  const Status missing = NotFound("there is no output " + path);
  if (path.find('\0') != std::string::npos) return missing;
  Result<UniqueFd> directory = OpenFile(root, O_RDONLY | O_DIRECTORY);
  if (!directory.ok()) return missing;
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd(
      static_cast<int>(::syscall(SYS_openat2, directory->get(), path.c_str(), &how, sizeof how)));
  struct stat info {};
  if (!fd.valid() && (errno == ELOOP || errno == EXDEV))
    return NotFound("the output " + path + " is a link, or leaves its directory; it is not sent");
  if (!fd.valid() && errno == EACCES)
    return PermissionDenied("the output " + path + " cannot be read by the server");
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return missing;
  return fd;
}

void SendFile(const Backend& backend, const CallPtr& call, UniqueFd file, int64_t offset,
              int64_t limit) {
  auto sending = std::make_shared<Sending>();
  struct stat info {};
  if (::fstat(file.get(), &info) != 0)
    return call->answer(Problem(ErrnoStatus(errno, "the output")));
  if (offset > info.st_size)
    return call->answer(
        Problem(OutOfRange("got the offset " + std::to_string(offset) + ", and the file has " +
                           std::to_string(info.st_size) + " bytes")));
  sending->file = std::move(file);
  sending->at = offset;
  sending->end = offset + std::min<int64_t>(info.st_size - offset, limit);
  sending->stream =
      call->exchange->Stream(kOk, {{"Content-Type", "application/octet-stream"},
                                   {"Content-Disposition", "attachment"},
                                   {"X-Content-Type-Options", "nosniff"},
                                   {"Content-Length", std::to_string(sending->end - offset)}});
  if (sending->stream == nullptr) return;
  sending->stream->OnDrained([&backend, sending] {
    if (!backend.defer([sending] { SendPiece(sending); })) SendPiece(sending);
  });
  SendPiece(sending);
}

}  // namespace shoal::api
