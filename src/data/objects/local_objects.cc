#include "data/objects/local_objects.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/id.h"
#include "base/output_file.h"

namespace shoal::data {
namespace {

namespace fs = std::filesystem;

ObjectInfo InfoOf(const std::string& path, const struct stat& status) {
  const auto time = WallTime(std::chrono::seconds(status.st_mtim.tv_sec));
  return {path, static_cast<uint64_t>(status.st_size),
          fmt::format("{:x}-{:x}-{:x}.{:09}", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                      status.st_mtim.tv_nsec),
          FormatWall(time).substr(0, 19) + "Z"};
}

class LocalObject final : public Object {
 public:
  LocalObject(UniqueFd fd, ObjectInfo info) : fd_(std::move(fd)), info_(std::move(info)) {}
  const ObjectInfo& info() const override { return info_; }

  Result<size_t> ReadAt(uint64_t offset, char* to, size_t size) const override {
    size =
        static_cast<size_t>(std::min<uint64_t>(size, info_.bytes - std::min(offset, info_.bytes)));
    size_t have = 0;
    while (have < size) {
      const ssize_t got =
          ::pread(fd_.get(), to + have, size - have, static_cast<off_t>(offset + have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, info_.uri);
      if (got == 0) return DataLoss(info_.uri + " has become shorter while it was read");
      have += static_cast<size_t>(got);
    }
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) return ErrnoStatus(errno, info_.uri);
    if (InfoOf(info_.uri, status).version != info_.version)
      return DataLoss(info_.uri +
                      " has changed since it was opened; do not change data while it "
                      "is used");
    return size;
  }

 private:
  const UniqueFd fd_;
  const ObjectInfo info_;
};

class LocalWriter final : public ObjectWriter {
 public:
  LocalWriter(std::string path, OutputWriter file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status Append(std::string_view bytes) override {
    bytes_ += bytes.size();
    return file_.Write(bytes);
  }
  Result<ObjectInfo> Finish() override {
    TRY(file_.Commit());
    return ObjectInfo{path_, bytes_, "", ""};
  }

 private:
  const std::string path_;
  OutputWriter file_;
  uint64_t bytes_ = 0;
};

// Files of /proc and /sys say that they are empty, whatever they hold.
Status CheckLength(int fd, const struct stat& status, const std::string& path) {
  char byte = 0;
  if (status.st_size == 0 && ::pread(fd, &byte, 1, 0) > 0)
    return InvalidArgument(path +
                           " has a length that is not known before it is read; copy it to "
                           "a regular file first");
  return Status::Ok();
}

class LocalStore final : public ObjectStore {
 public:
  Result<std::shared_ptr<const Object>> Open(const ObjectUri& uri) override {
    // A FIFO must not block, and is refused next.
    auto fd = OpenFile(uri.path, O_RDONLY | O_NONBLOCK);
    if (!fd.ok()) return fd.status();
    struct stat status {};
    if (::fstat(fd->get(), &status) != 0) return ErrnoStatus(errno, uri.path);
    if (S_ISDIR(status.st_mode))
      return InvalidArgument(uri.path + " is a directory; name a file in it, or " + uri.path +
                             "/ for all");
    if (!S_ISREG(status.st_mode)) return InvalidArgument(uri.path + " is not a regular file");
    TRY(CheckLength(fd->get(), status, uri.path));
    return std::shared_ptr<const Object>(
        std::make_shared<LocalObject>(std::move(*fd), InfoOf(uri.path, status)));
  }

  // Symbolic links to directories are not followed, so that a listing ends.
  Status List(const ObjectUri& prefix, const VisitObject& visit) override {
    const fs::path whole(prefix.path);
    std::error_code error;
    fs::path folder = fs::is_directory(whole, error) ? whole : whole.parent_path();
    if (folder.empty()) folder = ".";
    if (!fs::exists(folder, error)) return NotFound(folder.string() + ": there is no such folder");
    auto entry = fs::recursive_directory_iterator(
        folder, fs::directory_options::skip_permission_denied, error);
    if (error) return PermissionDenied(folder.string() + ": " + error.message());
    while (entry != fs::recursive_directory_iterator()) {
      struct stat status {};
      std::string path = entry->path().string();
      if (path.starts_with("./") && !prefix.path.starts_with("./")) path.erase(0, 2);
      if (path.starts_with(prefix.path) && ::stat(path.c_str(), &status) == 0 &&
          S_ISREG(status.st_mode))
        TRY(visit(InfoOf(path, status)));
      entry.increment(error);
      if (error) return PermissionDenied(folder.string() + ": " + error.message());
    }
    return Status::Ok();
  }

  Result<std::unique_ptr<ObjectWriter>> Create(const ObjectUri& uri) override {
    const fs::path path(uri.path);
    if (path.has_parent_path()) TRY(MakeDirectories(path.parent_path()));
    TRY_ASSIGN(OutputWriter file, OutputWriter::Open(path));
    return std::unique_ptr<ObjectWriter>(std::make_unique<LocalWriter>(uri.path, std::move(file)));
  }

  // A link to a file that is written and synced already: it appears whole, and only where there is
  // nothing.
  Status CreateNew(const ObjectUri& uri, std::string_view bytes) override {
    const fs::path path(uri.path);
    TRY(MakeDirectories(path.parent_path()));
    const fs::path aside = path.parent_path() / (".new-" + RandomHex(8));
    TRY(WriteFileAtomically(aside, bytes));
    const bool linked = ::link(aside.c_str(), path.c_str()) == 0;
    int error = linked ? 0 : errno;
    // Filesystems without hard links.
    if (error == EPERM || error == EOPNOTSUPP || error == ENOSYS)
      error = ::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0
                  ? 0
                  : errno;
    ::unlink(aside.c_str());
    if (error == EEXIST) return AlreadyExists(uri.path + " exists");
    if (error != 0) return ErrnoStatus(error, uri.path);
    return SyncDirectory(path.parent_path());
  }

  Status Remove(const ObjectUri& uri) override {
    if (::unlink(uri.path.c_str()) == 0 || errno == ENOENT) return Status::Ok();
    return ErrnoStatus(errno, uri.path);
  }
};

}  // namespace

std::unique_ptr<ObjectStore> MakeLocalStore() { return std::make_unique<LocalStore>(); }

}  // namespace shoal::data
