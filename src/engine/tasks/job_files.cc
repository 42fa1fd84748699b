#include "engine/tasks/job_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "job/execution/job_dir.h"

namespace shoal::engine {

std::filesystem::path EngineDir(const std::string& job_dir) {
  return job::JobDir(job_dir).engine();
}

std::filesystem::path TaskLogPath(const std::string& job_dir, const std::string& role, int index) {
  return EngineDir(job_dir) / (role + "-" + std::to_string(index) + ".log");
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
