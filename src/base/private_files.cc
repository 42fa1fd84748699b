#include "base/private_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace shoal {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

bool IsOurs(const struct stat& info) {
  return info.st_uid == ::geteuid() || info.st_uid == 0 || ::geteuid() == 0;
}

}  // namespace

Status CheckOwnDirectory(const std::filesystem::path& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return ErrnoStatus(errno, directory.string());
  if (!IsOurs(info)) {
    return PermissionDenied(directory.string() + " belongs to user " + std::to_string(info.st_uid) +
                            ", who could read or replace what is kept there; expected a directory "
                            "of user " +
                            std::to_string(::geteuid()));
  }
  if ((info.st_mode & S_IWOTH) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return PermissionDenied(directory.string() +
                            " may be written by every user, who could replace what is kept there; "
                            "try `chmod o-w " +
                            directory.string() + "`");
  }
  return Status::Ok();
}

Result<UniqueFd> OpenPrivateFile(const std::filesystem::path& path, int flags) {
  TRY_ASSIGN(UniqueFd file, OpenFile(path, flags | O_CREAT | O_NONBLOCK, 0600));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return ErrnoStatus(errno, path.string());
  if (!S_ISREG(info.st_mode) || !IsOurs(info)) {
    return PermissionDenied(path.string() + " is not a regular file of user " +
                            std::to_string(::geteuid()) + "; remove it, or use another directory");
  }
  const bool wrong =
      (info.st_mode & kOthers) != 0 || (info.st_mode & S_IRWXU) != (S_IRUSR | S_IWUSR);
  if (wrong && info.st_uid == ::geteuid() && ::fchmod(file.get(), S_IRUSR | S_IWUSR) != 0)
    return ErrnoStatus(errno, "cannot close " + path.string() + " to other users");
  return file;
}

}  // namespace shoal
