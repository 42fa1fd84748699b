#include "engine/local/job_remains.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "engine/process/task_process.h"
#include "engine/task_kind.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"
#include "host/cgroup/cgroup.h"
#include "host/process/process_usage.h"
#include "host/process/shared_memory.h"

namespace shoal::engine {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// Kills the processes and waits until they are gone or the deadline has passed.
void KillAndWait(const std::vector<pid_t>& pids, SteadyClock::time_point deadline) {
  std::vector<UniqueFd> held;
  for (pid_t pid : pids) {
    UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (fd.valid() && host::KillProcess(pid, 0)) held.push_back(std::move(fd));
  }
  constexpr int kStepMs = 10;  // no process could be killed: pause before the next attempt
  if (held.empty()) ::poll(nullptr, 0, kStepMs);
  for (const UniqueFd& fd : held) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - SteadyClock::now());
    pollfd waiting{fd.get(), POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
  }
}

}  // namespace

Status RemoveJobRemains(const std::string& job_id,
                        const std::vector<std::filesystem::path>& group_bases, milliseconds limit) {
  const auto deadline = SteadyClock::now() + limit;
  TRY(host::RemoveCgroupsOf(group_bases, job_id, limit));
  for (;;) {
    // Search again each time: a killed process may just have started another one.
    const std::vector<pid_t> pids = host::ProcessesWithVariable(kJobVariable, job_id);
    if (pids.empty()) {
      (void)host::FindOrphanedSharedMemory(true);  // left by killed launchers
      return host::RemoveCgroupsOf(group_bases, job_id, limit);
    }
    if (SteadyClock::now() >= deadline) {
      return DeadlineExceeded("process " + std::to_string(pids.front()) + " of job " + job_id +
                              " does not end though it was killed: it belongs to another user, or "
                              "hangs in the kernel (ps -o stat,wchan " +
                              std::to_string(pids.front()) + ")");
    }
    KillAndWait(pids, deadline);
  }
}

std::vector<JobRemains> FindJobRemains(const std::vector<std::filesystem::path>& group_bases) {
  std::map<std::string, JobRemains> jobs;
  for (const std::string& job : host::JobsWithCgroups(group_bases)) jobs[job].groups = true;
  for (const host::ProcessStat& process : host::ListProcesses()) {
    if (process.state == 'Z' || process.state == 'X' || process.pid == ::getpid()) continue;
    const std::string id = host::ReadProcessVariable(process.pid, kJobVariable).value_or("");
    if (!CheckName("job", id).ok()) continue;
    JobRemains& job = jobs[id];
    job.pids.push_back(process.pid);
    const std::string task = host::ReadProcessVariable(process.pid, kTaskVariable).value_or("");
    job.coordinator = job.coordinator || task.starts_with(std::string(kCoordinatorRole) + "/");
    if (job.job_dir.empty())
      job.job_dir = host::ReadProcessVariable(process.pid, kDirVariable).value_or("");
  }
  std::vector<JobRemains> found;
  for (auto& [id, job] : jobs) {
    job.job_id = id;
    found.push_back(std::move(job));
  }
  return found;
}

bool HasLiveEngine(const std::string& job_dir) {
  const FileAccessAs owner(job_dir);
  auto fd = OpenFile(EngineDir(job_dir) / "lock", O_RDWR);
  return fd.ok() && ::flock(fd->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace shoal::engine
