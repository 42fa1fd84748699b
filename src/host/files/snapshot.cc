#include "host/files/snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/fault_injection.h"
#include "host/files/ignore_rules.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr int kReads = 3;  // attempts for a file that changes during the read
constexpr size_t kIgnoreFileBytes = 1 << 20;
constexpr const char* kRemedy = "; name it in .shoalignore, or move it out of the directory";

// Does not compare ctime: using the cache changes the ctime of files that tasks have as hard
// links.
bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// One walk over a directory; collects entries and adds files to the cache.
class Walk {
 public:
  Walk(fs::path root, BlobCache* cache, const std::vector<fs::path>& except)
      : root_(std::move(root)), cache_(cache), except_(except) {}

  Result<Snapshot> Go() {
    TRY(Directory("", rules_));
    auto& entries = snapshot_.manifest.entries;
    std::sort(entries.begin(), entries.end(),
              [](const ManifestEntry& a, const ManifestEntry& b) { return a.path < b.path; });
    return std::move(snapshot_);
  }

 private:
  // `rules`: of the parent directories.
  Status Directory(const std::string& path, IgnoreRules rules) {
    const fs::path directory = root_ / path;
    if (auto text = ReadFile(directory / kIgnoreFile, kIgnoreFileBytes); text.ok()) {
      if (!rules.Add(*text, path))
        return InvalidArgument((directory / kIgnoreFile).string() +
                               ": got more than 10000 rules or a line of more than " +
                               std::to_string(kMaxIgnoreLine) + " bytes; make it shorter");
    } else if (text.status().code() != Code::kNotFound) {
      return text.status();
    }
    TRY_ASSIGN(const std::vector<std::string> names, Names(directory));
    for (const std::string& name : names) {
      TRY(One(path.empty() ? name : path + "/" + name, name, rules));
    }
    return Status::Ok();
  }

  static Result<std::vector<std::string>> Names(const fs::path& directory) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), &::closedir);
    if (open == nullptr)
      return ErrnoStatus(errno, "cannot read the directory " + directory.string());
    while (const dirent* entry = ::readdir(open.get())) {
      const std::string_view name(entry->d_name);
      if (name != "." && name != "..") names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Status One(const std::string& path, const std::string& name, const IgnoreRules& rules) {
    const fs::path full = root_ / path;
    struct stat info {};
    if (::lstat(full.c_str(), &info) != 0) {
      // Removed since the directory was read: skip it.
      return errno == ENOENT ? Status::Ok() : ErrnoStatus(errno, "cannot look at " + full.string());
    }
    const bool is_directory = S_ISDIR(info.st_mode);
    if (rules.Ignored(path, is_directory) || LeftOut(path, name, is_directory)) return Status::Ok();
    if (const Status good = CheckShippedPath(path); !good.ok())
      return InvalidArgument(full.string() + " cannot be shipped: " + good.message() + kRemedy);
    if (snapshot_.manifest.entries.size() >= kMaxManifestEntries)
      return ResourceExhausted(root_.string() + " cannot be shipped: it has more than " +
                               std::to_string(kMaxManifestEntries) + " files" + kTooMuch);
    ManifestEntry entry;
    entry.path = path;
    if (is_directory) {
      entry.kind = ManifestEntry::Kind::kDirectory;
      snapshot_.manifest.entries.push_back(std::move(entry));
      return Directory(path, rules);
    }
    if (S_ISLNK(info.st_mode)) {
      TRY(Link(full, &entry));
    } else if (S_ISREG(info.st_mode)) {
      TRY(File(full, &entry));
    } else {
      return InvalidArgument(full.string() +
                             " cannot be shipped: it is a device, a pipe or a socket" + kRemedy);
    }
    snapshot_.manifest.entries.push_back(std::move(entry));
    return Status::Ok();
  }

  bool LeftOut(const std::string& path, const std::string& name, bool is_directory) {
    if (!is_directory) return false;
    const fs::path full = root_ / path;
    if (std::find(except_.begin(), except_.end(), full) != except_.end()) return true;
    const bool own = name == ".git" || name == ".hg" || name == ".svn" || name == "__pycache__";
    if (!own && ::access((full / "pyvenv.cfg").c_str(), F_OK) != 0) return false;
    snapshot_.left_out.push_back(path);
    return true;
  }

  Status Link(const fs::path& full, ManifestEntry* entry) const {
    entry->kind = ManifestEntry::Kind::kLink;
    std::error_code error;
    const fs::path target = fs::read_symlink(full, error);
    if (error) return ErrnoStatus(error.value(), "cannot read the link " + full.string());
    const fs::path real = fs::weakly_canonical(full.parent_path() / target, error);
    const fs::path inside = real.lexically_relative(root_);
    const bool leaves = error || inside.empty() || *inside.begin() == "..";
    entry->target = target.string();
    if (!leaves && !CheckLinkTarget(entry->path, entry->target).ok()) {
      // The same target in normalized form.
      entry->target =
          real.lexically_relative(fs::weakly_canonical(full.parent_path(), error)).string();
    }
    if (!leaves && CheckLinkTarget(entry->path, entry->target).ok()) return Status::Ok();
    return InvalidArgument(full.string() + " cannot be shipped: this link leads to " +
                           target.string() + ", out of the directory" + kRemedy);
  }

  Status File(const fs::path& full, ManifestEntry* entry) {
    for (int read = 0; read < kReads; ++read) {
      TRY_ASSIGN(const UniqueFd fd, OpenFile(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
      struct stat before {};
      struct stat after {};
      if (::fstat(fd.get(), &before) != 0) return ErrnoStatus(errno, full.string());
      if (!S_ISREG(before.st_mode))
        return Aborted(full.string() + " became something else while it was read");
      if (bytes_ + before.st_size > kMaxShippedBytes) return TooLarge(full, before.st_size);
      auto blob = cache_->AddFile(fd.get());
      if (!blob.ok()) return blob.status().With(full.string());
      TRY(FaultPoint("snapshot.read"));
      if (::stat(full.c_str(), &after) != 0 || !SameFile(before, after) ||
          blob->size != before.st_size)
        continue;
      entry->size = blob->size;
      entry->sha256 = std::move(blob->sha256);
      entry->executable = (before.st_mode & S_IXUSR) != 0;
      bytes_ += entry->size;
      return Status::Ok();
    }
    return Aborted(full.string() + " was written to each of the " + std::to_string(kReads) +
                   " times that it was read" + kRemedy);
  }

  Status TooLarge(const fs::path& full, int64_t size) const {
    return ResourceExhausted(root_.string() + " cannot be shipped: with " + full.string() + " (" +
                             std::to_string(size >> 20) + " MiB) it is larger than " +
                             std::to_string(kMaxShippedBytes >> 30) + " GiB" + kTooMuch);
  }

  static constexpr const char* kTooMuch =
      "; name data and results in .shoalignore and let the tasks read them where they are";

  const fs::path root_;  // canonical
  BlobCache* const cache_;
  const std::vector<fs::path>& except_;
  const IgnoreRules rules_;
  Snapshot snapshot_;
  int64_t bytes_ = 0;
};

}  // namespace

Result<Snapshot> TakeSnapshot(const fs::path& directory, BlobCache* cache,
                              const std::vector<fs::path>& except) {
  std::error_code error;
  const fs::path root = fs::canonical(directory, error);
  if (error || !fs::is_directory(root, error))
    return InvalidArgument("files: got " + directory.string() +
                           ", expected a directory that exists");
  std::vector<fs::path> real;
  for (const fs::path& one : except) real.push_back(fs::weakly_canonical(one, error));
  return Walk(root, cache, real).Go();
}

}  // namespace shoal::host
