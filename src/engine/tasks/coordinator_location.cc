#include "engine/tasks/coordinator_location.h"

#include <sys/types.h>

#include <csignal>
#include <filesystem>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/json.h"
#include "job/execution/job_dir.h"

namespace shoal::engine {

Result<CoordinatorLocation> ReadCoordinatorLocation(const std::string& job_id,
                                                    const std::string& job_dir) {
  constexpr size_t kMaxFile = 4096;
  const std::filesystem::path path = job::JobDir(job_dir).coordinator();
  const FileAccessAs owner(job_dir);
  auto text = ReadFile(path, kMaxFile);
  if (!text.ok()) {
    if (text.status().code() != Code::kNotFound) return text.status();
    return Unavailable("the coordinator of job " + job_id + " does not listen yet");
  }
  TRY_ASSIGN(const json::object object, ParseJsonObject(*text));
  TRY_ASSIGN(const std::string host, GetString(object, "host"));
  TRY_ASSIGN(const int64_t port, GetInt(object, "port"));
  TRY_ASSIGN(const int64_t pid, GetInt(object, "pid"));
  if (port <= 0 || port > UINT16_MAX || pid <= 0 || pid > INT32_MAX)
    return DataLoss(path.string() + ": port or pid is out of range");
  return CoordinatorLocation{{host, static_cast<uint16_t>(port)}, pid};
}

void ContinueCoordinator(const Engine& engine, const std::string& job_id,
                         const std::string& job_dir) {
  if (!engine.UsesPids()) return;
  const auto place = ReadCoordinatorLocation(job_id, job_dir);
  if (place.ok() && place->pid > 1) (void)::kill(static_cast<pid_t>(place->pid), SIGCONT);
}

}  // namespace shoal::engine
