#include "base/output_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // as the kernel
constexpr unsigned kPermissions = 07777;
constexpr const char* kAccessList = "system.posix_acl_access";
constexpr const char* kDefaultAccessList = "system.posix_acl_default";

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

// The number of this process's descriptor that `path` stands for (/dev/fd/3), or -1. Opening such a
// path anew would not write at the descriptor's own place.
int OwnDescriptor(const fs::path& path) {
  std::error_code error;
  const fs::path directory = fs::canonical(path.parent_path(), error);
  if (error || directory != "/proc/" + std::to_string(::getpid()) + "/fd") return -1;
  const std::string name = path.filename().string();
  int fd = -1;
  const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), fd);
  return wrong == std::errc() && end == name.data() + name.size() ? fd : -1;
}

// Access lists are there on some file systems only.
Status CopyAccessList(int from, int to, const char* name) {
  char list[4096];
  const ssize_t size = ::fgetxattr(from, name, list, sizeof list);
  const bool none = size < 0 && (errno == ENODATA || errno == EOPNOTSUPP);
  if (size < 0 && !none) return ErrnoStatus(errno, "cannot read the access list");
  const int set =
      none ? ::fremovexattr(to, name) : ::fsetxattr(to, name, list, static_cast<size_t>(size), 0);
  if (set != 0 && !(none && (errno == ENODATA || errno == EOPNOTSUPP)))
    return ErrnoStatus(errno, "cannot keep the access list");
  return Status::Ok();
}

Status WriteNewFile(const fs::path& path, std::string_view bytes) {
  TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path, 0666));
  TRY(file.Write(bytes));
  return file.Commit();
}

// False where it must be overwritten in place instead. A full disk is an error: the old file stays.
Result<bool> ReplaceFile(const fs::path& path, int old, std::string_view bytes) {
  Result<AtomicFile> file = AtomicFile::Create(path, 0600);
  Status done = file.status();
  if (file.ok()) done = CopyAttributes(old, file->fd());
  if (!done.ok() && done.code() != Code::kResourceExhausted) return false;
  TRY(done);
  TRY(file->Write(bytes));
  done = file->Commit();
  if (!done.ok() && done.code() != Code::kResourceExhausted) return false;
  TRY(done);
  return true;
}

Status Overwrite(int fd, const fs::path& path, std::string_view bytes) {
  const std::string name = path.string();
  if (::ftruncate(fd, 0) != 0) return ErrnoStatus(errno, "cannot truncate " + name);
  TRY(WriteAll(fd, bytes).With(name));
  if (::fsync(fd) != 0 && errno != EINVAL) return ErrnoStatus(errno, "cannot sync " + name);
  return Status::Ok();
}

Status WriteThrough(int fd, const fs::path& path, std::string_view bytes) {
  OutputStream out(fd, path.string());
  out.Write(bytes);
  return out.status();
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
      if (!reader_gone_) status_ = ErrnoStatus(error, "cannot write to " + name_);
    }
  }
  return !reader_gone_ && status_.ok();
}

Result<fs::path> FollowLinks(const fs::path& given) {
  std::error_code error;
  fs::path path = fs::absolute(given, error);
  if (error) return ErrnoStatus(error.value(), "cannot find " + given.string());
  for (int link = 0; link < kMaxLinks; ++link) {
    if (!fs::is_symlink(path, error) || OwnDescriptor(path) >= 0) return path;
    const fs::path target = fs::read_symlink(path, error);
    if (error) return ErrnoStatus(error.value(), "cannot read the link " + path.string());
    path = path.parent_path() / target;  // an absolute target stands by itself
  }
  return ErrnoStatus(ELOOP, "cannot follow " + given.string());
}

Status CopyAttributes(int from, int to) {
  struct stat old {};
  struct stat made {};
  if (::fstat(from, &old) != 0 || ::fstat(to, &made) != 0) return ErrnoStatus(errno, "cannot stat");
  if ((old.st_uid != made.st_uid || old.st_gid != made.st_gid) &&
      ::fchown(to, old.st_uid, old.st_gid) != 0)
    return ErrnoStatus(errno, "cannot keep owner and group");
  TRY(CopyAccessList(from, to, kAccessList));
  if (S_ISDIR(old.st_mode)) TRY(CopyAccessList(from, to, kDefaultAccessList));
  if (::fchmod(to, old.st_mode & kPermissions) != 0) return ErrnoStatus(errno, "cannot keep mode");
  // The kernel leaves out the bits that one may not set.
  if (::fstat(to, &made) != 0 || ((old.st_mode ^ made.st_mode) & kPermissions) != 0)
    return PermissionDenied("cannot keep mode");
  return Status::Ok();
}

Status WriteOutputFile(const fs::path& given, std::string_view bytes) {
  TRY_ASSIGN(const fs::path path, FollowLinks(given));
  if (const int own = OwnDescriptor(path); own >= 0) return WriteThrough(own, given, bytes);
  std::error_code error;
  if (fs::is_directory(path, error))
    return InvalidArgument(given.string() + " is a directory; name a file");
  if (!fs::exists(path, error)) return WriteNewFile(path, bytes);
  TRY_ASSIGN(const UniqueFd fd, OpenFile(path, O_WRONLY | O_NOCTTY));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, "cannot stat " + given.string());
  if (!S_ISREG(status.st_mode)) return WriteThrough(fd.get(), given, bytes);
  if (status.st_nlink == 1) {
    TRY_ASSIGN(const bool replaced, ReplaceFile(path, fd.get(), bytes));
    if (replaced) return Status::Ok();
  }
  return Overwrite(fd.get(), path, bytes);
}

Result<OutputWriter> OutputWriter::Open(const fs::path& given, unsigned mode) {
  TRY_ASSIGN(const fs::path path, FollowLinks(given));
  if (const int own = OwnDescriptor(path); own >= 0)
    return OutputWriter(own, UniqueFd(), given.string());
  std::error_code error;
  if (fs::is_directory(path, error))
    return InvalidArgument(given.string() + " is a directory; name a file");
  if (!fs::exists(path, error)) {
    TRY_ASSIGN(AtomicFile made, AtomicFile::Create(path, mode));
    return OutputWriter(std::move(made), true);
  }
  TRY_ASSIGN(UniqueFd fd, OpenFile(path, O_WRONLY | O_NOCTTY));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, "cannot stat " + given.string());
  if (S_ISREG(status.st_mode)) {
    Result<AtomicFile> aside = AtomicFile::Create(path, 0600);
    if (status.st_nlink == 1 && aside.ok() && CopyAttributes(fd.get(), aside->fd()).ok())
      return OutputWriter(std::move(*aside), false);
    if (::ftruncate(fd.get(), 0) != 0)
      return ErrnoStatus(errno, "cannot truncate " + given.string());
  }
  const int opened = fd.get();
  return OutputWriter(opened, std::move(fd), given.string());
}

Status OutputWriter::LimitMode(unsigned mode) {
  struct stat status {};
  if (!made_) return Status::Ok();
  if (::fstat(whole_->fd(), &status) != 0 ||
      ::fchmod(whole_->fd(), status.st_mode & mode & kPermissions) != 0)
    return ErrnoStatus(errno, "cannot set the mode of the output");
  return Status::Ok();
}

Status OutputWriter::Write(std::string_view bytes) {
  if (whole_) return whole_->Write(bytes);
  through_->Write(bytes);
  return through_->status();
}

Status OutputWriter::Commit() {
  if (whole_) return whole_->Commit();
  TRY(through_->status());
  // Devices and FIFOs know no sync.
  if (opened_.valid() && ::fsync(opened_.get()) != 0 && errno != EINVAL && errno != EROFS)
    return ErrnoStatus(errno, "cannot sync the output");
  return Status::Ok();
}

Status CopyOutputFile(const fs::path& from, const fs::path& to) {
  TRY_ASSIGN(const UniqueFd fd, OpenFile(from, O_RDONLY | O_NONBLOCK));  // a FIFO must not block
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return ErrnoStatus(errno, "cannot stat " + from.string());
  if (!S_ISREG(status.st_mode)) return InvalidArgument(from.string() + " is not a regular file");
  std::error_code error;
  const bool made = !fs::exists(to, error);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) {
    TRY(WriteOutputFile(to, ""));
  } else {
    void* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (bytes == MAP_FAILED) return ErrnoStatus(errno, "cannot read " + from.string());
    const Status written = WriteOutputFile(to, {static_cast<const char*>(bytes), size});
    ::munmap(bytes, size);
    TRY(written);
  }
  if (!made) return Status::Ok();
  fs::permissions(to, static_cast<fs::perms>(status.st_mode & kPermissions), error);
  return error ? ErrnoStatus(error.value(), "cannot set the mode of " + to.string()) : Status::Ok();
}

}  // namespace shoal
