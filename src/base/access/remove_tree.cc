#include "base/access/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/id.h"

namespace shoal {
namespace {

constexpr int kOpen = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int64_t kMostDirectories = 100'000'000;
// So many names of a directory are read before they are removed, so that one with millions of
// entries takes little memory.
constexpr size_t kNamesAtOnce = 10'000;

class TreeRemover {
 public:
  explicit TreeRemover(UniqueFd top) : top_(std::move(top)) {}

  // Everything in the top directory.
  Status RemoveContents() {
    Empty(top_.get(), /*at_top=*/true);
    while (!directories_.empty()) {
      const std::string name = std::move(directories_.back());
      directories_.pop_back();
      RemoveDirectory(name);
    }
    return first_;
  }

 private:
  void Failed(int error, std::string_view name) {
    if (error != ENOENT && first_.ok())
      first_ = ErrnoStatus(error, "cannot remove " + std::string(name));
  }

  // A directory of the top one.
  void RemoveDirectory(const std::string& name) {
    {
      const UniqueFd directory(::openat(top_.get(), name.c_str(), kOpen));
      if (directory.valid()) {
        Empty(directory.get(), /*at_top=*/false);
      } else if (errno != EACCES) {  // an empty one need not be readable
        return Failed(errno, name);
      }
    }
    if (::unlinkat(top_.get(), name.c_str(), AT_REMOVEDIR) != 0) Failed(errno, name);
  }

  // Removes what is no directory, and moves directories to the top.
  void Empty(int directory, bool at_top) {
    size_t removed = 0;
    do {
      removed = 0;
      for (const std::string& name : Names(directory)) {
        if (::unlinkat(directory, name.c_str(), 0) == 0) {
          ++removed;
        } else if (errno != EISDIR && errno != EPERM) {  // Linux says EISDIR, POSIX EPERM
          Failed(errno, name);
        } else if (at_top) {
          Add(name);
        } else if (MoveToTop(directory, name)) {
          ++removed;
        }
      }
      // At the top the directories stay for now, so one pass has to do.
    } while (removed >= kNamesAtOnce && !at_top);
  }

  void Add(std::string name) {
    if (++found_ > kMostDirectories) {
      if (first_.ok()) first_ = Unavailable("directories are added while they are removed");
      return;
    }
    directories_.push_back(std::move(name));
  }

  bool MoveToTop(int directory, const std::string& name) {
    std::string moved = ".removed-" + RandomHex(8);
    // An empty one need not be moved, and one without the right to write cannot be.
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0) return true;
    if (::renameat(directory, name.c_str(), top_.get(), moved.c_str()) != 0) {
      Failed(errno, name);
      return false;
    }
    Add(std::move(moved));
    return true;
  }

  // At the top all names, else at most kNamesAtOnce.
  std::vector<std::string> Names(int directory) {
    std::vector<std::string> names;
    const int copy = ::openat(directory, ".", kOpen);
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(copy < 0 ? nullptr : ::fdopendir(copy),
                                                     ::closedir);
    if (stream == nullptr) {
      Failed(errno, ".");
      if (copy >= 0) ::close(copy);
      return names;
    }
    while (directory == top_.get() || names.size() < kNamesAtOnce) {
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
  }

  const UniqueFd top_;
  std::vector<std::string> directories_;  // in the top directory, to be removed
  int64_t found_ = 0;
  Status first_;
};

}  // namespace

Status RemoveTree(const std::filesystem::path& directory) {
  UniqueFd top(::open(directory.c_str(), kOpen));
  Status contents;
  if (top.valid()) {
    contents = TreeRemover(std::move(top)).RemoveContents();
  } else if (errno == ENOENT) {
    return Status::Ok();
  } else if (errno == ENOTDIR || errno == ELOOP) {
    if (::unlink(directory.c_str()) == 0 || errno == ENOENT) return Status::Ok();
    return ErrnoStatus(errno, "cannot remove " + directory.string());
  }
  if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  const int error = errno;
  return contents.ok() ? ErrnoStatus(error, "cannot remove " + directory.string())
                       : contents.With(directory.string());
}

}  // namespace shoal
