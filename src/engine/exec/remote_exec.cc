#include "engine/exec/remote_exec.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/mutex.h"
#include "engine/exec/exec_frames.h"

namespace shoal::engine {
namespace {

using Kind = ExecFrame::Kind;

constexpr size_t kBlock = 32 << 10;
constexpr size_t kMostWords = 4096;  // kept of an error message before the first frame
// Wait after the command's end: its background processes may keep the output open forever.
constexpr int kLinger_ms = 2'000;

// The caller's side of a remote command. Signal and Resize queue frames under mu_ and wake the
// thread in Wait, which alone uses the transport.
class RemoteExecution final : public Execution {
 public:
  RemoteExecution(std::unique_ptr<ExecTransport> transport, const ExecSpec& spec)
      : transport_(std::move(transport)),
        fds_{spec.fds[0], spec.fds[1], spec.fds[2]},
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void Signal(int signal) override { Queue({Kind::kSignal, signal}); }
  void Resize(uint16_t rows, uint16_t columns) override { Queue({Kind::kSize, rows, columns}); }

  Result<ExecEnd> Wait() override {
    for (bool more = true; more;) {
      ExecOutput said;
      TRY(transport_->Receive(&said));
      TRY(WriteAll(fds_[1], said.out));
      TRY(Take(said.err));
      if (said.closed) break;
      SendDue();
      TRY_ASSIGN(more, Await());
    }
    if (end_) return *end_;
    if (!hello_ && !words_.empty())
      return Internal("the command cannot be run: the task's launcher says: " + words_);
    return transport_->GetEnd();
  }

 private:
  void Queue(const ExecFrame& frame) {
    {
      const MutexLock lock(mu_);
      due_ += EncodeExecFrame(frame);
    }
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  // False once the command has ended and all output has arrived.
  Result<bool> Await() {
    pollfd polls[3] = {{transport_->fd(), POLLIN, 0},
                       {input_ && window_ > 0 ? fds_[0] : -1, POLLIN, 0},
                       {wake_.get(), POLLIN, 0}};
    const int ready = ::poll(polls, 3, end_ ? kLinger_ms : -1);
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "cannot wait for the command");
    uint64_t count = 0;
    if (polls[2].revents != 0) (void)!::read(wake_.get(), &count, sizeof count);
    if (polls[1].revents != 0) SendInput();
    return ready != 0;
  }

  void SendDue() {
    std::string due;
    {
      const MutexLock lock(mu_);
      due.swap(due_);
    }
    if (!due.empty()) Send(due);
  }

  // Unsent data is no longer needed if the server has closed: its end arrives separately.
  void Send(const std::string& bytes) {
    if (!transport_->Send(bytes).ok()) input_ = false;
  }

  void SendInput() {
    char block[kBlock];
    const ssize_t got = ::read(fds_[0], block, std::min(kBlock, window_));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      input_ = false;
      return Send(EncodeExecFrame({Kind::kEndOfInput}));
    }
    window_ -= static_cast<size_t>(got);
    Send(EncodeExecFrame({Kind::kBytes, 0, 0, {block, static_cast<size_t>(got)}}));
  }

  Status Take(std::string_view bytes) {
    std::string rest;
    if (!hello_) {
      words_ += bytes;
      const size_t at = words_.find(kExecHello);
      if (at == std::string::npos) {
        if (words_.size() > kMostWords) words_.erase(0, words_.size() - kMostWords);
        return Status::Ok();
      }
      hello_ = true;
      rest = words_.substr(at + kExecHello.size());
      bytes = rest;
    }
    std::vector<ExecFrame> frames;
    TRY(reader_.Feed(bytes, &frames));
    for (const ExecFrame& frame : frames) TRY(TakeFrame(frame));
    return Status::Ok();
  }

  Status TakeFrame(const ExecFrame& frame) {
    if (frame.kind == Kind::kBytes) return WriteAll(fds_[2], frame.bytes);
    if (frame.kind == Kind::kTaken)
      window_ = std::min(window_ + static_cast<size_t>(std::max(frame.a, 0)), kExecWindow);
    if (frame.kind == Kind::kEnded) end_ = ExecEnd{frame.a, frame.b};
    if (frame.kind != Kind::kFailed) return Status::Ok();
    const bool known = frame.a > 0 && frame.a <= static_cast<int>(Code::kUnauthenticated);
    return Status(known ? static_cast<Code>(frame.a) : Code::kInternal, frame.bytes);
  }

  const std::unique_ptr<ExecTransport> transport_;
  const int fds_[3];
  const UniqueFd wake_;
  bool input_ = true;
  size_t window_ = kExecWindow;
  bool hello_ = false;
  std::string words_;  // until then
  ExecFrameReader reader_;
  std::optional<ExecEnd> end_;
  Mutex mu_;
  std::string due_ GUARDED_BY(mu_);  // frames to be sent
};

}  // namespace

std::vector<std::string> EnterCommandArgv(const std::string& launcher, const std::string& job_id,
                                          const std::string& role, int index,
                                          const ExecSpec& spec) {
  std::vector<std::string> words{launcher, "enter", "--job",   job_id,
                                 "--role", role,    "--index", std::to_string(index)};
  if (spec.terminal)
    words.insert(words.end(), {"--terminal", "--rows", std::to_string(spec.rows), "--columns",
                               std::to_string(spec.columns)});
  for (const std::string& variable : spec.env) words.insert(words.end(), {"--env", variable});
  words.emplace_back("--");
  words.insert(words.end(), spec.argv.begin(), spec.argv.end());
  return words;
}

std::unique_ptr<Execution> MakeRemoteExecution(std::unique_ptr<ExecTransport> transport,
                                               const ExecSpec& spec) {
  return std::make_unique<RemoteExecution>(std::move(transport), spec);
}

}  // namespace shoal::engine
