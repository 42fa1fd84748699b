// The init of a process tree. Only async-signal-safe calls are permitted here, see tree_init.h.
#include "host/process/tree_init.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace shoal::host {
namespace {

constexpr int kControl = 3;  // init's descriptor number after its setup
constexpr int kSignals = 4;
constexpr int kReport = 5;
constexpr int kHigh = kHighestInheritedFd + 1;
constexpr int64_t kPatienceMs = 2'000;  // for processes that hang in the kernel

struct Failure {
  StartStep step;
  int error;
};

int64_t NowMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

size_t Length(const char* text) {
  size_t length = 0;
  while (text[length] != '\0') ++length;
  return length;
}

void Send(int control, const InitMessage& message) {
  while (::send(control, &message, sizeof message, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

bool WriteText(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = ::write(fd, text, Length(text)) == static_cast<ssize_t>(Length(text));
  const int error = errno;
  ::close(fd);
  errno = error;
  return done;
}

// Marks everything from 3 on to be closed at exec.
void CloseAtExec() {
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  constexpr int kEnough = 65'536;  // before Linux 5.11; our own are O_CLOEXEC
  for (int fd = 3; fd < kEnough; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void CloseFrom(int first) {
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
  constexpr int kEnough = 65'536;
  for (int fd = first; fd < kEnough; ++fd) ::close(fd);
}

// ---- the program's side ----

bool EnterGroups(const InitPlan& plan, bool cloned_into_group) {
  for (size_t i = 0; i < plan.group_entry_count; ++i) {
    if (::write(plan.group_entries[i], "0", 1) != 1) return false;
  }
  if (plan.unified_group < 0 || cloned_into_group) return true;
  const int fd = ::openat(plan.unified_group, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  return fd >= 0 && ::write(fd, "0", 1) == 1;
}

// Moves every descriptor to its number and replaces what is open there; moves `report` away first.
// Uses the lowest possible numbers, because the limit of open files may be small.
bool PlaceDescriptors(const InitPlan& plan, const PlannedFd* fds, int* report) {
  int high[kHigh];
  int above = 0;
  for (size_t i = 0; i < plan.fd_count; ++i) above = fds[i].as >= above ? fds[i].as + 1 : above;
  const int moved = ::fcntl(*report, F_DUPFD_CLOEXEC, above);
  if (moved < 0) return false;
  *report = moved;
  for (size_t i = 0; i < plan.fd_count; ++i) {
    high[i] = ::fcntl(fds[i].fd, F_DUPFD_CLOEXEC, above);
    if (high[i] < 0) return false;
  }
  CloseAtExec();
  for (size_t i = 0; i < plan.fd_count; ++i) {
    if (::dup2(high[i], fds[i].as) < 0) return false;
  }
  return true;
}

void ResetSignals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);  // fails for SIGKILL, SIGSTOP and libc's own
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void Fail(int report, StartStep step) {
  const Failure failure{step, errno};
  (void)!::write(report, &failure, sizeof failure);
  ::_exit(127);
}

// How it was started: the guard's pid, and whether it was cloned into its control group.
struct Birth {
  pid_t guard;
  bool in_group;
};

[[noreturn]] void RunProgram(const InitPlan& plan, size_t number, int report, const Birth& birth) {
  const PlannedProcess& process = plan.processes[number];
  ::setpgid(0, 0);
  if (!plan.new_pids) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != birth.guard) ::_exit(127);  // the guard died before the call above
  }
  if (!EnterGroups(plan, birth.in_group)) Fail(report, StartStep::kEnterGroup);
  InitMessage hello;
  hello.kind = InitMessage::kProgram;
  hello.a = static_cast<int32_t>(number);
  Send(plan.control, hello);
  if (plan.work_dir != nullptr && ::chdir(plan.work_dir) != 0) Fail(report, StartStep::kDirectory);
  if (!PlaceDescriptors(plan, process.fds, &report)) Fail(report, StartStep::kDescriptors);
  ResetSignals();
  ::execve(plan.program, plan.argv, process.envp);
  Fail(report, StartStep::kExec);
}

// ---- init's side ----

// "…) S 17 …" of /proc/<pid>/stat: the parent's pid; 0 if it cannot be read.
pid_t ParentOf(const char* pid_name) {
  char path[32] = "/proc/";
  size_t at = 6;
  for (size_t i = 0; pid_name[i] != '\0' && at < 20; ++i) path[at++] = pid_name[i];
  for (const char* c = "/stat"; *c != '\0'; ++c) path[at++] = *c;
  path[at] = '\0';
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[512];
  const ssize_t size = ::read(fd, text, sizeof text);
  ::close(fd);
  ssize_t close = size - 1;
  while (close >= 0 && text[close] != ')') --close;
  pid_t parent = 0;
  for (ssize_t i = close + 4; close >= 0 && i < size && text[i] >= '0' && text[i] <= '9'; ++i)
    parent = parent * 10 + (text[i] - '0');
  return parent;
}

// Sends SIGKILL to all children. This process is a subreaper, so their children become its own, and
// calling this until there are none ends the whole tree, also processes that left their parents.
void KillChildren() {
  struct Entry {  // linux_dirent64
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[1];
  };
  const pid_t self = ::getpid();
  const int proc = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (proc < 0) return;
  alignas(Entry) char block[8192];
  for (;;) {
    const long size = ::syscall(SYS_getdents64, proc, block, sizeof block);
    if (size <= 0) break;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const Entry*>(block + at);
      at += entry->length;
      const char* name = block + at - entry->length + offsetof(Entry, name);
      pid_t pid = 0;
      const char* digit = name;
      for (; *digit >= '0' && *digit <= '9'; ++digit) pid = pid * 10 + (*digit - '0');
      if (*digit == '\0' && pid > 0 && ParentOf(name) == self) ::kill(pid, SIGKILL);
    }
  }
  ::close(proc);
}

// The numbers of a line of /proc/sysvipc/shm, as they come, a byte at a time.
class SegmentReader {
 public:
  // Removes the segment whose line ends here if a visible process created it.
  void Take(char c) {
    if (c == '\n') {
      if (column_ > kCreator && numbers_[kCreator] > 0)
        (void)::shmctl(static_cast<int>(numbers_[kId]), IPC_RMID, nullptr);
      column_ = 0;
      in_number_ = false;
      numbers_[kId] = numbers_[kCreator] = 0;
      return;
    }
    const bool digit = c >= '0' && c <= '9';
    if (c == ' ' || c == '\t') {
      if (in_number_) ++column_;
      in_number_ = false;
    } else {
      in_number_ = true;  // '-' of a key, words of the first line
      if (digit && column_ <= kCreator) numbers_[column_] = numbers_[column_] * 10 + (c - '0');
    }
  }

 private:
  static constexpr size_t kId = 1;  // key, id, mode, size, creator, …
  static constexpr size_t kCreator = 4;
  int64_t numbers_[kCreator + 1] = {};
  size_t column_ = 0;
  bool in_number_ = false;
};

// Creators in another PID namespace are shown as 0.
void RemoveSharedMemory() {
  const int fd = ::open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  SegmentReader reader;
  char block[4096];
  for (ssize_t size = 0; (size = ::read(fd, block, sizeof block)) > 0;) {
    for (ssize_t i = 0; i < size; ++i) reader.Take(block[i]);
  }
  ::close(fd);
}

// State machine of init: start the programs, serve the control socket, reap, kill the rest. Uses
// only memory of its own, because it runs after a bare clone.
class Init {
 public:
  explicit Init(const InitPlan& plan) : plan_(plan) {}

  [[noreturn]] void Run() {
    Prepare();
    int report[2];
    if (::pipe2(report, O_CLOEXEC) != 0) FailStart(StartStep::kFork, errno);
    for (size_t i = 0; i < plan_.process_count; ++i) StartProgram(i, report);
    Tidy(report[0]);
    Failure failure{};
    if (::read(kReport, &failure, sizeof failure) == static_cast<ssize_t>(sizeof failure)) {
      if (plan_.process_count > 1 && !plan_.new_pids) EndRest();
      FailStart(failure.step, failure.error);
    }
    ::close(kReport);
    InitMessage started;
    started.kind = InitMessage::kStarted;
    Send(control_, started);
    Serve();
  }

 private:
  void Prepare() {
    control_ = plan_.control;
    ::setsid();
    struct sigaction action {};
    action.sa_handler = SIG_DFL;  // if ignored, ends of children would not be reported
    ::sigaction(SIGCHLD, &action, nullptr);
    ::prctl(PR_SET_NAME, "shoal-init");
    if (plan_.new_pids) {
      // In addition to the control socket: kills even a stopped init. Not used for a guard, which
      // must survive to kill its tree.
      // An init that must clean up afterwards is woken instead, and sees the socket's end.
      if (plan_.die_with_thread)
        ::prctl(PR_SET_PDEATHSIG, plan_.removes_shared_memory ? SIGCONT : SIGKILL);
      const StartStep failed = EnterNamespaces(plan_);
      if (failed != StartStep::kNone) FailStart(failed, errno);
    } else {
      ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    }
  }

  void StartProgram(size_t number, int report[2]) {
    const pid_t self = ::getpid();
    bool in_group = false;
    pid_t pid = -1;
    if (plan_.unified_group >= 0) {
      pid = CloneProcess(0, SIGCHLD, nullptr, plan_.unified_group);
      in_group = pid >= 0;
    }
    if (pid < 0) pid = CloneProcess(0, SIGCHLD, nullptr, -1);
    if (pid < 0)
      FailStart(StartStep::kFork, errno);  // the processes started so far end with this one
    if (pid == 0) RunProgram(plan_, number, report[1], {self, in_group});
    programs_[number] = pid;
    ++running_;
    ::setpgid(pid, pid);  // the program does the same; the order does not matter
  }

  // Closes all inherited descriptors: others' pipes must end when the program ends.
  void Tidy(int report) {
    sigset_t watched;
    ::sigemptyset(&watched);
    // All signals are blocked since the clone, so signals from outside stay pending until read
    // here.
    for (const int signal : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&watched, signal);
    const int signals = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    const int from[3] = {plan_.control, signals, report};
    int high[3];
    for (int i = 0; i < 3; ++i) high[i] = ::fcntl(from[i], F_DUPFD_CLOEXEC, kReport + 1);
    for (int i = 0; i < 3; ++i) ::dup2(high[i], kControl + i);
    CloseFrom(kReport + 1);
    control_ = kControl;
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; ++fd) ::dup2(null, fd);
    if (null > kReport) ::close(null);
    (void)!::chdir("/");
  }

  [[noreturn]] void FailStart(StartStep step, int error) {
    InitMessage message;
    message.kind = InitMessage::kStartFailed;
    message.a = static_cast<int32_t>(step);
    message.b = error;
    Send(control_, message);
    ::_exit(1);
  }

  [[noreturn]] void Serve() {
    for (;;) {
      Reap();
      if (running_ == 0 || (failed_ && NowMs() >= rest_until_)) Finish();
      constexpr int64_t kLongest = 3'600'000;
      int64_t left = failed_ ? rest_until_ - NowMs() : -1;
      if (failed_ && left < 0) left = 0;
      pollfd waiting[2] = {{kControl, POLLIN, 0}, {kSignals, POLLIN, 0}};
      if (::poll(waiting, 2, static_cast<int>(left > kLongest ? kLongest : left)) < 0) continue;
      if (waiting[1].revents != 0) DrainSignals();
      if (waiting[0].revents != 0) Obey();
    }
  }

  void DrainSignals() {
    signalfd_siginfo info;
    while (::read(kSignals, &info, sizeof info) > 0) {
      // The launcher signals over the control socket, so this signal came from outside.
      if (info.ssi_signo != SIGCHLD) told_outside_ = true;
    }
  }

  void Obey() {
    InitMessage message;
    const ssize_t size = ::recv(kControl, &message, sizeof message, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size != static_cast<ssize_t>(sizeof message)) {  // the launcher has ended
      // In a PID namespace the kernel kills the rest but does not remove their shared memory.
      if (plan_.new_pids && !plan_.removes_shared_memory) ::_exit(1);
      EndRest();
      if (plan_.removes_shared_memory) RemoveSharedMemory();
      ::_exit(1);
    }
    if (message.kind == InitMessage::kSignal) SignalAll(message.a);
    if (message.kind == InitMessage::kKill) {
      EndRest();
      Finish();
    }
  }

  // False if there is no child at all.
  bool Reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid < 0) return false;
      if (pid == 0) return true;
      for (size_t i = 0; i < plan_.process_count; ++i) {
        if (pid == programs_[i]) Ended(i, status);
      }
    }
  }

  // The first process that fails decides the result, and the others get SIGTERM.
  void Ended(size_t number, int status) {
    programs_[number] = -1;
    --running_;
    if (failed_ || (status == 0 && decided_)) return;
    decided_ = true;
    status_ = status;
    process_ = static_cast<int32_t>(number);
    if (status == 0 || running_ == 0) return;
    failed_ = true;
    rest_until_ = NowMs() + plan_.grace_ms;
    SignalAll(SIGTERM);
  }

  void SignalAll(int signal) {
    for (size_t i = 0; i < plan_.process_count; ++i) {
      if (programs_[i] > 0) ::kill(-programs_[i], signal);
    }
  }

  // Kills and reaps until no process is left or kPatienceMs has passed.
  void EndRest() {
    const int64_t deadline = NowMs() + kPatienceMs;
    while (Reap() && NowMs() < deadline) {
      if (plan_.new_pids) {
        ::kill(-1, SIGKILL);
      } else {
        KillChildren();
      }
      constexpr int kStepMs = 5;  // adopted orphans cause no signal
      pollfd waiting{kSignals, POLLIN, 0};
      ::poll(&waiting, 1, plan_.new_pids ? static_cast<int>(kPatienceMs) : kStepMs);
      DrainSignals();
    }
  }

  [[noreturn]] void Finish() {
    EndRest();
    if (plan_.removes_shared_memory) RemoveSharedMemory();
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    InitMessage message;
    message.kind = InitMessage::kEnded;
    // Killed by the launcher's order before its end.
    message.a = decided_ && (failed_ || running_ == 0) ? status_ : SIGKILL;
    message.b = process_;
    DrainSignals();
    message.c = told_outside_ ? 1 : 0;
    message.cpu_us = (int64_t{usage.ru_utime.tv_sec} + usage.ru_stime.tv_sec) * 1'000'000 +
                     usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
    message.max_rss_kib = usage.ru_maxrss;
    Send(kControl, message);
    ::_exit(0);
  }

  const InitPlan& plan_;
  int control_ = -1;
  pid_t programs_[kMostProcesses]{};  // -1: ended
  size_t running_ = 0;
  bool decided_ = false;  // the result is status_ of process_
  bool failed_ = false;   // others must end before rest_until_
  int64_t rest_until_ = 0;
  int status_ = 0;
  int32_t process_ = 0;
  bool told_outside_ = false;
};

}  // namespace

uint64_t NamespaceFlags(bool new_pids, bool new_user) {
  uint64_t flags = 0;
  if (new_pids) flags |= CLONE_NEWPID | CLONE_NEWNS;
  if (new_user) flags |= CLONE_NEWUSER;
  return flags;
}

pid_t CloneProcess(uint64_t flags, int exit_signal, int* pidfd, int group) {
  clone_args args{};
  args.flags = flags;
  args.exit_signal = static_cast<uint64_t>(exit_signal);
  if (pidfd != nullptr) {
    args.flags |= CLONE_PIDFD;
    args.pidfd = reinterpret_cast<uint64_t>(pidfd);
  }
  if (group >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(group);
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  // Older container runtimes block clone3 because they cannot filter its flags.
  if (pid >= 0 || errno != ENOSYS || group >= 0) return static_cast<pid_t>(pid);
  return static_cast<pid_t>(::syscall(SYS_clone, args.flags | args.exit_signal, 0, pidfd, 0, 0));
}

StartStep EnterNamespaces(const InitPlan& plan) {
  if (plan.uid_map != nullptr) {
    (void)WriteText("/proc/self/setgroups", "deny");  // absent before Linux 3.19
    if (!WriteText("/proc/self/uid_map", plan.uid_map)) return StartStep::kUserMap;
    if (!WriteText("/proc/self/gid_map", plan.gid_map)) return StartStep::kUserMap;
  }
  // Slave propagation: later mounts outside appear inside; our /proc stays inside.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return StartStep::kMountProc;
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return StartStep::kMountProc;
  // A program also runs without these two.
  if (plan.shared_memory != nullptr)
    (void)::mount(plan.shared_memory, "/dev/shm", nullptr, MS_BIND, nullptr);
  if (plan.last_pid != nullptr) (void)WriteText("/proc/sys/kernel/ns_last_pid", plan.last_pid);
  return StartStep::kNone;
}

void RunInit(const InitPlan& plan) { Init(plan).Run(); }

}  // namespace shoal::host
