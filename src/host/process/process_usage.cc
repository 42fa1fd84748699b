// Parsers of /proc without needless allocations. See process_usage.h.
#include "host/process/process_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/file.h"

namespace shoal::host {
namespace {

constexpr size_t kEnvironLimit = 4 << 20;  // ARG_MAX is 2 MiB by default; /proc gives at most that

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

// The pid in a /proc entry's name; 0 if it is another entry.
pid_t PidOf(const char* name) {
  pid_t pid = 0;
  const char* end = name + std::strlen(name);
  auto [rest, error] = std::from_chars(name, end, pid);
  return error == std::errc() && rest == end ? pid : 0;
}

std::string ProcPath(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// Splits off the next field of a space-separated line.
std::string_view NextField(std::string_view* rest) {
  size_t end = rest->find(' ');
  std::string_view field = rest->substr(0, end);
  rest->remove_prefix(end == std::string_view::npos ? rest->size() : end + 1);
  return field;
}

uint64_t Number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// proc(5): the name in parentheses may itself hold spaces and parentheses, so look for the last
// one. Fields are numbered as there, from 1.
Result<ProcessStat> ParseStat(pid_t pid, std::string_view text) {
  size_t close = text.rfind(')');
  if (close == std::string_view::npos || close + 2 > text.size())
    return DataLoss("/proc/" + std::to_string(pid) + "/stat has no program name");
  std::string_view rest = text.substr(close + 2);
  static const double kTick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  ProcessStat stat;
  stat.pid = pid;
  uint64_t ticks = 0;
  for (int field = 3; field <= 22; ++field) {
    std::string_view value = NextField(&rest);
    if (field == 3 && !value.empty()) stat.state = value[0];
    if (field == 4) stat.parent = static_cast<pid_t>(Number(value));
    if (field >= 14 && field <= 17) ticks += Number(value);  // utime stime cutime cstime
    if (field == 22) stat.start_ticks = Number(value);
  }
  stat.cpu_seconds = static_cast<double>(ticks) * kTick;
  const size_t last = text.find_last_of(' ');  // field 52
  stat.exit_status = static_cast<int>(Number(text.substr(last + 1)));
  return stat;
}

}  // namespace

Result<ProcessStat> ReadProcessStat(pid_t pid) {
  char text[1024];
  UniqueFd fd(::open(ProcPath(pid, "stat").c_str(), O_RDONLY | O_CLOEXEC));
  ssize_t size = fd.valid() ? ::read(fd.get(), text, sizeof text) : -1;
  if (size <= 0) return NotFound("there is no process " + std::to_string(pid));
  return ParseStat(pid, std::string_view(text, static_cast<size_t>(size)));
}

// The owner of /proc/PID is root where the process is not dumpable, so the file tells it.
Result<uid_t> UserOfProcess(pid_t pid) {
  constexpr size_t kMost = 16384;
  const Result<std::string> text = ReadFile(ProcPath(pid, "status"), kMost);
  const size_t at = text.ok() ? text->find("\nUid:\t") : std::string::npos;
  unsigned real = 0;
  unsigned effective = 0;
  unsigned saved = 0;
  if (at == std::string::npos ||
      std::sscanf(text->c_str() + at, " Uid: %u %u %u", &real, &effective, &saved) != 3)
    return NotFound("there is no process " + std::to_string(pid));
  if (real == effective && real == saved) return uid_t{real};
  return PermissionDenied("process " + std::to_string(pid) + " has several users");
}

std::vector<ProcessStat> ListProcesses() {
  std::vector<ProcessStat> processes;
  std::unique_ptr<DIR, CloseDir> proc(::opendir("/proc"));
  if (!proc) return processes;
  while (dirent* entry = ::readdir(proc.get())) {
    pid_t pid = PidOf(entry->d_name);
    if (pid == 0) continue;
    if (auto stat = ReadProcessStat(pid); stat.ok()) processes.push_back(*stat);
  }
  return processes;
}

namespace {

// Appends the children that the process's threads have started and, for its main thread, adopted.
// False if the process is gone, or the kernel was built without CONFIG_PROC_CHILDREN.
bool AppendChildren(pid_t pid, std::vector<pid_t>* children) {
  const std::string tasks = ProcPath(pid, "task");
  std::unique_ptr<DIR, CloseDir> threads(::opendir(tasks.c_str()));
  if (!threads) return false;
  bool readable = false;
  while (dirent* entry = ::readdir(threads.get())) {
    if (PidOf(entry->d_name) == 0) continue;
    const std::string name = std::string(entry->d_name) + "/children";
    UniqueFd fd(::openat(::dirfd(threads.get()), name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) continue;
    readable = true;
    std::string text;
    char part[4096];
    for (ssize_t size = 0; (size = ::read(fd.get(), part, sizeof part)) > 0;)
      text.append(part, static_cast<size_t>(size));
    for (std::string_view rest = text; !rest.empty();) {
      const auto child = static_cast<pid_t>(Number(NextField(&rest)));
      if (child > 0) children->push_back(child);
    }
  }
  return readable;
}

std::vector<pid_t> DescendantsByParents(pid_t root) {
  std::unordered_multimap<pid_t, const ProcessStat*> children;
  std::vector<ProcessStat> all = ListProcesses();
  for (const ProcessStat& process : all) children.emplace(process.parent, &process);
  std::vector<pid_t> found{root};
  for (size_t next = 0; next < found.size() && found.size() <= all.size(); ++next) {
    auto [begin, end] = children.equal_range(found[next]);
    for (auto it = begin; it != end; ++it) found.push_back(it->second->pid);
  }
  found.erase(found.begin());
  std::unordered_map<pid_t, char> state;
  for (const ProcessStat& process : all) state.emplace(process.pid, process.state);
  std::erase_if(found, [&](pid_t pid) { return state[pid] == 'Z' || state[pid] == 'X'; });
  return found;
}

}  // namespace

std::vector<pid_t> Descendants(pid_t root) {
  std::vector<pid_t> found;
  if (!AppendChildren(root, &found))
    return ReadProcessStat(root).ok() ? DescendantsByParents(root) : found;
  std::vector<pid_t> running;
  std::unordered_set<pid_t> seen{root};  // a pid may be reused between two reads
  for (size_t next = 0; next < found.size(); ++next) {
    const pid_t pid = found[next];
    if (!seen.insert(pid).second) continue;
    const auto stat = ReadProcessStat(pid);
    if (!stat.ok()) continue;
    if (stat->state != 'Z' && stat->state != 'X') running.push_back(pid);
    AppendChildren(pid, &found);  // other threads of a zombie may still run
  }
  return running;
}

Usage UsageOf(const std::vector<pid_t>& pids) {
  static const int64_t kPage = ::sysconf(_SC_PAGESIZE);
  Usage sum;
  for (pid_t pid : pids) {
    auto stat = ReadProcessStat(pid);
    if (!stat.ok()) continue;
    char text[256];
    UniqueFd fd(::open(ProcPath(pid, "statm").c_str(), O_RDONLY | O_CLOEXEC));
    ssize_t size = fd.valid() ? ::read(fd.get(), text, sizeof text) : -1;
    if (size <= 0) continue;
    std::string_view rest(text, static_cast<size_t>(size));
    NextField(&rest);
    int64_t resident = static_cast<int64_t>(Number(NextField(&rest)));
    int64_t shared = static_cast<int64_t>(Number(NextField(&rest)));
    sum.memory_bytes += resident * kPage;
    sum.private_bytes += (resident - shared) * kPage;
    sum.cpu_seconds += stat->cpu_seconds;
    ++sum.processes;
  }
  return sum;
}

bool IsAlive(pid_t pid, uint64_t start_ticks) {
  if (pid <= 0) return false;
  auto stat = ReadProcessStat(pid);
  if (!stat.ok() || stat->state == 'Z' || stat->state == 'X') return false;
  return start_ticks == 0 || stat->start_ticks == start_ticks;
}

Result<std::string> ReadProcessVariable(pid_t pid, const std::string& name) {
  TRY_ASSIGN(std::string environment, ReadFile(ProcPath(pid, "environ"), kEnvironLimit));
  std::string_view rest = environment;
  const std::string prefix = name + "=";
  while (!rest.empty()) {
    size_t end = rest.find('\0');
    std::string_view entry = rest.substr(0, end);
    if (entry.starts_with(prefix)) return std::string(entry.substr(prefix.size()));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return NotFound("process " + std::to_string(pid) + " has no " + name);
}

namespace {

// Between exec and the first instruction a process has no visible environment: such are read again.
bool ShowsNothingYet(const ProcessStat& process) {
  constexpr pid_t kKernelThreads = 2;
  if (process.pid == kKernelThreads || process.parent == kKernelThreads) return false;
  auto text = ReadFile(ProcPath(process.pid, "environ"), kEnvironLimit);
  return text.ok() && text->empty();
}

}  // namespace

std::vector<pid_t> ProcessesWithVariable(const std::string& name, const std::string& value) {
  std::vector<pid_t> ours{::getpid()};
  for (pid_t pid = ::getppid(); pid > 1;) {
    ours.push_back(pid);
    auto stat = ReadProcessStat(pid);
    pid = stat.ok() ? stat->parent : 0;
  }
  std::vector<pid_t> found;
  std::vector<pid_t> again;
  const auto look = [&](pid_t pid) {
    auto set = ReadProcessVariable(pid, name);
    if (set.ok() && *set == value) found.push_back(pid);
    return set.ok();
  };
  for (const ProcessStat& process : ListProcesses()) {
    if (process.state == 'Z' || process.state == 'X') continue;
    if (std::find(ours.begin(), ours.end(), process.pid) != ours.end()) continue;
    if (!look(process.pid) && ShowsNothingYet(process)) again.push_back(process.pid);
  }
  constexpr useconds_t kExecTakes = 1000;
  if (!again.empty()) ::usleep(kExecTakes);
  for (pid_t pid : again) look(pid);
  return found;
}

bool KillProcess(pid_t pid, uint64_t start_ticks) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid() || !IsAlive(pid, start_ticks)) return false;
  return ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0) == 0;
}

}  // namespace shoal::host
