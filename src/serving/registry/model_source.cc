#include "serving/registry/model_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/id.h"
#include "base/json.h"
#include "base/utf8.h"

namespace shoal::serving {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDepth = 64;
constexpr size_t kPiece = 1 << 20;
constexpr size_t kMaxMetadata = 64 << 20;
constexpr unsigned kReadOnly = 0555;
constexpr unsigned kAllModes = 07777;

UniqueFd OpenAt(int directory, const std::string& path, int flags, uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC | O_NONBLOCK);
  how.resolve = resolve;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
}

std::string Shown(const fs::path& path) { return EscapedUtf8(path.string()); }

// Reads a whole file; calls `take` with its bytes.
Result<VersionFile> ReadAll(int fd, const std::function<Status(std::string_view)>& take) {
  VersionFile file;
  Sha256 digest;
  std::string piece(kPiece, '\0');
  for (;;) {
    const ssize_t got = ::pread(fd, piece.data(), piece.size(), static_cast<off_t>(file.bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "reading a file of the model");
    if (got == 0) break;
    const std::string_view bytes(piece.data(), static_cast<size_t>(got));
    digest.Add(bytes);
    TRY(take(bytes));
    file.bytes += bytes.size();
  }
  file.sha256 = digest.Finish();
  return file;
}

bool IsLeftOut(std::string_view part) { return part.starts_with('.') || part.starts_with('_'); }

// Gives the file the name `to`, in place of what is there; it can then be written under no name.
bool LinkOver(int fd, const fs::path& to) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || ::fchmod(fd, info.st_mode & kReadOnly) != 0) return false;
  const std::string from = fmt::format("/proc/self/fd/{}", fd);
  const std::string aside = to.string() + ".link";
  const bool linked =
      ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, aside.c_str(), AT_SYMLINK_FOLLOW) == 0 &&
      ::rename(aside.c_str(), to.c_str()) == 0;
  if (!linked) (void)::fchmod(fd, info.st_mode & kAllModes);  // as it was
  return linked;
}

}  // namespace

Result<ModelSource> ModelSource::Open(const fs::path& directory, const SourceAccess& access) {
  const FileAccessAs rights(access.rights_of);
  uint64_t resolve = RESOLVE_NO_MAGICLINKS;
  if (!access.follow_links && !access.trusts_path) resolve |= RESOLVE_NO_SYMLINKS;
  const int last = access.follow_links ? 0 : O_NOFOLLOW;
  UniqueFd fd = OpenAt(AT_FDCWD, directory.string(), O_RDONLY | O_DIRECTORY | last, resolve);
  if (!fd.valid() && (errno == ELOOP || (errno == ENOTDIR && fs::is_symlink(directory))))
    return PermissionDenied(Shown(directory) +
                            " is a link, or lies behind one; name the directory itself");
  if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR))
    return NotFound(Shown(directory) + ": there is no such directory of a model");
  if (!fd.valid()) return ErrnoStatus(errno, "opening " + Shown(directory));
  ModelSource source(directory, std::move(fd), access);
  source.ReadWrittenFiles();
  return source;
}

// model.json lists what Shoal wrote, and Shoal replaces files and never writes into them.
void ModelSource::ReadWrittenFiles() {
  const auto fd = OpenBelow("model.json", O_RDONLY);
  if (!fd.ok()) return;
  std::string text;
  const auto read = ReadAll(fd->get(), [&text](std::string_view bytes) {
    text += bytes;
    return text.size() > kMaxMetadata ? DataLoss("too long") : Status::Ok();
  });
  if (!read.ok()) return;
  const auto metadata = ParseJsonObject(text);
  if (!metadata.ok() || !GetStringOr(*metadata, "format", "").starts_with("shoal")) return;
  if (const json::object* const files = FindObject(*metadata, "files"); files != nullptr)
    for (const auto& file : *files) written_.emplace(file.key());
}

Result<UniqueFd> ModelSource::OpenBelow(const std::string& name, int flags) const {
  const FileAccessAs rights(access_.rights_of);
  const uint64_t resolve = access_.follow_links
                               ? RESOLVE_NO_MAGICLINKS
                               : RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd = OpenAt(directory_.get(), name, flags, resolve);
  if (fd.valid()) return fd;
  if (errno == ELOOP)
    return PermissionDenied(Shown(path_ / name) + " is a link; a version has files only");
  return ErrnoStatus(errno, "opening " + Shown(path_ / name));
}

Status ModelSource::ListBelow(const std::string& folder, int depth,
                              std::vector<std::string>* names) const {
  if (depth > kMaxDepth)
    return InvalidArgument(
        fmt::format("{} has more than {} levels of directories", Shown(path_), kMaxDepth));
  TRY_ASSIGN(UniqueFd fd, OpenBelow(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(fd.get()), ::closedir);
  if (listing == nullptr) return ErrnoStatus(errno, "reading " + Shown(path_ / folder));
  (void)fd.Release();
  while (const dirent* const entry = ::readdir(listing.get())) {
    if (IsLeftOut(entry->d_name)) continue;
    const std::string name = folder.empty() ? entry->d_name : folder + "/" + entry->d_name;
    struct stat info {};
    const int follow = access_.follow_links ? 0 : AT_SYMLINK_NOFOLLOW;
    if (::fstatat(::dirfd(listing.get()), entry->d_name, &info, follow) != 0)
      return ErrnoStatus(errno, Shown(path_ / name));
    if (S_ISDIR(info.st_mode)) {
      TRY(ListBelow(name, depth + 1, names));
      continue;
    }
    if (!S_ISREG(info.st_mode))
      return PermissionDenied(Shown(path_ / name) + " is no file; a version has files only");
    if (names->size() == kMaxVersionFiles)
      return InvalidArgument(fmt::format("{} has more than {} files; name the directory of a model",
                                         Shown(path_), kMaxVersionFiles));
    if (EscapedUtf8(name) != name)
      return InvalidArgument(Shown(path_ / name) + ": the name of the file is not UTF-8");
    names->push_back(name);
  }
  return Status::Ok();
}

Result<std::vector<std::string>> ModelSource::List() const {
  const FileAccessAs rights(access_.rights_of);
  std::vector<std::string> names;
  TRY(ListBelow("", 0, &names));
  if (names.empty()) return NotFound(Shown(path_) + " has no files");
  std::sort(names.begin(), names.end());
  return names;
}

// Another user's file could be written by that user through its own name.
bool ModelSource::MayLink(const std::string& name, int fd) const {
  struct stat info {};
  return written_.contains(name) && ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_uid == ::geteuid() && static_cast<uint64_t>(info.st_size) >= kLinkFromBytes;
}

Result<VersionFile> ModelSource::Take(const std::string& name, const fs::path& to) const {
  TRY_ASSIGN(const UniqueFd from, OpenBelow(name, O_RDONLY));
  struct stat info {};
  if (::fstat(from.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return PermissionDenied(Shown(path_ / name) + " is no file; a version has files only");
  TRY(MakeDirectories(to.parent_path()));
  TRY_ASSIGN(const UniqueFd out, OpenFile(to, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  auto file = [&]() -> Result<VersionFile> {
    const auto nothing = [](std::string_view) { return Status::Ok(); };
    if (::ioctl(out.get(), FICLONE, from.get()) == 0) return ReadAll(out.get(), nothing);
    if (MayLink(name, from.get()) && LinkOver(from.get(), to)) return ReadAll(from.get(), nothing);
    return ReadAll(from.get(),
                   [&out](std::string_view bytes) { return WriteAll(out.get(), bytes); });
  }();
  TRY(file.status());
  if (::fsync(out.get()) != 0) return ErrnoStatus(errno, "storing " + Shown(to));
  TRY(SyncDirectory(to.parent_path()));
  file->name = name;
  return file;
}

}  // namespace shoal::serving
