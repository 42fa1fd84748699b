#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/fault_injection.h"
#include "base/id.h"

namespace shoal {

namespace fs = std::filesystem;

namespace {

// A name beside `path`, no longer than names may be.
fs::path NameAside(const fs::path& path) {
  const std::string ending = ".tmp-" + RandomHex(6);
  std::string name = path.filename().string();
  const auto in_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  size_t kept = std::min(name.size(), NAME_MAX - ending.size());
  while (kept > 0 && kept < name.size() && in_character(name[kept])) --kept;
  name.resize(kept);
  return path.parent_path() / (name + ending);
}

// In a directory of another user, who may have put a link or a FIFO in the place of a file.
Status CheckKind(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, path.string());
  if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) return Status::Ok();
  return PermissionDenied(path.string() + " is neither a regular file nor a directory");
}

}  // namespace

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<UniqueFd> OpenFile(const fs::path& path, int flags, unsigned mode) {
  const bool foreign = FileAccessAs::active();
  if (foreign) flags |= O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0 && foreign && (errno == ELOOP || errno == ENXIO))
    return PermissionDenied(path.string() + " is neither a regular file nor a directory");
  if (fd < 0) return ErrnoStatus(errno, "cannot open " + path.string());
  UniqueFd file(fd);
  if (foreign) TRY(CheckKind(fd, path));
  return file;
}

Result<std::string> ReadFile(const fs::path& path, size_t limit) {
  TRY_ASSIGN(UniqueFd fd, OpenFile(path, O_RDONLY));
  std::string bytes;
  char block[65536];
  for (;;) {
    const ssize_t got = ::read(fd.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read " + path.string());
    if (got == 0) return bytes;
    bytes.append(block, static_cast<size_t>(got));
    if (bytes.size() > limit) {
      return ResourceExhausted(path.string() + " is longer than the " + std::to_string(limit) +
                               " bytes that are allowed");
    }
  }
}

Status WriteAll(int fd, std::string_view bytes) {
  TRY(FaultPoint("file.write"));
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return ErrnoStatus(errno, "cannot write");
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return Status::Ok();
}

Status WriteAllAt(int fd, std::string_view bytes, int64_t offset) {
  TRY(FaultPoint("file.write"));
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return ErrnoStatus(errno, "cannot write");
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += put;
  }
  return Status::Ok();
}

Result<AtomicFile> AtomicFile::Create(const fs::path& path, unsigned mode) {
  fs::path aside = NameAside(path);
  TRY_ASSIGN(UniqueFd fd, OpenFile(aside, O_WRONLY | O_CREAT | O_EXCL, mode));
  return AtomicFile(path, std::move(aside), std::move(fd));
}

AtomicFile::~AtomicFile() {
  if (fd_.valid() && !aside_.empty()) ::unlink(aside_.c_str());
}

Status AtomicFile::Commit(bool durable) {
  if (durable && ::fsync(fd_.get()) != 0)
    return ErrnoStatus(errno, "cannot sync " + aside_.string());
  TRY(FaultPoint("file.rename"));
  if (::rename(aside_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot rename " + aside_.string() + " to " + path_.string());
  }
  aside_.clear();
  fd_.Reset();
  return durable ? SyncDirectory(path_.parent_path()) : Status::Ok();
}

Status WriteFileAtomically(const fs::path& path, std::string_view bytes, unsigned mode,
                           bool durable) {
  TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path, mode));
  TRY(file.Write(bytes));
  return file.Commit(durable);
}

Status SyncDirectory(const fs::path& directory) {
  TRY_ASSIGN(UniqueFd fd,
             OpenFile(directory.empty() ? fs::path(".") : directory, O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) return ErrnoStatus(errno, "cannot sync " + directory.string());
  return Status::Ok();
}

Status MakeDirectories(const fs::path& directory, unsigned mode) {
  fs::path made;
  for (const fs::path& part : directory) {
    made /= part;
    if (::mkdir(made.c_str(), mode) != 0 && errno != EEXIST) {
      const int error = errno;
      if (error == EROFS && fs::is_directory(made)) continue;
      return ErrnoStatus(error, "cannot make directory " + made.string());
    }
  }
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return InvalidArgument(directory.string() + " exists and is not a directory");
  }
  return Status::Ok();
}

Result<TempDir> TempDir::Create(std::string_view prefix) {
  const char* root = std::getenv("TMPDIR");
  std::string pattern = std::string(root != nullptr && *root != '\0' ? root : "/tmp") + "/" +
                        std::string(prefix) + "-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return ErrnoStatus(errno, "cannot make " + pattern);
  return TempDir(fs::path(pattern));
}

TempDir::~TempDir() {
  if (path_.empty()) return;
  std::error_code ignored;  // a leftover in the temporary directory is no reason to fail
  fs::remove_all(path_, ignored);
}

}  // namespace shoal
