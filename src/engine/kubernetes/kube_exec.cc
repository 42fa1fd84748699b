#include "engine/kubernetes/kube_exec.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <thread>

#include "base/json.h"
#include "engine/exec/remote_exec.h"
#include "engine/kubernetes/websocket_frames.h"

namespace shoal::engine::kubernetes {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Kind = WebSocketReader::Message::Kind;

constexpr size_t kBlock = 32 << 10;
constexpr std::chrono::seconds kPatience{30};           // for a server that does not read
constexpr std::chrono::milliseconds kRefusalTime{300};  // time in which a closed port is reported
// The first byte of each message.
constexpr char kIn = 0;
constexpr char kOut = 1;
constexpr char kErr = 2;
constexpr char kEnd = 3;
constexpr const char* kProtocols = "v5.channel.k8s.io, v4.channel.k8s.io";

std::vector<std::pair<std::string, std::string>> Headers(const char* protocols) {
  return {{"Sec-WebSocket-Version", "13"},
          {"Sec-WebSocket-Key", NewWebSocketKey()},
          {"Sec-WebSocket-Protocol", protocols}};
}

// Messages over a WebSocket; one thread handles both directions.
class WebSocketConnection {
 public:
  explicit WebSocketConnection(net::UpgradedChannel upgraded) : upgraded_(std::move(upgraded)) {}
  int fd() const { return upgraded_.channel->fd(); }

  Status Send(char channel, std::string_view bytes) {
    return SendRaw(EncodeWebSocketMessage(std::string(1, channel) + std::string(bytes)));
  }
  // Appends received messages; sets `closed` at the end.
  Status Receive(std::vector<std::string>* messages, bool* closed) {
    std::vector<WebSocketReader::Message> all;
    if (!upgraded_.early.empty()) TRY(reader_.Feed(std::exchange(upgraded_.early, {}), &all));
    std::vector<char> block(kBlock);
    while (!*closed) {
      const net::ByteChannel::Step step = upgraded_.channel->Read(block.data(), block.size());
      TRY(step.error);
      if (step.end) *closed = true;
      if (step.wait_for != 0) break;
      TRY(reader_.Feed({block.data(), step.bytes}, &all));
    }
    for (WebSocketReader::Message& message : all) {
      if (message.kind == Kind::kPing) TRY(SendRaw(EncodeWebSocketPong(message.bytes)));
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
  WebSocketReader reader_;
};

// The streams of a command in a pod, multiplexed over one WebSocket.
class PodTransport final : public ExecTransport {
 public:
  explicit PodTransport(net::UpgradedChannel upgraded) : line_(std::move(upgraded)) {}

  int fd() const override { return line_.fd(); }
  Status Send(std::string_view bytes) override { return line_.Send(kIn, bytes); }

  Status Receive(ExecOutput* said) override {
    std::vector<std::string> messages;
    TRY(line_.Receive(&messages, &said->closed));
    for (const std::string& message : messages) {
      const std::string_view bytes = std::string_view(message).substr(1);
      if (message[0] == kOut) said->out += bytes;
      if (message[0] == kErr) said->err += bytes;
      if (message[0] != kEnd) continue;
      end_ = DecodeExecStatus(bytes);
      said->closed = true;
    }
    return Status::Ok();
  }

  Result<ExecEnd> GetEnd() override { return end_; }

 private:
  WebSocketConnection line_;
  Result<ExecEnd> end_ =
      Unavailable("the connection to the command broke; how it ended is not known");
};

// Copies between a port of a pod and a socket. The first message of each channel is the port
// number.
class PortStream {
 public:
  explicit PortStream(net::UpgradedChannel upgraded) : line_(std::move(upgraded)) {}

  // Unavailable if the pod soon reports that no process listens.
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

  WebSocketConnection line_;
  bool begun_[2] = {false, false};
  bool closed_ = false;
  std::string early_;  // received, not passed on
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
  std::string path = pod + "/exec?container=task&stdin=true&stdout=true&stderr=true";
  for (const std::string& word : argv) path += "&command=" + net::PercentEncode(word);
  TRY_ASSIGN(net::UpgradedChannel upgraded, client->Upgrade(path, Headers(kProtocols)));
  return MakeRemoteExecution(std::make_unique<PodTransport>(std::move(upgraded)), spec);
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
