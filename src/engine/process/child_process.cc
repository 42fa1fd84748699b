#include "engine/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/process/spawn.h"

extern char** environ;

namespace shoal::engine {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// False at the end of the stream.
bool Gather(int fd, std::string* text) {
  char block[16 << 10];
  const ssize_t got = ::read(fd, block, sizeof block);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  text->append(block, static_cast<size_t>(got));
  return got > 0;
}

// False when everything is written or the reader has closed.
bool Feed(int fd, const std::string& text, size_t* at) {
  const ssize_t put = ::write(fd, text.data() + *at, text.size() - *at);
  if (put < 0) return errno == EAGAIN || errno == EINTR;
  *at += static_cast<size_t>(put);
  return *at < text.size();
}

// Transfers the streams until both outputs have ended. False if a limit was exceeded.
bool Carry(Child* child, const std::string& input, const CommandLimits& limits,
           CommandResult* ran) {
  const auto deadline = SteadyClock::now() + limits.time;
  size_t fed = 0;
  if (input.empty()) child->in.Reset();
  while (child->out.valid() || child->err.valid()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now());
    pollfd polls[3] = {{child->out.get(), POLLIN, 0},
                       {child->err.get(), POLLIN, 0},
                       {child->in.get(), POLLOUT, 0}};
    if (left.count() <= 0) return false;
    if (::poll(polls, 3, static_cast<int>(left.count())) <= 0) continue;
    if (polls[0].revents != 0 && !Gather(child->out.get(), &ran->out)) child->out.Reset();
    if (polls[1].revents != 0 && !Gather(child->err.get(), &ran->err)) child->err.Reset();
    if (polls[2].revents != 0 && !Feed(child->in.get(), input, &fed)) child->in.Reset();
    if (std::max(ran->out.size(), ran->err.size()) > limits.bytes) return false;
  }
  return true;
}

}  // namespace

Result<Child> StartChildWithFds(const std::vector<std::string>& argv,
                                const std::vector<std::string>& env, const std::array<int, 3>& fds,
                                const std::string& work_dir, const std::optional<UserIds>& user) {
  Child child;
  if (user) {
    TRY_ASSIGN(
        Spawned spawned,
        Spawn(
            {.argv = argv, .env = env, .work_dir = work_dir, .log = {}, .fds = fds, .user = user}));
    child.pid = spawned.pid;
    child.pidfd = std::move(spawned.pidfd);
    return child;
  }
  SessionSpawn session;
  for (int i = 0; i < 3; ++i)
    ::posix_spawn_file_actions_adddup2(session.actions(), fds[static_cast<size_t>(i)], i);
  if (!work_dir.empty())
    ::posix_spawn_file_actions_addchdir_np(session.actions(), work_dir.c_str());
  const int error = session.Start(argv, env, &child.pid);
  if (error != 0) return ErrnoStatus(error, "cannot start " + argv[0]);
  TRY_ASSIGN(child.pidfd, WatchChild(child.pid, argv[0]));
  return child;
}

Result<Child> StartChild(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                         const std::optional<UserIds>& user) {
  TRY_ASSIGN(Pipe in, MakePipe());
  TRY_ASSIGN(Pipe out, MakePipe());
  TRY_ASSIGN(Pipe err, MakePipe());
  TRY_ASSIGN(
      Child child,
      StartChildWithFds(argv, env, {in.read.get(), out.write.get(), err.write.get()}, "", user));
  for (const int fd : {in.write.get(), out.read.get(), err.read.get()})
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  child.in = std::move(in.write);
  child.out = std::move(out.read);
  child.err = std::move(err.read);
  return child;
}

int ReapChild(const Child& child) {
  int status = -1;
  while (::waitpid(child.pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

Result<CommandResult> RunCommand(const std::vector<std::string>& argv,
                                 const std::vector<std::string>& env, const std::string& input,
                                 const CommandLimits& limits, const std::optional<UserIds>& user) {
  TRY_ASSIGN(Child child, StartChild(argv, env, user));
  CommandResult ran;
  const bool whole = Carry(&child, input, limits, &ran);
  if (!whole) ::kill(child.pid, SIGKILL);
  const int status = ReapChild(child);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (whole) return ran;
  if (std::max(ran.out.size(), ran.err.size()) > limits.bytes)
    return ResourceExhausted(argv[0] + " printed more than " + std::to_string(limits.bytes) +
                             " bytes");
  return DeadlineExceeded(argv[0] + " did not answer within " +
                          std::to_string(limits.time.count() / 1000) + " s");
}

std::vector<std::string> CurrentEnvironment() {
  std::vector<std::string> own;
  for (char** entry = environ; *entry != nullptr; ++entry) own.emplace_back(*entry);
  return own;
}

}  // namespace shoal::engine
