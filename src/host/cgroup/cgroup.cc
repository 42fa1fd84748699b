// Control groups of tasks. See cgroup.h; kernel documentation: cgroup-v2.rst and
// cgroup-v1/{memory,freezer-subsystem}.rst.
#include "host/cgroup/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>
#include <thread>

namespace shoal::host {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr const char* kOurs = "shoal";
constexpr size_t kSmallFile = 1 << 20;
constexpr int64_t kPeriodUs = 100'000;
constexpr int64_t kLeastQuotaUs = 1'000;  // the kernel's minimum

std::string SafeName(std::string_view name) {
  std::string safe(name);
  for (char& c : safe) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
    if (!fine) c = '_';
  }
  if (safe.empty() || safe[0] == '.') safe.insert(0, "_");
  return safe.substr(0, 200);
}

// Control group files need a single write without truncation.
Status WriteValue(const fs::path& path, const std::string& value) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot open " + path.string());
  if (::write(fd.get(), value.data(), value.size()) < 0)
    return ErrnoStatus(errno, "cannot write " + value + " to " + path.string());
  return Status::Ok();
}

// The number alone in a file, or after a key ("oom_kill 2"). 0 if there is none.
int64_t ReadNumber(const fs::path& path, std::string_view key = "") {
  const std::string text = ReadFile(path, kSmallFile).value_or("");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::string_view rest = line;
    if (!key.empty()) {
      if (!rest.starts_with(key) || rest.size() <= key.size() || rest[key.size()] != ' ') continue;
      rest.remove_prefix(key.size() + 1);
    }
    int64_t value = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), value);
    return value;
  }
  return 0;
}

std::vector<int> ReadPids(const fs::path& group) {
  std::istringstream text(ReadFile(group / "cgroup.procs", kSmallFile).value_or(""));
  std::vector<int> pids;
  for (int pid = 0; text >> pid;) {
    if (pid > 0) pids.push_back(pid);  // 0: a process outside our PID namespace
  }
  return pids;
}

bool Exists(const fs::path& path) { return ::access(path.c_str(), F_OK) == 0; }

// Version 2 signals by POLLPRI on cgroup.events that the group became empty.
Status WaitEmpty(const fs::path& group, SteadyClock::time_point deadline) {
  UniqueFd events(::open((group / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  while (!ReadPids(group).empty()) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - SteadyClock::now());
    if (left.count() <= 0) {
      return DeadlineExceeded("processes in the control group " + group.string() +
                              " do not end though they were killed; they hang in the kernel");
    }
    pollfd waiting{events.get(), POLLPRI, 0};
    const int step = events.valid() ? static_cast<int>(std::min<int64_t>(left.count(), 20)) : 1;
    ::poll(&waiting, events.valid() ? 1 : 0, step);
  }
  return Status::Ok();
}

void KillEach(const fs::path& group) {
  for (int pid : ReadPids(group)) ::kill(pid, SIGKILL);
}

// Creates the group in one hierarchy.
Status KillGroup(const fs::path& group, SteadyClock::time_point deadline) {
  if (Exists(group / "cgroup.kill")) {
    TRY(WriteValue(group / "cgroup.kill", "1"));
    return WaitEmpty(group, deadline);
  }
  const bool freezable = Exists(group / "freezer.state");
  while (!ReadPids(group).empty()) {
    // Frozen processes cannot fork while the list is read; they are killed when thawed.
    if (freezable) (void)WriteValue(group / "freezer.state", "FROZEN");
    KillEach(group);
    if (freezable) (void)WriteValue(group / "freezer.state", "THAWED");
    if (WaitEmpty(group, std::min(deadline, SteadyClock::now() + milliseconds(50))).ok()) break;
    if (SteadyClock::now() >= deadline) return WaitEmpty(group, deadline);
  }
  return Status::Ok();
}

// A process that is just ending keeps its group busy for a moment.
Status RemoveGroup(const fs::path& group, SteadyClock::time_point deadline) {
  while (::rmdir(group.c_str()) != 0) {
    if (errno == ENOENT) return Status::Ok();
    if (errno != EBUSY || SteadyClock::now() >= deadline)
      return ErrnoStatus(errno, "cannot remove the control group " + group.string());
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return Status::Ok();
}

// Another job's end may remove the empty `shoal` between the two calls: retry from the top.
Status MakeGroup(const fs::path& base, const std::string& job, const std::string& task, bool v2) {
  constexpr int kTries = 10;
  const fs::path path = base / kOurs / job / task;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    fs::path at = base;
    int error = 0;
    for (const std::string& part : {std::string(kOurs), job, task}) {
      if (v2) {
        for (const char* name : {"+memory", "+cpu", "+pids"})
          (void)WriteValue(at / "cgroup.subtree_control", name);
      }
      at /= part;
      error = ::mkdir(at.c_str(), 0755) == 0 ? 0 : errno;
      if (error != 0 && error != EEXIST) break;
    }
    if (error == 0) return Status::Ok();
    if (error == EEXIST) {
      const auto deadline = SteadyClock::now() + std::chrono::seconds(5);
      TRY(KillGroup(path, deadline));
      TRY(RemoveGroup(path, deadline));
    } else if (error != ENOENT) {
      return ErrnoStatus(error, "cannot make the control group " + path.string());
    }
  }
  return Aborted("cannot make the control group " + path.string() + ": it keeps being removed");
}

Status LimitMemory(const fs::path& group, bool v2, int64_t bytes) {
  const std::string value = std::to_string(bytes);
  if (v2) {
    (void)WriteValue(group / "memory.oom.group", "1");  // kill all or none of the tree
    (void)WriteValue(group / "memory.swap.max", "0");
    return WriteValue(group / "memory.max", value);
  }
  TRY(WriteValue(group / "memory.limit_in_bytes", value));
  (void)WriteValue(group / "memory.memsw.limit_in_bytes", value);  // absent where swap is not
  return Status::Ok();
}

Status LimitCpu(const fs::path& group, bool v2, double cores) {
  const int64_t quota = std::max(
      kLeastQuotaUs, static_cast<int64_t>(std::llround(cores * static_cast<double>(kPeriodUs))));
  if (v2)
    return WriteValue(group / "cpu.max", std::to_string(quota) + " " + std::to_string(kPeriodUs));
  TRY(WriteValue(group / "cpu.cfs_period_us", std::to_string(kPeriodUs)));
  Status written = WriteValue(group / "cpu.cfs_quota_us", std::to_string(quota));
  // Version 1 rejects a limit above the parent's (version 2 accepts it): the parent's applies.
  if (written.code() == Code::kInvalidArgument) return Status::Ok();
  return written;
}

std::vector<fs::path> Subdirectories(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->is_directory(error)) found.push_back(it->path());
  }
  return found;
}

}  // namespace

Result<Cgroup> Cgroup::Create(const CgroupLayout& layout, std::string_view job,
                              std::string_view task, const CgroupLimits& limits) {
  const std::string job_name = SafeName(job);
  const std::string task_name = SafeName(task);
  const bool v2 = layout.version == CgroupVersion::kV2;
  Cgroup group;
  group.version_ = layout.version;
  const auto make = [&](const fs::path& base, fs::path* out) -> Status {
    if (base.empty()) return Status::Ok();
    *out = base / kOurs / job_name / task_name;
    auto& all = group.directories_;
    if (std::find(all.begin(), all.end(), *out) != all.end()) return Status::Ok();
    TRY(MakeGroup(base, job_name, task_name, v2));
    all.push_back(*out);
    return Status::Ok();
  };
  if (limits.memory_bytes > 0) TRY(make(layout.memory, &group.memory_));
  if (limits.cpu > 0) TRY(make(layout.cpu, &group.cpu_));
  fs::path pids;
  if (limits.pids > 0) TRY(make(layout.pids, &pids));
  TRY(make(layout.unified, &group.unified_));
  TRY(make(layout.freezer, &group.freezer_));
  const char* memory_file = v2 ? "memory.max" : "memory.limit_in_bytes";
  if (!group.memory_.empty() && Exists(group.memory_ / memory_file)) {
    TRY(LimitMemory(group.memory_, v2, limits.memory_bytes));
    group.memory_enforced_ = true;
  }
  if (!group.cpu_.empty() && Exists(group.cpu_ / (v2 ? "cpu.max" : "cpu.cfs_quota_us")))
    TRY(LimitCpu(group.cpu_, v2, limits.cpu));
  if (!pids.empty() && Exists(pids / "pids.max"))
    TRY(WriteValue(pids / "pids.max", std::to_string(limits.pids)));
  return group;
}

Cgroup::Cgroup(Cgroup&& other) noexcept { *this = std::move(other); }

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  if (this == &other) return *this;
  Remove();
  directories_ = std::exchange(other.directories_, {});
  memory_ = std::move(other.memory_);
  cpu_ = std::move(other.cpu_);
  unified_ = std::move(other.unified_);
  freezer_ = std::move(other.freezer_);
  version_ = other.version_;
  memory_enforced_ = other.memory_enforced_;
  return *this;
}

Cgroup::~Cgroup() { Remove(); }

void Cgroup::Remove() {
  if (directories_.empty()) return;
  const auto deadline = SteadyClock::now() + std::chrono::seconds(5);
  for (const fs::path& directory : directories_) {
    if (::rmdir(directory.c_str()) != 0 && errno == EBUSY) {
      (void)KillGroup(directory, deadline);
      (void)RemoveGroup(directory, deadline);
    }
    ::rmdir(directory.parent_path().c_str());  // the job's group, if this was its last task
    ::rmdir(directory.parent_path().parent_path().c_str());
  }
  directories_.clear();
}

Result<std::vector<UniqueFd>> Cgroup::OpenEntries() const {
  std::vector<UniqueFd> entries;
  for (const fs::path& directory : directories_) {
    const bool v2 = version_ == CgroupVersion::kV2 || directory == unified_;
    if (v2) continue;  // through OpenUnified
    TRY_ASSIGN(UniqueFd fd, OpenFile(directory / "tasks", O_WRONLY));
    entries.push_back(std::move(fd));
  }
  return entries;
}

UniqueFd Cgroup::OpenUnified() const {
  if (unified_.empty()) return UniqueFd();
  return UniqueFd(::open(unified_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

int64_t Cgroup::OomKills() const {
  if (memory_.empty()) return 0;
  const bool v2 = version_ == CgroupVersion::kV2;
  return ReadNumber(memory_ / (v2 ? "memory.events" : "memory.oom_control"), "oom_kill");
}

int64_t Cgroup::MemoryPeak() const {
  if (memory_.empty()) return 0;
  const bool v2 = version_ == CgroupVersion::kV2;
  return ReadNumber(memory_ / (v2 ? "memory.peak" : "memory.max_usage_in_bytes"));
}

int64_t Cgroup::MemoryNow() const {
  if (memory_.empty()) return 0;
  const bool v2 = version_ == CgroupVersion::kV2;
  return ReadNumber(memory_ / (v2 ? "memory.current" : "memory.usage_in_bytes"));
}

double Cgroup::CpuSeconds() const {
  constexpr double kMicro = 1e-6;
  if (version_ != CgroupVersion::kV2 || unified_.empty()) return 0;
  return static_cast<double>(ReadNumber(unified_ / "cpu.stat", "usage_usec")) * kMicro;
}

std::vector<int> Cgroup::Pids() const {
  return directories_.empty() ? std::vector<int>() : ReadPids(directories_.front());
}

Status Cgroup::Kill(milliseconds limit) {
  const auto deadline = SteadyClock::now() + limit;
  if (!unified_.empty()) return KillGroup(unified_, deadline);
  if (!freezer_.empty()) return KillGroup(freezer_, deadline);
  for (const fs::path& directory : directories_) TRY(KillGroup(directory, deadline));
  return Status::Ok();
}

std::vector<std::string> JobsWithCgroups(const std::vector<fs::path>& bases) {
  std::set<std::string> jobs;
  for (const fs::path& base : bases) {
    for (const fs::path& job : Subdirectories(base / kOurs)) jobs.insert(job.filename().string());
  }
  return {jobs.begin(), jobs.end()};
}

std::vector<int> PidsInCgroupsOf(const std::vector<fs::path>& bases, std::string_view job) {
  std::set<int> pids;
  for (const fs::path& base : bases) {
    for (const fs::path& task : Subdirectories(base / kOurs / SafeName(job))) {
      for (int pid : ReadPids(task)) pids.insert(pid);
    }
  }
  return {pids.begin(), pids.end()};
}

Status RemoveCgroupsOf(const std::vector<fs::path>& bases, std::string_view job,
                       milliseconds limit) {
  const auto deadline = SteadyClock::now() + limit;
  Status first;
  for (const fs::path& base : bases) {
    const fs::path directory = base / kOurs / SafeName(job);
    for (const fs::path& task : Subdirectories(directory)) {
      Status status = KillGroup(task, deadline);
      if (status.ok()) status = RemoveGroup(task, deadline);
      if (first.ok()) first = status;
    }
    if (::rmdir(directory.c_str()) == 0) ::rmdir((base / kOurs).c_str());
  }
  return first;
}

}  // namespace shoal::host
