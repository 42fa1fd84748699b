#include "rendezvous/launcher/ready_check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "host/process/process_tree.h"

namespace shoal::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstTry{5};
constexpr milliseconds kPoll{2};        // while a connection is being made
constexpr milliseconds kTryFor{2'000};  // for one connection or one answer
constexpr milliseconds kCommandFor{30'000};
constexpr size_t kMostAnswer = 4096;  // the status line is within

// A connection being made, or an invalid descriptor with errno set.
UniqueFd Dial(const std::string& host, uint16_t port) {
  sockaddr_storage address{};
  socklen_t size = 0;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    size = sizeof *v4;
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    size = sizeof *v6;
  } else {
    errno = EINVAL;
    return {};
  }
  UniqueFd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fd;
  const int done = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size);
  if (done != 0 && errno != EINPROGRESS) return {};
  return fd;
}

// One try at a time, each limited by kTryFor; the first tries come quickly, then one every
// `how.every`. Keeps the most telling failure for on_timeout.
class RepeatedReadyCheck final : public ReadyCheck {
 public:
  RepeatedReadyCheck(net::Loop* loop, ReadyCheckSpec spec, std::function<void()> on_ready,
                     std::function<void(const std::string&)> on_timeout)
      : loop_(loop),
        spec_(std::move(spec)),
        on_ready_(std::move(on_ready)),
        on_timeout_(std::move(on_timeout)) {}

  ~RepeatedReadyCheck() override {
    EndTry();
    loop_->Cancel(next_timer_);
    loop_->Cancel(timeout_timer_);
  }

  void Begin() {
    if (spec_.how.timeout.count() > 0) {
      timeout_timer_ = loop_->After(spec_.how.timeout, [this] {
        const auto on_timeout = on_timeout_;
        const std::string why = why_;
        on_timeout(why);
      });
    }
    if (spec_.how.by == job::ReadyBy::kLog) {
      why_ = "no line of its output was '" + spec_.how.line + "'";
      return;
    }
    TryLater();
  }

 private:
  void TryLater() {
    next_timer_ = loop_->After(wait_, [this] { Try(); });
    wait_ = std::min(wait_ * 2, spec_.how.every);
  }

  // An answer says more than a refused connection at another address or later.
  void Failed(std::string why, bool answered = true) {
    if (answered || !answered_) why_ = std::move(why);
    answered_ = answered_ || answered;
    EndTry();
    TryLater();
  }

  void EndTry() {
    loop_->Cancel(std::exchange(poll_timer_, 0));
    loop_->Cancel(std::exchange(watch_, 0));
    answer_.clear();
    socket_.Reset();
    command_.reset();
  }

  void Ready() {
    EndTry();
    const auto on_ready = on_ready_;
    on_ready();
  }

  void Try() {
    next_timer_ = 0;
    until_ = RealClock::Get()->Now() + kTryFor;
    if (spec_.how.by == job::ReadyBy::kCommand) return RunCommand();
    socket_ = Dial(spec_.hosts[turn_++ % spec_.hosts.size()], spec_.port);
    if (!socket_.valid()) return Failed(NobodyListens(), false);
    PollConnection();
  }

  std::string NobodyListens() const {
    return "nothing takes connections at port " + std::to_string(spec_.port);
  }

  // The loop waits for readable descriptors only; on the same machine a connection takes
  // microseconds.
  void PollConnection() {
    pollfd waiting{socket_.get(), POLLOUT, 0};
    if (::poll(&waiting, 1, 0) == 0) {
      if (RealClock::Get()->Now() > until_) return Failed(NobodyListens(), false);
      poll_timer_ = loop_->After(kPoll, [this] { PollConnection(); });
      return;
    }
    poll_timer_ = 0;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return Failed(NobodyListens(), false);
    if (spec_.how.by == job::ReadyBy::kTcp) return Ready();
    Ask();
  }

  void Ask() {
    const std::string request = "GET " + spec_.how.path +
                                " HTTP/1.1\r\nHost: localhost:" + std::to_string(spec_.port) +
                                "\r\nUser-Agent: shoal\r\nAccept: */*\r\nConnection: close\r\n\r\n";
    const ssize_t sent = ::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(request.size())) return Failed("it did not take a request");
    auto watch = loop_->WatchReadable(socket_.get(), [this] { TakeAnswer(); });
    if (!watch.ok()) return Failed(watch.status().message());
    watch_ = *watch;
    poll_timer_ = loop_->After(
        kTryFor, [this] { Failed("GET " + spec_.how.path + " was not answered within 2 s"); });
  }

  void TakeAnswer() {
    char bytes[1024];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) answer_.append(bytes, static_cast<size_t>(got));
    const bool whole = answer_.find('\n') != std::string::npos;
    if (got > 0 && !whole && answer_.size() < kMostAnswer) return;
    // "HTTP/1.1 204 No Content"
    const bool http = answer_.starts_with("HTTP/1.") && answer_.size() >= 12 && answer_[8] == ' ';
    if (!http) return Failed("the answer to GET " + spec_.how.path + " is not HTTP");
    const std::string status = answer_.substr(9, 3);
    if (status >= "200" && status <= "399") return Ready();
    Failed("GET " + spec_.how.path + " was answered with " + status);
  }

  void RunCommand() {
    host::ProcessSpec process;
    process.job_id = spec_.job_id;
    process.name = spec_.name;
    process.argv = spec_.how.command;
    process.env = spec_.env;
    process.work_dir = spec_.work_dir;
    auto command = host::ProcessTree::Start(process, spec_.isolation);
    if (!command.ok()) return Failed(command.status().message());
    command_ = std::move(command).value();
    auto watch = loop_->WatchReadable(command_->exit_fd(), [this] { CommandEnded(); });
    if (!watch.ok()) return Failed(watch.status().message());
    watch_ = *watch;
    poll_timer_ = loop_->After(kCommandFor,
                               [this] { Failed("its `ready` command did not end within 30 s"); });
  }

  void CommandEnded() {
    const auto end = command_->Wait(std::chrono::seconds(1));
    if (end && end->ok()) return Ready();
    Failed("its `ready` command " + (end && end->signal == 0
                                         ? "exits with " + std::to_string(end->exit_code)
                                         : std::string("is killed")));
  }

  net::Loop* const loop_;
  const ReadyCheckSpec spec_;
  const std::function<void()> on_ready_;
  const std::function<void(const std::string&)> on_timeout_;
  milliseconds wait_ = kFirstTry;
  TimePoint until_{};
  size_t turn_ = 0;
  std::string why_ = "nothing was tried yet";
  bool answered_ = false;
  std::string answer_;
  UniqueFd socket_;
  std::unique_ptr<host::ProcessTree> command_;
  net::Loop::Id next_timer_ = 0;
  net::Loop::Id timeout_timer_ = 0;
  net::Loop::Id poll_timer_ = 0;
  net::Loop::Id watch_ = 0;
};

}  // namespace

std::unique_ptr<ReadyCheck> ReadyCheck::Start(net::Loop* loop, ReadyCheckSpec spec,
                                              std::function<void()> on_ready,
                                              std::function<void(const std::string&)> on_timeout) {
  auto check = std::make_unique<RepeatedReadyCheck>(loop, std::move(spec), std::move(on_ready),
                                                    std::move(on_timeout));
  check->Begin();
  return check;
}

}  // namespace shoal::rendezvous
