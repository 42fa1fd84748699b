#include "controller/files/job_user.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/file.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kPass = S_IXGRP | S_IXOTH;

Status LetPass(const fs::path& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return ErrnoStatus(errno, directory.string());
  if ((info.st_mode & kPass) == kPass || ::chmod(directory.c_str(), info.st_mode | kPass) == 0)
    return Status::Ok();
  return ErrnoStatus(errno, "cannot let users pass " + directory.string());
}

// Everything in a directory that only root can enter yet, such as one that a backup restored.
Status GiveContents(const fs::path& directory, const UserIds& user) {
  std::error_code error;
  fs::recursive_directory_iterator at(directory, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (::lchown(at->path().c_str(), user.uid, user.gid) != 0)
      return ErrnoStatus(errno, "cannot give " + at->path().string() + " to " + ToText(user));
  }
  if (error) return ErrnoStatus(error.value(), "reading " + directory.string());
  return Status::Ok();
}

}  // namespace

Result<JobLabels> LabelsWithUser(JobLabels labels, const TaskUserSource& source,
                                 const std::string& team, const std::string& engine) {
  labels.erase(kUserLabel);
  if (!source) return labels;
  TRY_ASSIGN(const std::optional<UserIds> user, source(team, engine));
  if (user) labels[kUserLabel] = ToText(*user);
  return labels;
}

Result<std::optional<UserIds>> UserOf(const JobLabels& labels) {
  const auto found = labels.find(kUserLabel);
  if (found == labels.end()) return std::optional<UserIds>();
  const Result<UserIds> user = ParseUserIds(found->second);
  if (!user.ok()) return DataLoss("the record of the job: " + user.status().message());
  return std::optional(*user);
}

Status PrepareJobDir(const StateHome& home, const std::string& id, const JobLabels& labels) {
  TRY_ASSIGN(const std::optional<UserIds> user, UserOf(labels));
  if (!user) return Status::Ok();
  if (::geteuid() != 0)
    return FailedPrecondition("job " + id + " must run as user " + ToText(*user) +
                              ", which only a server that runs as root can do");
  return GiveDirectory(home, home.job_dir(id), *user);
}

Status GiveDirectory(const StateHome& home, const fs::path& dir, const UserIds& user) {
  TRY(MakeDirectories(dir.parent_path(), 0700));
  TRY(LetPass(home.root()));
  TRY(LetPass(dir.parent_path()));
  if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoStatus(errno, dir.string());
  struct stat info {};
  if (::lstat(dir.c_str(), &info) != 0) return ErrnoStatus(errno, dir.string());
  if (!S_ISDIR(info.st_mode)) return FailedPrecondition(dir.string() + " is not a directory");
  if (info.st_uid == user.uid) return Status::Ok();
  if (info.st_uid != 0)
    return FailedPrecondition(dir.string() + " belongs to user " + std::to_string(info.st_uid) +
                              ", got user " + ToText(user));
  if (::chmod(dir.c_str(), 0700) != 0) return ErrnoStatus(errno, dir.string());
  TRY(GiveContents(dir, user));
  if (::chown(dir.c_str(), user.uid, user.gid) != 0)
    return ErrnoStatus(errno, "cannot give " + dir.string() + " to " + ToText(user));
  return Status::Ok();
}

}  // namespace shoal::controller
