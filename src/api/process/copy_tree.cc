#include "api/process/copy_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kPrivate = 0700;
constexpr size_t kBlock = size_t{1} << 20;

// Names in a directory that is no link.
Result<std::vector<std::string>> ListNames(const fs::path& directory) {
  TRY_ASSIGN(UniqueFd fd, OpenFile(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (stream == nullptr) return ErrnoStatus(errno, directory.string());
  fd.Release();
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return ErrnoStatus(errno, directory.string());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  // A directory that changes meanwhile may have a name twice.
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

// Copies [offset, end), or less if the file has been cut. The bytes copied.
Result<int64_t> CopyRange(int in, int out, off_t offset, off_t end, std::vector<char>* block) {
  int64_t copied = 0;
  block->resize(kBlock);
  while (offset < end) {
    const auto wanted = static_cast<size_t>(std::min<off_t>(end - offset, kBlock));
    const ssize_t got = ::pread(in, block->data(), wanted, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read");
    if (got == 0) break;
    TRY(WriteAllAt(out, {block->data(), static_cast<size_t>(got)}, offset));
    offset += got;
    copied += got;
  }
  return copied;
}

// Copies up to `size` bytes and keeps holes. The bytes copied.
Result<int64_t> CopyContent(int in, int out, off_t size) {
  int64_t copied = 0;
  std::vector<char> block;
  for (off_t offset = 0; offset < size;) {
    const off_t data = ::lseek(in, offset, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // a hole up to the end
    // A file system that knows no holes.
    const off_t begin = data < 0 ? offset : data;
    const off_t hole = data < 0 ? size : ::lseek(in, begin, SEEK_HOLE);
    const off_t end = std::min(hole < 0 ? size : hole, size);
    TRY_ASSIGN(const int64_t bytes, CopyRange(in, out, begin, end, &block));
    copied += bytes;
    offset = std::max(end, offset + 1);
  }
  if (::ftruncate(out, size) != 0) return ErrnoStatus(errno, "cannot write");
  return copied;
}

class TreeCopier {
 public:
  TreeCopier(fs::path from, fs::path to, const std::optional<UserIds>& owner,
             const LeaveOut& leave_out, CopiedFiles* copied)
      : from_(std::move(from)),
        to_(std::move(to)),
        owner_(owner),
        leave_out_(leave_out),
        copied_(copied) {}

  Status Copy() {
    std::vector<fs::path> directories{fs::path()};  // relative, made in the copy, to be read
    while (!directories.empty()) {
      const fs::path directory = std::move(directories.back());
      directories.pop_back();
      auto names = [&] {
        const FileAccessAs rights(owner_);
        return ListNames(from_ / directory);
      }();
      if (!names.ok()) {
        TRY(LeftOut(names.status()));
        continue;
      }
      for (const std::string& name : *names) {
        const fs::path relative = directory / name;
        if (leave_out_(relative)) continue;
        TRY_ASSIGN(const bool enter, CopyEntry(relative));
        if (enter) directories.push_back(relative);
      }
    }
    return Status::Ok();
  }

 private:
  // Of an entry in `from_`.
  Status LeftOut(const Status& why) {
    if (why.code() == Code::kNotFound) return Status::Ok();
    if (!owner_) return why;
    ++copied_->left_out;
    return Status::Ok();
  }

  // Whether it is a directory.
  Result<bool> CopyEntry(const fs::path& relative) {
    const fs::path source = from_ / relative;
    const fs::path target = to_ / relative;
    if (target.native().size() >= PATH_MAX) {
      TRY(LeftOut(ErrnoStatus(ENAMETOOLONG, target.string())));
      return false;
    }
    struct stat info {};
    int error = 0;
    {
      const FileAccessAs rights(owner_);
      if (::lstat(source.c_str(), &info) != 0) error = errno;
    }
    if (error != 0) {
      TRY(LeftOut(ErrnoStatus(error, source.string())));
      return false;
    }
    if (S_ISDIR(info.st_mode)) {
      // One that exists is none that was made here.
      if (::mkdir(target.c_str(), kPrivate) != 0) return ErrnoStatus(errno, target.string());
      return true;
    }
    if (S_ISLNK(info.st_mode)) TRY(CopyLink(source, target));
    if (S_ISREG(info.st_mode)) TRY(CopyFile(source, target).With("copying " + source.string()));
    return false;
  }

  Status CopyLink(const fs::path& source, const fs::path& target) {
    std::error_code error;
    const fs::path link = [&] {
      const FileAccessAs rights(owner_);
      return fs::read_symlink(source, error);
    }();
    if (error) return LeftOut(ErrnoStatus(error.value(), source.string()));
    fs::create_symlink(link, target, error);
    return error ? ErrnoStatus(error.value(), target.string()) : Status::Ok();
  }

  Status CopyFile(const fs::path& source, const fs::path& target) {
    const auto in = [&] {
      const FileAccessAs rights(owner_);
      return OpenFile(source, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    }();
    if (!in.ok()) return LeftOut(in.status());
    struct stat info {};
    if (::fstat(in->get(), &info) != 0) return LeftOut(ErrnoStatus(errno, source.string()));
    if (!S_ISREG(info.st_mode)) return LeftOut(Unavailable(source.string() + " changes meanwhile"));
    TRY_ASSIGN(const UniqueFd out,
               OpenFile(target, O_WRONLY | O_CREAT | O_EXCL, info.st_mode & 0777));
    TRY_ASSIGN(const int64_t bytes, CopyContent(in->get(), out.get(), info.st_size));
    ++copied_->files;
    copied_->bytes += bytes;
    return Status::Ok();
  }

  const fs::path from_;
  const fs::path to_;
  const std::optional<UserIds> owner_;
  const LeaveOut& leave_out_;
  CopiedFiles* const copied_;
};

}  // namespace

Status CopyTree(const fs::path& from, const fs::path& to, const std::optional<UserIds>& owner,
                const LeaveOut& leave_out, CopiedFiles* copied) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(from, error))) return Status::Ok();
  TRY(MakeDirectories(to, kPrivate));
  return TreeCopier(from, to, owner, leave_out, copied).Copy();
}

}  // namespace shoal::api
