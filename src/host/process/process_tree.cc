// The launcher's side of a process tree. See process_tree.h; the other side is tree_init.cc.
#include "host/process/process_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/log.h"
#include "base/mutex.h"
#include "host/cgroup/container_cgroup.h"
#include "host/process/shared_memory.h"
#include "host/process/tree_init.h"

namespace shoal::host {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// Prevents this process's signal handlers from running in the child before it is init.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

bool IsExecutableFile(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string_view PathOf(const std::vector<std::string>& env) {
  for (const std::string& entry : env) {
    if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
  }
  return kDefaultPath;
}

// A path relative to the program's working directory, which differs from this process's.
std::string Resolve(const std::string& path, const std::string& work_dir) {
  return path.starts_with('/') || work_dir.empty() ? path : work_dir + "/" + path;
}

Result<std::string> FindProgram(const ProcessSpec& spec) {
  const std::string& name = spec.argv[0];
  if (name.find('/') != std::string::npos) {
    const std::string path = Resolve(name, spec.work_dir);
    if (::access(path.c_str(), F_OK) != 0) {
      return NotFound("cannot start " + name + ": there is no such file" +
                      (path == name ? "" : " (looked for " + path + ")") +
                      "; correct the task's `command`");
    }
    if (!IsExecutableFile(path)) {
      return PermissionDenied("cannot start " + name +
                              ": it is not an executable file; try `chmod +x`, or put its "
                              "interpreter before it in the task's `command`");
    }
    return path;
  }
  std::string_view rest = PathOf(spec.env);
  const std::string path_text(rest);
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const std::string directory(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    const std::string candidate = Resolve(directory.empty() ? "." : directory, spec.work_dir);
    if (IsExecutableFile(candidate + "/" + name)) return candidate + "/" + name;
  }
  return NotFound("cannot start " + name + ": no such program in PATH (" + path_text +
                  "); install it, or give its path in the task's `command`");
}

Status Check(const ProcessSpec& spec) {
  if (spec.additional.size() >= kMostProcesses) {
    return InvalidArgument("a task may have " + std::to_string(kMostProcesses) +
                           " processes: got " + std::to_string(spec.additional.size() + 1));
  }
  if (spec.argv.empty() || spec.argv[0].empty())
    return InvalidArgument("a task needs a command: got an empty one");
  if (spec.inherited.size() + 3 > kHighestInheritedFd)
    return InvalidArgument("a task cannot inherit more than 250 descriptors");
  for (const InheritedFd& fd : spec.inherited) {
    if (fd.fd < 0 || fd.as < 3 || fd.as > kHighestInheritedFd)
      return InvalidArgument("an inherited descriptor needs a number from 3 to 255: got " +
                             std::to_string(fd.as));
  }
  struct stat info {};
  if (!spec.work_dir.empty() && (::stat(spec.work_dir.c_str(), &info) != 0)) {
    return ErrnoStatus(errno,
                       "cannot start " + spec.argv[0] + " in the directory " + spec.work_dir);
  }
  return Status::Ok();
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Status StartError(StartStep step, int error, const ProcessSpec& spec) {
  const std::string program = "cannot start " + spec.argv[0];
  switch (step) {
    case StartStep::kUserMap:
    case StartStep::kMountProc:
      return PermissionDenied(program +
                              " in namespaces of its own: " + std::string(::strerror(error)) +
                              "; choose another isolation (shoal doctor shows what works here)");
    case StartStep::kEnterGroup:
      return ErrnoStatus(error, program + ": it may not enter its control group");
    case StartStep::kDirectory:
      return ErrnoStatus(error, program + " in the directory " + spec.work_dir);
    case StartStep::kDescriptors:
      return ErrnoStatus(error, program + ": too few file descriptors");
    case StartStep::kExec:
      if (error == ENOEXEC) {
        return InvalidArgument(program +
                               ": it is neither a binary for this machine nor a script with an "
                               "interpreter in its first line (#!)");
      }
      if (error == ENOENT) {
        return NotFound(program +
                        ": its interpreter (first line, or the loader of another system) does "
                        "not exist");
      }
      if (error == E2BIG) {
        return InvalidArgument(program +
                               ": its arguments and environment are too long for the kernel "
                               "(128 KiB for one, about 2 MiB for all)");
      }
      return ErrnoStatus(error, program);
    case StartStep::kNone:
    case StartStep::kFork:
      break;
  }
  return ErrnoStatus(error, program + ": no new process could be made");
}

// Everything that InitPlan points to.
struct Plan {
  std::string program;
  std::string work_dir;
  std::string uid_map;
  std::string gid_map;
  std::string shared_memory;
  std::string last_pid;
  std::vector<char*> argv;
  std::vector<std::vector<char*>> envs;
  std::vector<std::vector<PlannedFd>> fds;
  std::vector<PlannedProcess> processes;
  std::vector<UniqueFd> entries;
  std::vector<int> entry_numbers;
  UniqueFd unified;
  UniqueFd null;
  InitPlan init;
};

std::string IdentityMap(unsigned id) {
  return std::to_string(id) + " " + std::to_string(id) + " 1\n";
}

// The settings of each process: its environment and its outputs.
void PlanProcesses(const ProcessSpec& spec, Plan* plan) {
  const int null = plan->null.get();
  const auto add = [&](const std::vector<std::string>& env, int out, int err) {
    plan->envs.push_back(Pointers(env));
    plan->fds.push_back({{null, 0}, {out < 0 ? null : out, 1}, {err < 0 ? null : err, 2}});
    for (const InheritedFd& fd : spec.inherited) plan->fds.back().push_back({fd.fd, fd.as});
  };
  add(spec.env, spec.stdout_fd, spec.stderr_fd);
  for (const AdditionalProcess& one : spec.additional) add(one.env, one.stdout_fd, one.stderr_fd);
  for (size_t i = 0; i < plan->envs.size(); ++i) {
    plan->processes.push_back({plan->envs[i].data(), plan->fds[i].data()});
  }
  plan->init.fd_count = plan->fds[0].size();
}

// Since Linux 4.17 pids in /proc/sysvipc are relative to the reader's namespace; before, segments
// of other trees cannot be distinguished.
bool TellsCreatorsApart() {
  static const bool tells = [] {
    utsname name{};
    int major = 0;
    int minor = 0;
    if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2)
      return false;
    return major > 4 || (major == 4 && minor >= 17);
  }();
  return tells;
}

// UCX's shared memory looks up its peer's pid in its own namespace and drops the connection if
// there is no such process. With UCX_TLS set, and for MPI ranks (MPICH uses UCX), all trees
// therefore start from the same pid.
bool CountsAsItsPeers(const ProcessSpec& spec) {
  return std::any_of(spec.env.begin(), spec.env.end(), [](std::string_view variable) {
    return variable.starts_with("UCX_TLS=") || variable.starts_with("SHOAL_MPI_HOST=");
  });
}

// Effects of separate namespaces other than on processes.
void PlanNamespaces(const ProcessSpec& spec, const JobSharedMemory& shared_memory, Plan* plan) {
  InitPlan& init = plan->init;
  if (!init.new_pids) return;
  plan->shared_memory = shared_memory.path();
  if (!plan->shared_memory.empty()) init.shared_memory = plan->shared_memory.c_str();
  if (const int first = FirstProcessNumber(); first > 0 && !CountsAsItsPeers(spec)) {
    plan->last_pid = std::to_string(first);
    init.last_pid = plan->last_pid.c_str();
  }
  init.removes_shared_memory = TellsCreatorsApart();
}

// None if the program needs the machine's, or none can be created.
JobSharedMemory OpenSharedMemory(const ProcessSpec& spec, TreeMode mode) {
  if (mode == TreeMode::kGuard || NeedsHostSharedMemory(spec.argv, spec.env, spec.work_dir))
    return {};
  auto memory = JobSharedMemory::Open(spec.job_id);
  if (memory.ok()) return std::move(*memory);
  LogInfo("{}: its programs see the machine's {}: {}", spec.name, kSharedMemoryRoot,
          memory.status().message());
  return {};
}

Status MakePlan(const ProcessSpec& spec, TreeMode mode, const Cgroup& group, Plan* plan) {
  TRY_ASSIGN(plan->program, FindProgram(spec));
  TRY_ASSIGN(plan->null, OpenFile("/dev/null", O_RDWR));
  plan->argv = Pointers(spec.argv);
  PlanProcesses(spec, plan);
  if (group.exists()) {
    TRY_ASSIGN(plan->entries, group.OpenEntries());
    for (const UniqueFd& fd : plan->entries) plan->entry_numbers.push_back(fd.get());
    plan->unified = group.OpenUnified();
  }
  InitPlan& init = plan->init;
  init.new_pids = mode != TreeMode::kGuard;
  if (mode == TreeMode::kUserNamespace) {
    plan->uid_map = IdentityMap(::geteuid());
    plan->gid_map = IdentityMap(::getegid());
    init.uid_map = plan->uid_map.c_str();
    init.gid_map = plan->gid_map.c_str();
  }
  // A parent-death signal is sent when the cloning thread ends; only the main thread is sure to
  // stay.
  init.die_with_thread = ::getpid() == static_cast<pid_t>(::syscall(SYS_gettid));
  plan->work_dir = spec.work_dir;
  init.program = plan->program.c_str();
  init.argv = plan->argv.data();
  init.processes = plan->processes.data();
  init.process_count = plan->processes.size();
  init.grace_ms = spec.grace.count();
  init.work_dir = plan->work_dir.empty() ? nullptr : plan->work_dir.c_str();
  init.group_entries = plan->entry_numbers.data();
  init.group_entry_count = plan->entry_numbers.size();
  init.unified_group = plan->unified.get();
  return Status::Ok();
}

// The next packet, with its sender's pid in this namespace. False at the end of the tree.
bool Receive(int control, InitMessage* message, pid_t* sender) {
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(ucred))];
  iovec part{message, sizeof *message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = space;
  header.msg_controllen = sizeof space;
  ssize_t size = 0;
  do {
    size = ::recvmsg(control, &header, MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size != static_cast<ssize_t>(sizeof *message)) return false;
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&header); part_of != nullptr;
       part_of = CMSG_NXTHDR(&header, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_CREDENTIALS) continue;
    ucred credentials;
    std::memcpy(&credentials, CMSG_DATA(part_of), sizeof credentials);
    *sender = credentials.pid;
  }
  return true;
}

}  // namespace

struct ProcessTree::State {
  // constant after construction
  TreeMode mode = TreeMode::kGuard;
  job::Resources resources;
  pid_t init = -1;
  pid_t program = 0;
  std::vector<pid_t> programs;  // all of them
  UniqueFd init_pidfd;
  UniqueFd control;
  Cgroup group;
  JobSharedMemory shared_memory;
  int64_t own_oom_kills = 0;  // of the surrounding group, before the start

  std::atomic<bool> ended{false};
  std::atomic<bool> over_watched_limit{false};
  std::atomic<int64_t> highest_sample{0};  // bytes
  Mutex mu;
  std::optional<ProcessExit> exit GUARDED_BY(mu);
  bool reaped = false;  // by Wait and the destructor, which hold mu

  void KillInit() const {
    (void)::syscall(SYS_pidfd_send_signal, init_pidfd.get(), SIGKILL, nullptr, 0);
  }
  // Collects init. False if it has not ended within `timeout`.
  bool Reap(milliseconds timeout, rusage* usage);
  ProcessExit Judge(int wait_status, int process, double cpu_seconds, int64_t max_rss_kib);
  ProcessExit CollectEnd();
};

bool ProcessTree::State::Reap(milliseconds timeout, rusage* usage) {
  pollfd waiting{init_pidfd.get(), POLLIN, 0};
  const auto deadline = SteadyClock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - SteadyClock::now());
    const int got = ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (got > 0) break;
    if (got == 0 || errno != EINTR) return false;
  }
  int status = 0;
  while (::wait4(init, &status, __WALL, usage) < 0 && errno == EINTR) {
  }
  reaped = true;
  return true;
}

ProcessExit ProcessTree::State::Judge(int wait_status, int process, double cpu_seconds,
                                      int64_t max_rss_kib) {
  constexpr int64_t kKibi = 1024;
  ProcessExit end;
  end.process = process;
  if (WIFSIGNALED(wait_status)) {
    end.signal = WTERMSIG(wait_status);
  } else {
    end.exit_code = WEXITSTATUS(wait_status);
  }
  end.cpu_seconds = cpu_seconds;
  end.peak_memory_bytes = group.exists() ? group.MemoryPeak() : 0;
  if (end.peak_memory_bytes == 0)
    end.peak_memory_bytes = std::max(max_rss_kib * kKibi, highest_sample.load());
  end.out_of_memory = !end.ok() && (group.OomKills() > 0 || TaskCgroupOomKills() > own_oom_kills ||
                                    over_watched_limit.load());
  return end;
}

// Called when the control socket is readable: init's report, or end of file if it was killed.
ProcessExit ProcessTree::State::CollectEnd() {
  constexpr double kMicro = 1e-6;
  InitMessage message;
  pid_t sender = 0;
  while (Receive(control.get(), &message, &sender)) {
    if (message.kind == InitMessage::kEnded) {
      ProcessExit end = Judge(message.a, message.b, static_cast<double>(message.cpu_us) * kMicro,
                              message.max_rss_kib);
      end.signaled_externally = message.c != 0;
      return end;
    }
  }
  rusage usage{};
  KillInit();
  if (mode == TreeMode::kGuard) {  // it was killed: end its tree from here
    for (const pid_t one : programs) ::kill(-one, SIGKILL);
    if (group.exists()) (void)group.Kill();
  }
  (void)Reap(std::chrono::seconds(5), &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * kMicro;
  return Judge(SIGKILL, 0, cpu, usage.ru_maxrss);
}

ProcessTree::ProcessTree(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<ProcessTree>> ProcessTree::Start(const ProcessSpec& spec,
                                                        const Isolation& isolation) {
  TRY(Check(spec));
  auto state = std::make_unique<State>();
  state->mode = isolation.tree;
  state->resources = spec.resources;
  state->own_oom_kills = TaskCgroupOomKills();
  const CgroupLimits limits{spec.resources.cpu, spec.resources.memory_bytes, spec.max_processes};
  const bool limited = limits.cpu > 0 || limits.memory_bytes > 0 || limits.pids > 0;
  // A namespace ends by itself; a guard's tree ends faster by cgroup.kill.
  if (isolation.cgroups.any() && (limited || isolation.tree == TreeMode::kGuard)) {
    TRY_ASSIGN(state->group, Cgroup::Create(isolation.cgroups, spec.job_id, spec.name, limits));
  }
  Plan plan;
  TRY(MakePlan(spec, isolation.tree, state->group, &plan));
  state->shared_memory = OpenSharedMemory(spec, isolation.tree);
  PlanNamespaces(spec, state->shared_memory, &plan);
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    return ErrnoStatus(errno, "cannot start " + spec.argv[0]);
  state->control.Reset(sockets[0]);
  UniqueFd theirs(sockets[1]);
  const int on = 1;
  ::setsockopt(sockets[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  plan.init.control = sockets[1];

  const uint64_t flags = NamespaceFlags(isolation.tree != TreeMode::kGuard,
                                        isolation.tree == TreeMode::kUserNamespace);
  int pidfd = -1;
  {
    AllSignalsBlocked blocked;
    state->init = CloneProcess(flags, 0, &pidfd, -1);
    if (state->init == 0) RunInit(plan.init);
  }
  if (state->init < 0) {
    const int error = errno;
    return StartError(error == EPERM ? StartStep::kUserMap : StartStep::kFork, error, spec);
  }
  state->init_pidfd.Reset(pidfd);
  theirs.Reset();
  std::unique_ptr<ProcessTree> tree(new ProcessTree(std::move(state)));
  InitMessage message;
  pid_t sender = 0;
  while (Receive(tree->state_->control.get(), &message, &sender)) {
    if (message.kind == InitMessage::kProgram) {
      if (message.a == 0) tree->state_->program = sender;
      tree->state_->programs.push_back(sender);
    }
    if (message.kind == InitMessage::kStarted) return tree;
    if (message.kind == InitMessage::kStartFailed)
      return StartError(static_cast<StartStep>(message.a), message.b, spec);
  }
  return Unavailable("cannot start " + spec.argv[0] + ": it was killed before it began");
}

ProcessTree::~ProcessTree() {
  State& state = *state_;
  if (!state.ended.load()) KillAll();
  const MutexLock lock(state.mu);
  if (state.reaped) return;
  rusage usage{};
  if (state.mode == TreeMode::kGuard) {
    // Closing the socket makes init kill the remaining processes and exit.
    state.control.Reset();
    if (state.Reap(std::chrono::seconds(5), &usage)) return;
    state.KillInit();
  }
  (void)state.Reap(std::chrono::seconds(5), &usage);
}

pid_t ProcessTree::pid() const { return state_->program; }

int ProcessTree::exit_fd() const { return state_->control.get(); }

std::optional<ProcessExit> ProcessTree::Wait(milliseconds timeout) {
  const MutexLock lock(state_->mu);
  if (state_->exit) return state_->exit;
  const auto deadline = SteadyClock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - SteadyClock::now());
    pollfd waiting{state_->control.get(), POLLIN, 0};
    const int got = ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (got > 0) break;
    if (got == 0 || errno != EINTR) return std::nullopt;
  }
  state_->exit = state_->CollectEnd();
  state_->ended = true;
  return state_->exit;
}

Status ProcessTree::Signal(int signal) {
  InitMessage message;
  message.kind = InitMessage::kSignal;
  message.a = signal;
  if (state_->ended || ::send(state_->control.get(), &message, sizeof message, MSG_NOSIGNAL) < 0) {
    return FailedPrecondition("process " + std::to_string(state_->program) +
                              " has ended and takes no signal");
  }
  return Status::Ok();
}

void ProcessTree::KillAll() {
  if (state_->mode != TreeMode::kGuard) {
    state_->KillInit();  // the kernel then kills the rest, even if init is stopped
    return;
  }
  InitMessage message;
  message.kind = InitMessage::kKill;
  (void)::send(state_->control.get(), &message, sizeof message, MSG_NOSIGNAL);
}

Result<Usage> ProcessTree::Sample() {
  if (state_->ended) return FailedPrecondition("the task has ended");
  Usage usage = UsageOf(Pids());
  // Processes that init reaped are counted in init.
  if (auto init = ReadProcessStat(state_->init); init.ok()) usage.cpu_seconds += init->cpu_seconds;
  if (usage.private_bytes > state_->highest_sample) state_->highest_sample = usage.private_bytes;
  const int64_t limit = state_->resources.memory_bytes;
  if (limit > 0 && !memory_enforced() && usage.private_bytes > limit) {
    state_->over_watched_limit = true;
    KillAll();
  }
  return usage;
}

std::vector<pid_t> ProcessTree::Pids() const {
  std::vector<pid_t> pids = Descendants(state_->init);
  // Orphans adopted by init are siblings of the program and may have smaller pids.
  auto program = std::find(pids.begin(), pids.end(), state_->program);
  if (program != pids.end()) std::rotate(pids.begin(), program, program + 1);
  return pids;
}

bool ProcessTree::memory_enforced() const { return state_->group.memory_enforced(); }

}  // namespace shoal::host
