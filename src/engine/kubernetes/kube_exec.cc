#include "engine/kubernetes/kube_exec.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <mutex>
#include <optional>
#include <thread>

#include "base/json.h"
#include "engine/kubernetes/ws_frames.h"

namespace shoal::engine::kubernetes {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Kind = WsReader::Message::Kind;

constexpr size_t kBlock = 32 << 10;
constexpr std::chrono::seconds kPatience{30};  // with a server that does not take what is sent
constexpr std::chrono::milliseconds kRefusalTime{300};  // in which a closed port is told
// The first byte of each message.
constexpr char kIn = 0;
constexpr char kOut = 1;
constexpr char kErr = 2;
constexpr char kEnd = 3;
constexpr char kSize = 4;
constexpr char kCloseOf = static_cast<char>(255);
constexpr const char* kProtocols = "v5.channel.k8s.io, v4.channel.k8s.io";

std::vector<std::pair<std::string, std::string>> Headers(const char* protocols) {
  return {{"Sec-WebSocket-Version", "13"},
          {"Sec-WebSocket-Key", NewWsKey()},
          {"Sec-WebSocket-Protocol", protocols}};
}

// Messages over a channel; both directions on one thread.
class WsLine {
 public:
  explicit WsLine(net::UpgradedChannel upgraded) : upgraded_(std::move(upgraded)) {}
  int fd() const { return upgraded_.channel->fd(); }
  std::string protocol() const { return upgraded_.head.Header("sec-websocket-protocol"); }

  Status Send(char channel, std::string_view bytes) {
    return SendRaw(WsMessage(std::string(1, channel) + std::string(bytes)));
  }
  // What has come; `closed` once nothing more will.
  Status Receive(std::vector<std::string>* messages, bool* closed) {
    std::vector<WsReader::Message> all;
    if (!upgraded_.early.empty()) TRY(reader_.Feed(std::exchange(upgraded_.early, {}), &all));
    std::vector<char> block(kBlock);
    while (!*closed) {
      const net::Channel::Step step = upgraded_.channel->Read(block.data(), block.size());
      TRY(step.error);
      if (step.end) *closed = true;
      if (step.wait_for != 0) break;
      TRY(reader_.Feed({block.data(), step.bytes}, &all));
    }
    for (WsReader::Message& message : all) {
      if (message.kind == Kind::kPing) TRY(SendRaw(WsPong(message.bytes)));
      if (message.kind == Kind::kClose) *closed = true;
      if (message.kind == Kind::kData && !message.bytes.empty())
        messages->push_back(std::move(message.bytes));
    }
    return Status::Ok();
  }

 private:
  Status SendRaw(const std::string& frame) {
    return net::SendAll(upgraded_.channel.get(), frame, SteadyClock::now() + kPatience);
  }
  net::UpgradedChannel upgraded_;
  WsReader reader_;
};

class PodExecution final : public Execution {
 public:
  PodExecution(net::UpgradedChannel upgraded, const ExecSpec& spec)
      : line_(std::move(upgraded)),
        terminal_(spec.terminal),
        fds_{spec.fds[0], spec.fds[1], spec.fds[2]},
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    Resize(spec.rows, spec.columns);
  }

  // The protocol knows no signals: what asks a command to end closes what it reads. (Keys of a
  // terminal come as its bytes.)
  void Signal(int /*signal*/) override {
    {
      std::lock_guard lock(mu_);
      end_input_ = true;
    }
    Wake();
  }
  void Resize(uint16_t rows, uint16_t columns) override {
    if (!terminal_) return;
    {
      std::lock_guard lock(mu_);
      size_ = ToText(json::object{{"Width", columns}, {"Height", rows}});
    }
    Wake();
  }

  Result<ExecEnd> Wait() override {
    bool input = true;
    bool closed = false;
    for (;;) {
      std::vector<std::string> messages;
      TRY(line_.Receive(&messages, &closed));
      for (const std::string& message : messages) TRY(Take(message));
      if (end_) return *end_;
      if (closed)
        return Unavailable("the connection to the command broke; how it ended is not known");
      TRY(SendDue(&input));
      pollfd polls[3] = {
          {line_.fd(), POLLIN, 0}, {input ? fds_[0] : -1, POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      if (::poll(polls, 3, -1) < 0 && errno != EINTR) return ErrnoStatus(errno, "poll");
      uint64_t count = 0;
      if (polls[2].revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
      if (polls[1].revents != 0) TRY(SendInput(&input));
    }
  }

 private:
  void Wake() {
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  Status SendDue(bool* input) {
    std::string size;
    bool end = false;
    {
      std::lock_guard lock(mu_);
      size.swap(size_);
      end = end_input_;
    }
    if (!size.empty()) TRY(line_.Send(kSize, size));
    if (end && *input) {
      *input = false;
      TRY(EndInput());
    }
    return Status::Ok();
  }

  Status EndInput() {
    // Version 4 cannot say it.
    if (!line_.protocol().starts_with("v5.")) return Status::Ok();
    return line_.Send(kCloseOf, std::string_view("\0", 1));
  }

  Status SendInput(bool* input) {
    char block[kBlock];
    const ssize_t got = ::read(fds_[0], block, sizeof block);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return Status::Ok();
    if (got > 0) return line_.Send(kIn, {block, static_cast<size_t>(got)});
    *input = false;
    return EndInput();
  }

  Status Take(const std::string& message) {
    const std::string_view bytes = std::string_view(message).substr(1);
    if (message[0] == kOut) return WriteAll(fds_[1], bytes);
    if (message[0] == kErr) return WriteAll(fds_[2], bytes);
    if (message[0] != kEnd) return Status::Ok();
    TRY_ASSIGN(end_, DecodeExecStatus(bytes));
    return Status::Ok();
  }

  WsLine line_;
  const bool terminal_;
  const int fds_[3];
  const UniqueFd wake_;
  std::optional<ExecEnd> end_;
  std::mutex mu_;
  std::string size_;        // guarded by mu_: to be sent
  bool end_input_ = false;  // guarded by mu_
};

// Between a port of a pod and a socket. The first message of each channel is the port's number.
class PortStream {
 public:
  explicit PortStream(net::UpgradedChannel upgraded) : line_(std::move(upgraded)) {}

  // Unavailable if the pod says within a moment that nobody listens.
  Status AwaitRefusal() {
    const auto until = SteadyClock::now() + kRefusalTime;
    while (early_.empty() && !closed_) {
      if (net::AwaitFd(line_.fd(), POLLIN, until).code() == Code::kDeadlineExceeded) break;
      TRY(Receive());
      if (!error_.empty()) return Unavailable(error_);
    }
    return Status::Ok();
  }

  void Carry(UniqueFd socket) {
    while (WriteAll(socket.get(), std::exchange(early_, {})).ok() && !closed_ && error_.empty()) {
      pollfd polls[2] = {{line_.fd(), POLLIN, 0}, {socket.get(), POLLIN, 0}};
      if (::poll(polls, 2, -1) < 0 && errno != EINTR) return;
      if (polls[1].revents != 0) {
        char block[kBlock];
        const ssize_t got = ::recv(socket.get(), block, sizeof block, 0);
        if (got <= 0) return;
        if (!line_.Send(0, {block, static_cast<size_t>(got)}).ok()) return;
      }
      if (!Receive().ok()) return;
    }
  }

 private:
  Status Receive() {
    std::vector<std::string> messages;
    TRY(line_.Receive(&messages, &closed_));
    for (const std::string& message : messages) {
      const size_t channel = static_cast<unsigned char>(message[0]);
      if (channel > 1 || !std::exchange(begun_[channel], true)) continue;
      (channel == 0 ? early_ : error_) += message.substr(1);
    }
    return Status::Ok();
  }

  WsLine line_;
  bool begun_[2] = {false, false};
  bool closed_ = false;
  std::string early_;  // came, not passed on
  std::string error_;
};

}  // namespace

Result<ExecEnd> DecodeExecStatus(std::string_view text) {
  TRY_ASSIGN(const json::object status, ParseJsonObject(text));
  if (GetStringOr(status, "status", "") == "Success") return ExecEnd{0, 0};
  const std::string message = GetStringOr(status, "message", "").substr(0, 2000);
  const json::value* details = status.if_contains("details");
  const json::value* causes = details != nullptr && details->is_object()
                                  ? details->get_object().if_contains("causes")
                                  : nullptr;
  if (causes != nullptr && causes->is_array()) {
    for (const json::value& cause : causes->get_array()) {
      if (!cause.is_object() || GetStringOr(cause.get_object(), "reason", "") != "ExitCode")
        continue;
      const std::string code = GetStringOr(cause.get_object(), "message", "");
      int number = -1;
      std::from_chars(code.data(), code.data() + code.size(), number);
      constexpr int kSignalBase = 128;
      if (number > kSignalBase && number <= kSignalBase + 64)
        return ExecEnd{-1, number - kSignalBase};
      if (number >= 0 && number <= 255) return ExecEnd{number, 0};
    }
  }
  const bool missing = message.find("no such file") != std::string::npos ||
                       message.find("not found") != std::string::npos;
  if (missing) return NotFound("the command cannot be run: " + message);
  return Internal("the command cannot be run: " + message);
}

Result<std::unique_ptr<Execution>> ExecInPod(const KubeClient* client, const std::string& pod,
                                             const std::vector<std::string>& argv,
                                             const ExecSpec& spec) {
  std::string path = pod + "/exec?container=task&stdin=true&stdout=true";
  path += spec.terminal ? "&tty=true" : "&stderr=true";
  for (const std::string& word : argv) path += "&command=" + net::PercentEncode(word);
  TRY_ASSIGN(net::UpgradedChannel upgraded, client->Upgrade(path, Headers(kProtocols)));
  return std::unique_ptr<Execution>(std::make_unique<PodExecution>(std::move(upgraded), spec));
}

Result<UniqueFd> DialPod(const KubeClient* client, const std::string& pod, uint16_t port) {
  TRY_ASSIGN(net::UpgradedChannel upgraded,
             client->Upgrade(pod + "/portforward?ports=" + std::to_string(port),
                             Headers("v4.channel.k8s.io")));
  auto stream = std::make_unique<PortStream>(std::move(upgraded));
  TRY(stream->AwaitRefusal());
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return ErrnoStatus(errno, "cannot make a socket");
  UniqueFd ours(pair[0]);
  UniqueFd theirs(pair[1]);
  std::thread([stream = std::move(stream), socket = std::move(theirs)]() mutable {
    stream->Carry(std::move(socket));
  }).detach();
  return ours;
}

}  // namespace shoal::engine::kubernetes
