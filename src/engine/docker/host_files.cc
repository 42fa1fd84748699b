#include "engine/docker/host_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/file.h"

namespace shoal::engine::docker {
namespace {

namespace fs = std::filesystem;

bool ToNumber(std::string_view text, uint32_t* number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && error == std::errc() && rest == text.data() + text.size();
}

Status Give(const fs::path& path, const ContainerUser& user) {
  if (::lchown(path.c_str(), user.uid, user.gid) == 0 || errno == ENOENT) return Status::Ok();
  return ErrnoStatus(errno, "cannot give " + path.string() + " to the user of `container.user`");
}

// The directory itself remains root's, and the user has it by the group: this process enters the
// directory of another owner with the owner's rights (base/access/directory_owner.h), but works in
// this one as root, and the user may be unable to pass a directory above it, such as /root.
Status GiveTop(const fs::path& directory, const ContainerUser& user) {
  if (::chown(directory.c_str(), 0, user.gid) == 0 && ::chmod(directory.c_str(), 0770) == 0)
    return Status::Ok();
  return ErrnoStatus(errno,
                     "cannot give " + directory.string() + " to the group of `container.user`");
}

Status GiveTree(const fs::path& directory, const ContainerUser& user) {
  TRY(GiveTop(directory, user));
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error))
    TRY(Give(it->path(), user));
  if (error) return ErrnoStatus(error.value(), "cannot read " + directory.string());
  return Status::Ok();
}

Status MakeSource(const std::string& path, const std::optional<ContainerUser>& owner) {
  std::error_code error;
  if (fs::exists(path, error)) return Status::Ok();
  const Status made = MakeDirectories(path);
  if (made.ok()) return owner ? Give(path, *owner) : Status::Ok();
  return Status(made.code(), "outputs: the directory " + path +
                                 " is not on this machine and cannot be made (" + made.message() +
                                 "), and what a container writes to its own is lost with it; make "
                                 "it, or name a directory that you may write");
}

}  // namespace

std::optional<ContainerUser> ParseUser(const std::string& text) {
  const size_t colon = text.find(':');
  ContainerUser user;
  if (!ToNumber(std::string_view(text).substr(0, colon), &user.uid)) return std::nullopt;
  user.gid = user.uid;
  if (colon != std::string::npos && !ToNumber(std::string_view(text).substr(colon + 1), &user.gid))
    return std::nullopt;
  return user;
}

Status PrepareHostFiles(const DesiredJob& job) {
  const std::optional<ContainerUser> named = ParseUser(job.container.user);
  const bool other = named && named->uid != ::geteuid();
  const bool root = ::geteuid() == 0;
  // A rootless daemon maps root in containers to its own user.
  if (other && !root && named->uid != 0) {
    return InvalidArgument("container.user: got " + job.container.user +
                           ", but the job's directory " + job.job_dir + " is of user " +
                           std::to_string(::geteuid()) +
                           ", and only root can let another user read it; leave it out, or run "
                           "shoal as that user or as root");
  }
  const std::optional<ContainerUser> owner = other && root ? named : std::nullopt;
  for (const Mount& mount : job.container.mounts) {
    if (mount.make_source) TRY(MakeSource(mount.source, owner));
  }
  return owner ? GiveTree(job.job_dir, *owner) : Status::Ok();
}

}  // namespace shoal::engine::docker
