#include "engine/tasks/job_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/access/directory_owner.h"
#include "job/execution/job_dir.h"

namespace shoal::engine {

namespace {

std::filesystem::path JobLockPath(const std::string& job_dir) {
  return EngineDir(job_dir) / "lock";
}

}  // namespace

std::filesystem::path EngineDir(const std::string& job_dir) {
  return job::JobDir(job_dir).engine();
}

std::filesystem::path TaskLogPath(const std::string& job_dir, const std::string& role, int index) {
  return EngineDir(job_dir) / (role + "-" + std::to_string(index) + ".log");
}

Result<JobLock> JobLock::Take(const std::string& job_dir) {
  const FileAccessAs owner(job_dir);
  JobLock lock;
  lock.path_ = JobLockPath(job_dir);
  TRY_ASSIGN(lock.file_, OpenFile(lock.path_, O_RDWR | O_CREAT, 0600));
  if (::flock(lock.file_.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "cannot lock " + lock.path_.string());
  lock.file_.Reset();
  return lock;
}

bool JobLock::held() const {
  struct stat ours {};
  struct stat present {};
  return file_.valid() && ::fstat(file_.get(), &ours) == 0 &&
         ::stat(path_.c_str(), &present) == 0 && ours.st_ino == present.st_ino &&
         ours.st_dev == present.st_dev;
}

void JobLock::Remove() const {
  if (held()) ::unlink(path_.c_str());
}

Status BreakJobLock(const std::string& job_dir) {
  const FileAccessAs owner(job_dir);
  const std::filesystem::path path = JobLockPath(job_dir);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  return ErrnoStatus(errno, "cannot remove " + path.string());
}

Result<std::string> ReadTail(const std::filesystem::path& path, size_t limit) {
  auto fd = OpenFile(path, O_RDONLY);
  if (!fd.ok()) {
    if (fd.status().code() == Code::kNotFound) return std::string();
    return fd.status();
  }
  const off_t size = ::lseek(fd->get(), 0, SEEK_END);
  const off_t begin = size > static_cast<off_t>(limit) ? size - static_cast<off_t>(limit) : 0;
  std::string text(static_cast<size_t>(size - begin), '\0');
  const ssize_t got = ::pread(fd->get(), text.data(), text.size(), begin);
  if (got < 0) return ErrnoStatus(errno, "cannot read " + path.string());
  text.resize(static_cast<size_t>(got));
  return text;
}

}  // namespace shoal::engine
