#include "host/process/enter_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "base/file.h"
#include "host/process/process_usage.h"

extern char** environ;

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEnvironment = 4 << 20;
constexpr int kMostFds = 4096;

// Messages of the intermediate processes through the pipe.
struct Word {
  enum Kind : int32_t { kPid, kEnterFailed, kExecFailed, kEnded };
  int32_t kind = 0;
  int32_t value = 0;  // pid, errno, wait status
};

// Prepared before the fork: after it, in a program that may have threads, only async-signal-safe
// calls are made.
struct Plan {
  int target = -1;  // pidfd of the program
  int namespaces = 0;
  int directory = -1;
  int words = -1;
  int life[2] = {-1, -1};  // a pipe that closes when this process ends
  std::vector<UniqueFd> groups;
  bool terminal = false;
  int fds[3] = {-1, -1, -1};
  std::vector<char*> argv;
  std::vector<char*> env;
};

void Say(int fd, Word::Kind kind, int value) {
  const Word word{kind, value};
  (void)!::write(fd, &word, sizeof word);
}

[[noreturn]] void RunCommand(const Plan& plan) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  sigset_t none;
  ::sigemptyset(&none);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.terminal) ::ioctl(plan.fds[0], TIOCSCTTY, 0);
  // Two passes: a descriptor may occupy the target number of another one.
  int fds[3];
  for (int i = 0; i < 3; ++i) fds[i] = ::fcntl(plan.fds[i], F_DUPFD, 3);
  for (int i = 0; i < 3; ++i) ::dup2(fds[i], i);
  if (plan.directory >= 0) (void)!::fchdir(plan.directory);
  const int words = ::fcntl(plan.words, F_DUPFD_CLOEXEC, 3);
  for (int fd = 3; fd < kMostFds; ++fd) {
    if (fd != words) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  environ = const_cast<char**>(plan.env.data());
  ::execvp(plan.argv[0], plan.argv.data());
  Say(words, Word::kExecFailed, errno);
  ::_exit(127);
}

// The process between this one and the command: a process that enters a PID namespace stays outside
// of it, and only its children are inside.
[[noreturn]] void RunBetween(const Plan& plan) {
  ::close(plan.life[1]);
  ::setsid();  // does not receive the command line's Ctrl-C
  for (const UniqueFd& group : plan.groups) (void)!::write(group.get(), "0", 1);
  if (plan.namespaces != 0 && ::syscall(SYS_setns, plan.target, plan.namespaces) != 0) {
    Say(plan.words, Word::kEnterFailed, errno);
    ::_exit(1);
  }
  const pid_t command = ::fork();
  if (command == 0) RunCommand(plan);
  if (command < 0) {
    Say(plan.words, Word::kEnterFailed, errno);
    ::_exit(1);
  }
  Say(plan.words, Word::kPid, command);
  // Includes pipe ends whose readers would otherwise wait forever.
  for (int fd = 3; fd < kMostFds; ++fd) {
    if (fd != plan.words && fd != plan.life[0]) ::close(fd);
  }
  pollfd polls[2] = {{static_cast<int>(::syscall(SYS_pidfd_open, command, 0)), POLLIN, 0},
                     {plan.life[0], POLLIN, 0}};
  while (::poll(polls, 2, -1) < 0 && errno == EINTR) {
  }
  if (polls[1].revents != 0) {
    ::kill(-command, SIGKILL);
    ::kill(command, SIGKILL);
  }
  int status = 0;
  while (::waitpid(command, &status, 0) < 0 && errno == EINTR) {
  }
  Say(plan.words, Word::kEnded, status);
  ::_exit(0);
}

bool SameNamespace(pid_t pid, const char* kind) {
  struct stat ours {};
  struct stat theirs {};
  const std::string own = std::string("/proc/self/ns/") + kind;
  const std::string other = "/proc/" + std::to_string(pid) + "/ns/" + kind;
  return ::stat(own.c_str(), &ours) != 0 || ::stat(other.c_str(), &theirs) != 0 ||
         ours.st_ino == theirs.st_ino;
}

int NamespacesOf(pid_t pid) {
  int flags = 0;
  if (!SameNamespace(pid, "user")) flags |= CLONE_NEWUSER;
  if (!SameNamespace(pid, "pid")) flags |= CLONE_NEWPID;
  if (!SameNamespace(pid, "mnt")) flags |= CLONE_NEWNS;
  return flags;
}

// The process's pid in its own PID namespace, as the command sees it.
pid_t NumberInside(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    const size_t last = line.find_last_of(" \t");
    const pid_t inside = static_cast<pid_t>(std::atoi(line.c_str() + last + 1));
    if (inside > 0) return inside;
  }
  return pid;
}

Result<std::vector<std::string>> EnvironmentOf(const EnterSpec& spec) {
  TRY_ASSIGN(const std::string text,
             ReadFile("/proc/" + std::to_string(spec.pid) + "/environ", kMaxEnvironment));
  std::map<std::string, std::string> variables;
  const auto add = [&](std::string_view one) {
    const size_t equals = one.find('=');
    if (equals != std::string_view::npos)
      variables[std::string(one.substr(0, equals))] = one.substr(equals + 1);
  };
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    add(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  variables["SHOAL_PID"] = std::to_string(NumberInside(spec.pid));
  for (const std::string& one : spec.env) add(one);
  std::vector<std::string> list;
  for (const auto& [name, value] : variables) list.push_back(name + "=" + value);
  return list;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct Terminal {
  UniqueFd ours;
  UniqueFd theirs;
};

Result<Terminal> OpenTerminal(uint16_t rows, uint16_t columns) {
  Terminal terminal;
  terminal.ours.Reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[64];
  const bool ready = terminal.ours.valid() && ::grantpt(terminal.ours.get()) == 0 &&
                     ::unlockpt(terminal.ours.get()) == 0 &&
                     ::ptsname_r(terminal.ours.get(), name, sizeof name) == 0;
  if (!ready) return ErrnoStatus(errno, "cannot make a terminal");
  TRY_ASSIGN(terminal.theirs, OpenFile(name, O_RDWR | O_NOCTTY));
  const winsize size{rows, columns, 0, 0};
  ::ioctl(terminal.ours.get(), TIOCSWINSZ, &size);
  return terminal;
}

bool Relay(int from, int to) {
  char bytes[16 << 10];
  const ssize_t got = ::read(from, bytes, sizeof bytes);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  return got > 0 && WriteAll(to, {bytes, static_cast<size_t>(got)}).ok();
}

}  // namespace

struct EnteredCommand::State {
  std::string command;
  UniqueFd target;
  UniqueFd words;
  UniqueFd life;
  UniqueFd terminal;  // master end
  int fds[3] = {-1, -1, -1};
  pid_t between = 0;
  std::atomic<pid_t> pid{0};  // the command's, in this PID namespace
  std::atomic<int> early{0};  // a signal that arrived before the pid was known

  // The end, once it was reported.
  Result<bool> Listen(EnteredCommandEnd* end) {
    Word word;
    const ssize_t got = ::read(words.get(), &word, sizeof word);
    if (got < 0 && errno == EINTR) return false;
    if (got != static_cast<ssize_t>(sizeof word)) {
      end->signal = SIGKILL;  // the intermediate process was killed, and the command with it
      return true;
    }
    if (word.kind == Word::kPid) {
      pid = word.value;
      if (const int signal = early.exchange(0); signal != 0) ::kill(word.value, signal);
    }
    if (word.kind == Word::kEnterFailed)
      return PermissionDenied(
          "the task's namespaces cannot be entered: " + std::string(::strerror(word.value)) +
          "; run this as the user who runs the job, or as root");
    if (word.kind == Word::kExecFailed)
      return ErrnoStatus(word.value, "cannot start " + command + " in the task");
    if (word.kind != Word::kEnded) return false;
    if (WIFSIGNALED(word.value)) end->signal = WTERMSIG(word.value);
    if (WIFEXITED(word.value)) end->exit_code = WEXITSTATUS(word.value);
    return true;
  }

  // Reads output that is still in the terminal after the command's end.
  void Drain() {
    pollfd more{terminal.get(), POLLIN, 0};
    while (terminal.valid() && ::poll(&more, 1, 0) > 0 && (more.revents & POLLIN) != 0) {
      if (!Relay(terminal.get(), fds[1])) return;
    }
  }
};

EnteredCommand::EnteredCommand(std::unique_ptr<State> state) : state_(std::move(state)) {}

EnteredCommand::~EnteredCommand() {
  if (state_->between <= 0) return;
  state_->life.Reset();
  ::waitpid(state_->between, nullptr, 0);
}

Result<std::unique_ptr<EnteredCommand>> EnteredCommand::Start(const EnterSpec& spec) {
  auto state = std::make_unique<State>();
  state->command = spec.argv.at(0);
  state->target.Reset(static_cast<int>(::syscall(SYS_pidfd_open, spec.pid, 0)));
  if (!state->target.valid() || !IsAlive(spec.pid, spec.start_ticks))
    return NotFound("the task's program has ended");
  TRY_ASSIGN(const std::vector<std::string> env, EnvironmentOf(spec));
  TRY_ASSIGN(const UniqueFd directory,
             OpenFile("/proc/" + std::to_string(spec.pid) + "/cwd", O_PATH | O_DIRECTORY));
  Terminal terminal;
  if (spec.terminal) {
    TRY_ASSIGN(terminal, OpenTerminal(spec.rows, spec.columns));
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  state->words.Reset(ends[0]);
  const UniqueFd words(ends[1]);
  Plan plan;
  plan.target = state->target.get();
  plan.namespaces = NamespacesOf(spec.pid);
  plan.directory = directory.get();
  plan.words = words.get();
  for (const fs::path& group : spec.group_directories) {
    if (auto entry = OpenFile(group / "cgroup.procs", O_WRONLY); entry.ok())
      plan.groups.push_back(std::move(*entry));
  }
  plan.terminal = spec.terminal;
  for (int i = 0; i < 3; ++i) {
    state->fds[i] = spec.fds[i];
    plan.fds[i] = spec.terminal ? terminal.theirs.get() : spec.fds[i];
  }
  plan.argv = Pointers(spec.argv);
  plan.env = Pointers(env);
  if (::pipe2(plan.life, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  const UniqueFd theirs(plan.life[0]);
  state->life.Reset(plan.life[1]);
  state->between = ::fork();
  if (state->between == 0) RunBetween(plan);
  if (state->between < 0) return ErrnoStatus(errno, "cannot make a process");
  state->terminal = std::move(terminal.ours);
  return std::unique_ptr<EnteredCommand>(new EnteredCommand(std::move(state)));
}

void EnteredCommand::Signal(int signal) {
  const bool early = state_->pid <= 0;
  if (early) state_->early = signal;
  const pid_t pid = state_->pid;
  if (pid <= 0) return;                                 // Listen finds it,
  if (early && state_->early.exchange(0) == 0) return;  // or has found it
  pid_t group = pid;
  if (state_->terminal.valid() && ::ioctl(state_->terminal.get(), TIOCGPGRP, &group) != 0)
    group = pid;
  if (group <= 0 || ::kill(-group, signal) != 0) ::kill(-pid, signal);
}

void EnteredCommand::Resize(uint16_t rows, uint16_t columns) {
  const winsize size{rows, columns, 0, 0};
  if (state_->terminal.valid()) ::ioctl(state_->terminal.get(), TIOCSWINSZ, &size);
}

Result<EnteredCommandEnd> EnteredCommand::Wait() {
  State& state = *state_;
  EnteredCommandEnd end;
  bool input = state.terminal.valid();
  bool output = state.terminal.valid();
  for (bool ended = false; !ended;) {
    pollfd polls[4] = {{state.words.get(), POLLIN, 0},
                       {state.target.get(), POLLIN, 0},
                       {output ? state.terminal.get() : -1, POLLIN, 0},
                       {input ? state.fds[0] : -1, POLLIN, 0}};
    if (::poll(polls, 4, -1) < 0 && errno != EINTR)
      return ErrnoStatus(errno, "cannot wait for the command");
    if (polls[2].revents != 0) output = Relay(state.terminal.get(), state.fds[1]);
    if (polls[3].revents != 0 && !Relay(state.fds[0], state.terminal.get())) {
      input = false;
      (void)WriteAll(state.terminal.get(), "\x04");  // end of input in terminal encoding
    }
    if (polls[0].revents != 0) {
      TRY_ASSIGN(ended, state.Listen(&end));
    } else if (polls[1].revents != 0) {
      Signal(SIGKILL);  // the program has ended
      state.target.Reset();
    }
  }
  state.Drain();
  return end;
}

std::vector<fs::path> FindGroupsOfProcess(const std::vector<fs::path>& bases,
                                          const std::string& job, pid_t pid) {
  std::vector<fs::path> groups;
  for (const fs::path& base : bases) {
    std::error_code error;
    for (fs::directory_iterator it(base / "shoal" / job, error), end; !error && it != end;
         it.increment(error)) {
      std::ifstream procs(it->path() / "cgroup.procs");
      for (pid_t one = 0; procs >> one;) {
        if (one == pid) groups.push_back(it->path());
      }
    }
  }
  return groups;
}

}  // namespace shoal::host
