#include "controller/files/cleanup_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/access/directory_owner.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {

UniqueFd AcquireCleanupLock(const std::filesystem::path& job_dir) {
  const FileAccessAs owner(job_dir);
  Result<UniqueFd> file = OpenFile(job::JobDir(job_dir).cleanup_lock(), O_RDWR | O_CREAT);
  if (!file.ok() || ::flock(file->get(), LOCK_EX | LOCK_NB) != 0) return {};
  return std::move(*file);
}

void ReleaseCleanupLock(const std::filesystem::path& job_dir, UniqueFd lock) {
  if (!lock.valid()) return;
  const FileAccessAs owner(job_dir);
  std::error_code ignored;  // the directory may be gone
  std::filesystem::remove(job::JobDir(job_dir).cleanup_lock(), ignored);
}

bool IsCleanupRunning(const std::filesystem::path& job_dir) {
  const FileAccessAs owner(job_dir);
  const Result<UniqueFd> file = OpenFile(job::JobDir(job_dir).cleanup_lock(), O_RDWR);
  return file.ok() && ::flock(file->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace shoal::controller
