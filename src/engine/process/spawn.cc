#include "engine/process/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/process/process_usage.h"

#ifndef P_PIDFD
#define P_PIDFD static_cast<idtype_t>(3)
#endif

namespace shoal::engine {
namespace {

// linux/pidfd.h of Linux 6.15; Debian 12's headers are older.
struct PidfdInfo {
  uint64_t mask;
  uint64_t cgroup;
  uint32_t ids[11];
  int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kPidfdInfoExit = 1 << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int SetFiles(const SpawnSpec& spec, posix_spawn_file_actions_t* actions) {
  constexpr int kLogFlags = O_WRONLY | O_CREAT | O_APPEND;
  int error = ::posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  if (error == 0)
    error = ::posix_spawn_file_actions_addopen(actions, 1, spec.log.c_str(), kLogFlags, 0600);
  if (error == 0) error = ::posix_spawn_file_actions_adddup2(actions, 1, 2);
  if (error == 0 && !spec.work_dir.empty())
    error = ::posix_spawn_file_actions_addchdir_np(actions, spec.work_dir.c_str());
  return error;
}

// Gives up root in the child of StartByFork. Plain system calls: after vfork the wrappers of glibc
// would change the parent's threads.
bool BecomeUser(const UserIds& user) {
  return ::syscall(SYS_setgroups, size_t{1}, &user.gid) == 0 &&
         ::syscall(SYS_setresgid, user.gid, user.gid, user.gid) == 0 &&
         ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) == 0 &&
         ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// The first three descriptors of the child of StartByFork.
bool SetStreams(const SpawnSpec& spec) {
  if (spec.fds[0] >= 0)
    return ::dup2(spec.fds[0], 0) == 0 && ::dup2(spec.fds[1], 1) == 1 &&
           ::dup2(spec.fds[2], 2) == 2;
  const int null = ::open("/dev/null", O_RDONLY);
  // It may be a FIFO that another user has put there: only the open must not wait.
  const int log = ::open(spec.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK, 0600);
  if (null < 0 || log < 0 || ::fcntl(log, F_SETFL, O_APPEND) != 0) return false;
  return ::dup2(null, 0) == 0 && ::dup2(log, 1) == 1 && ::dup2(log, 2) == 2;
}

// Runs in the child of StartByFork before exec: async-signal-safe calls only.
void BecomeProgram(const SpawnSpec& spec, char* const* argv, char* const* env, pid_t parent,
                   int report) {
  constexpr int kReport = 3;
  if (spec.ends_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);  // the parent had ended before prctl
  }
  ::setsid();
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const bool ready = (!spec.user || BecomeUser(*spec.user)) && SetStreams(spec) &&
                     (spec.work_dir.empty() || ::chdir(spec.work_dir.c_str()) == 0) &&
                     (report == kReport || ::dup3(report, kReport, O_CLOEXEC) == kReport);
  if (ready) {
    report = kReport;
    ::closefrom(kReport + 1);
    ::execvpe(argv[0], argv, env);
  }
  const int error = errno;
  (void)!::write(report, &error, sizeof error);
  ::_exit(127);
}

// fork and exec with a parent-death signal or another user, which posix_spawn cannot set. Returns 0
// or an errno like posix_spawn.
int StartByFork(const SpawnSpec& spec, pid_t* pid) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
  const UniqueFd read_end(ends[0]);
  UniqueFd report(ends[1]);
  const std::vector<char*> argv = Pointers(spec.argv);
  const std::vector<char*> env = Pointers(spec.env);
  const pid_t parent = ::getpid();
  // No handler of this process may run in the child, which shares its memory after vfork.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  *pid = spec.ends_with_us ? ::fork() : ::vfork();
  if (*pid == 0) BecomeProgram(spec, argv.data(), env.data(), parent, report.get());
  const int no_child = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (*pid < 0) return no_child;
  report.Reset();
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(read_end.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof error) return 0;
  ::waitpid(*pid, nullptr, 0);
  return error;
}

// posix_spawn returns one errno for all of its steps: find out which one failed.
Status Explain(const SpawnSpec& spec, int error) {
  const std::string program = "cannot start " + spec.argv[0];
  struct stat info {};
  const FileAccessAs user(spec.user);
  if (!spec.work_dir.empty() && ::stat(spec.work_dir.c_str(), &info) != 0)
    return ErrnoStatus(errno, program + " in the directory " + spec.work_dir);
  if (spec.user && error == EPERM)
    return PermissionDenied(program + " as user " + ToText(*spec.user) +
                            ": the server may not change its user; run it as root with CAP_SETUID "
                            "and CAP_SETGID");
  if (spec.user && error == EACCES)
    return PermissionDenied(program + " as user " + ToText(*spec.user) +
                            ": that user may not execute it, or not enter the directory " +
                            spec.work_dir + "; permit both, or name another user in the policy");
  if (spec.fds[0] < 0 && (::stat("/dev/null", &info) != 0 || !S_ISCHR(info.st_mode)))
    return FailedPrecondition(program +
                              ": this machine has no /dev/null, from which programs read; as root: "
                              "`mknod -m 666 /dev/null c 1 3`");
  if (spec.fds[0] < 0 && ::access(spec.log.parent_path().c_str(), W_OK) != 0)
    return ErrnoStatus(errno, program + ": its log " + spec.log.string() + " cannot be written");
  if (error == ENOENT) {
    return NotFound(program + ": there is no such program; correct the task's command or PATH");
  }
  if (error == EACCES) {
    return PermissionDenied(program + ": it is not an executable file; try `chmod +x`");
  }
  if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE)
    return Unavailable(program + ": " + ::strerror(error) + " (see ulimit -u and free memory)");
  return ErrnoStatus(error, program);
}

}  // namespace

SessionSpawn::SessionSpawn() {
  ::posix_spawn_file_actions_init(&actions_);
  ::posix_spawnattr_init(&attributes_);
}

SessionSpawn::~SessionSpawn() {
  ::posix_spawn_file_actions_destroy(&actions_);
  ::posix_spawnattr_destroy(&attributes_);
}

int SessionSpawn::Start(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                        pid_t* pid) {
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes_, &none);
  ::posix_spawnattr_setsigdefault(&attributes_, &all);
  ::posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (const int error = ::posix_spawn_file_actions_addclosefrom_np(&actions_, 3); error != 0)
    return error;
  return ::posix_spawnp(pid, argv[0].c_str(), &actions_, &attributes_, Pointers(argv).data(),
                        Pointers(env).data());
}

Result<UniqueFd> WatchChild(pid_t pid, const std::string& program) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd.valid()) return pidfd;
  const int no_pidfd = errno;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return ErrnoStatus(no_pidfd, "cannot watch " + program + " (pidfd_open)");
}

Result<Spawned> Spawn(const SpawnSpec& spec) {
  Spawned spawned;
  int error = 0;
  if (spec.ends_with_us || spec.user) {
    error = StartByFork(spec, &spawned.pid);
  } else {
    SessionSpawn session;
    error = SetFiles(spec, session.actions());
    if (error == 0) error = session.Start(spec.argv, spec.env, &spawned.pid);
  }
  if (error != 0) return Explain(spec, error);
  // An unreaped child keeps its pid, whether it has ended or not.
  TRY_ASSIGN(spawned.pidfd, WatchChild(spawned.pid, spec.argv[0]));
  if (auto stat = host::ReadProcessStat(spawned.pid); stat.ok())
    spawned.start_ticks = stat->start_ticks;
  return spawned;
}

Result<UniqueFd> OpenProcess(pid_t pid, uint64_t start_ticks) {
  if (pid <= 0) return NotFound("no process was recorded");
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  // Checked after the pidfd is open: the pid cannot be reused in between.
  if (!fd.valid() || !host::IsAlive(pid, start_ticks))
    return NotFound("process " + std::to_string(pid) + " is gone");
  return fd;
}

bool ProcessEnded(int pidfd) {
  pollfd ended{pidfd, POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0;
}

bool ReadEnd(int pidfd, pid_t pid, uint64_t start_ticks, int* wait_status) {
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) == 0) {
    if (info.si_pid == 0) return false;
    const bool exited = info.si_code == CLD_EXITED;
    *wait_status = exited ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status);
    return true;
  }
  const auto stat = host::ReadProcessStat(pid);
  if (stat.ok() && stat->start_ticks == start_ticks && stat->state == 'Z') {
    *wait_status = stat->exit_status;
    return true;
  }
  PidfdInfo ended{};
  ended.mask = kPidfdInfoExit;
  *wait_status = -1;
  if (::ioctl(pidfd, kPidfdGetInfo, &ended) != 0) return true;  // not supported by the kernel
  if ((ended.mask & kPidfdInfoExit) == 0) return false;         // not yet reaped by its parent
  *wait_status = ended.exit_code;
  return true;
}

Status SignalProcess(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0) return Status::Ok();
  return ErrnoStatus(errno, "cannot signal a task");
}

}  // namespace shoal::engine
