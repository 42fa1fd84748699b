// A child process for tests of what survives kill -9 and SIGSTOP.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

namespace shoal::controller {

// Runs a function in a child, which must make its own stores, and ends with what it returns.
class TestChild {
 public:
  // `run` gets a descriptor whose bytes the parent reads.
  explicit TestChild(const std::function<int(int)>& run) {
    int fds[2] = {-1, -1};
    if (::pipe(fds) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(fds[0]);
      ::_exit(run(fds[1]));
    }
    ::close(fds[1]);
    read_ = fds[0];
  }
  ~TestChild() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(read_);
  }
  TestChild(const TestChild&) = delete;
  TestChild& operator=(const TestChild&) = delete;

  // A line that the child wrote, without its end; empty: the child has ended.
  std::string ReadLine() {
    std::string line;
    char one = 0;
    while (::read(read_, &one, 1) == 1 && one != '\n') line += one;
    return line;
  }
  void Signal(int signal) { ::kill(pid_, signal); }
  // Waits until the child has stopped itself by SIGSTOP.
  bool WaitUntilStopped() {
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  // Its exit status; -1 if a signal ended it.
  int Wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
  int read_ = -1;
};

inline void WriteLine(int fd, const std::string& line) {
  const std::string text = line + "\n";
  (void)!::write(fd, text.data(), text.size());
}

}  // namespace shoal::controller
