#include "sql/query/run_query.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"

namespace shoal::sql {
namespace {

constexpr int kPollMs = 50;
constexpr size_t kMaxAnswer = size_t{1} << 20;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// A child process; killed and waited for when this ends.
class Child {
 public:
  static Result<Child> Start(const std::string& program, int input, int output) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    std::string name = program, command = "sql-query";
    char* const argv[] = {name.data(), command.data(), nullptr};
    // Only what the loader, the time zone and temporary files need.
    std::vector<std::string> kept;
    for (const char* const variable : {"PATH", "LD_LIBRARY_PATH", "TZ", "TMPDIR"}) {
      if (const char* const value = std::getenv(variable))
        kept.push_back(std::string(variable) + "=" + value);
    }
    std::vector<char*> environment;
    for (std::string& one : kept) environment.push_back(one.data());
    environment.push_back(nullptr);
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, program.c_str(), &actions, nullptr, argv, environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return ErrnoStatus(error, "cannot start " + program);
    return Child(pid);
  }
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    Wait();
  }
  // Its wait status.
  int Wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  explicit Child(pid_t pid) : pid_(pid) {}
  pid_t pid_;
};

// Reads the answer until the child closes its end.
Result<std::string> ReadAnswer(int fd, const QueryRun& run) {
  const TimePoint begin = RealClock::Get()->Now();
  std::string answer;
  char room[4096];
  for (;;) {
    struct pollfd wait = {fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, kPollMs);
    if (run.stopped && run.stopped()) return Cancelled("stopped while the query ran");
    if (RealClock::Get()->Now() - begin > run.time_limit)
      return DeadlineExceeded("the query ran longer than its limit of " +
                              FormatDuration(run.time_limit) +
                              "; `set query.time = \"2h\"` sets another");
    if (ready <= 0) continue;
    const ssize_t got = ::read(fd, room, sizeof(room));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return answer;
    answer.append(room, static_cast<size_t>(got));
    if (answer.size() > kMaxAnswer) return Internal("the query's process answers too much");
  }
}

Result<json::object> Ask(const QueryRequest& request, const QueryRun& run) {
  TRY_ASSIGN(Pipe input, MakePipe());
  TRY_ASSIGN(Pipe output, MakePipe());
  TRY_ASSIGN(Child child, Child::Start(run.program, input.read.get(), output.write.get()));
  input.read.Reset();
  output.write.Reset();
  // In a thread, since a request may be larger than a pipe and the child may not read it.
  const std::string text = ToText(ToJson(request));
  std::thread writer([fd = std::move(input.write), &text]() mutable {
    const Status written = WriteAll(fd.get(), text);  // a child that has gone is told by its end
    static_cast<void>(written);
    fd.Reset();
  });
  Result<std::string> answer = ReadAnswer(output.read.get(), run);
  if (!answer.ok()) const Child ended(std::move(child));  // killed, so that the writer ends
  writer.join();
  if (!answer.ok()) return answer.status();
  const int status = child.Wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return ParseJsonObject(*answer);
  if (WIFSIGNALED(status)) {
    return ResourceExhausted(
        "the query's process was ended by signal " + std::to_string(WTERMSIG(status)) +
        ", probably for its memory; `set query.memory = \"4Gi\"` sets another limit");
  }
  return Internal("the query's process ended with exit code " +
                  std::to_string(WEXITSTATUS(status)));
}

}  // namespace

QueryEnd RunQuery(const QueryRequest& request, const QueryRun& run) {
  const Result<json::object> answer = Ask(request, run);
  QueryEnd end;
  end.status = answer.status();
  if (!answer.ok()) return end;
  const std::string error = GetStringOr(*answer, "error", "");
  if (error.empty()) {
    if (const json::object* const special = FindObject(*answer, "special")) {
      for (const auto& [name, type] : *special) {
        if (type.is_string()) end.special[name] = std::string(type.get_string());
      }
    }
    return end;
  }
  const auto code = static_cast<Code>(GetIntOr(*answer, "code", static_cast<int>(Code::kUnknown)));
  end.status = Status(code, error);
  end.position = GetIntOr(*answer, "position", -1);
  return end;
}

}  // namespace shoal::sql
