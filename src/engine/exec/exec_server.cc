#include "engine/exec/exec_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "engine/exec/exec_frames.h"

namespace shoal::engine {
namespace {

using Kind = ExecFrame::Kind;
using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kBlock = 32 << 10;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// Transfers frames on its own thread while another one waits for the command.
class Carrier {
 public:
  Carrier(const ExecServerStreams& ends, Execution* execution, UniqueFd input, int errors)
      : ends_(ends),
        execution_(execution),
        input_(std::move(input)),
        errors_(errors),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    (void)::fcntl(input_.get(), F_SETFL, O_NONBLOCK);
    (void)::fcntl(errors_, F_SETFL, O_NONBLOCK);
    thread_ = std::thread([this] { Carry(); });
  }
  // After the command's end: sends all remaining output.
  void End() {
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
    thread_.join();
    while (TellErrors()) {
    }
  }

 private:
  void Carry() {
    for (;;) {
      pollfd polls[4] = {{wake_.get(), POLLIN, 0},
                         {gone_ ? -1 : ends_.in, POLLIN, 0},
                         {pending_.empty() ? -1 : input_.get(), POLLOUT, 0},
                         {errors_, POLLIN, 0}};
      if (::poll(polls, 4, Patience()) < 0 && errno != EINTR) return;
      if (polls[0].revents != 0) return;
      if (polls[1].revents != 0 && !Hear()) HangUp();
      if (polls[3].revents != 0) TellErrors();
      Feed();
      if (kill_at_ && SteadyClock::now() >= *kill_at_) {
        kill_at_.reset();
        execution_->Signal(SIGKILL);
      }
    }
  }

  int Patience() const {
    if (!kill_at_) return -1;
    const auto left = std::chrono::ceil<milliseconds>(*kill_at_ - SteadyClock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

  void HangUp() {
    gone_ = true;
    execution_->Signal(SIGHUP);
    kill_at_ = SteadyClock::now() + ends_.grace;
  }

  // False if the caller is gone or sends an invalid frame.
  bool Hear() {
    char block[kBlock];
    const ssize_t got = ::read(ends_.in, block, sizeof block);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (got <= 0) return false;
    std::vector<ExecFrame> frames;
    if (!reader_.Feed({block, static_cast<size_t>(got)}, &frames).ok()) return false;
    for (const ExecFrame& frame : frames) {
      if (frame.kind == Kind::kBytes) pending_ += frame.bytes;
      if (frame.kind == Kind::kEndOfInput) end_of_input_ = true;
      if (frame.kind == Kind::kSignal && frame.a > 0 && frame.a < NSIG) execution_->Signal(frame.a);
      if (frame.kind == Kind::kSize)
        execution_->Resize(static_cast<uint16_t>(frame.a), static_cast<uint16_t>(frame.b));
    }
    return pending_.size() <= kExecWindow;
  }

  // Writes as much pending input as the command accepts now.
  void Feed() {
    if (!pending_.empty()) {
      ssize_t put = ::write(input_.get(), pending_.data(), pending_.size());
      if (put < 0 && errno != EAGAIN && errno != EINTR)
        put = static_cast<ssize_t>(pending_.size());  // the command has closed its input: discard
      if (put > 0) {
        pending_.erase(0, static_cast<size_t>(put));
        SendFrame({Kind::kTaken, static_cast<int32_t>(put)});
      }
    }
    if (end_of_input_ && pending_.empty()) input_.Reset();
  }

  // False if no output is available.
  bool TellErrors() {
    char block[kBlock];
    const ssize_t got = ::read(errors_, block, sizeof block);
    if (got <= 0) return false;
    SendFrame({Kind::kBytes, 0, 0, {block, static_cast<size_t>(got)}});
    return true;
  }

  void SendFrame(const ExecFrame& frame) { (void)WriteAll(ends_.err, EncodeExecFrame(frame)); }

  const ExecServerStreams ends_;
  Execution* const execution_;
  UniqueFd input_;    // write end of the command's input
  const int errors_;  // read end of the command's standard error
  const UniqueFd wake_;
  bool gone_ = false;  // the caller has closed
  std::optional<SteadyClock::time_point> kill_at_;
  std::string pending_;  // input not written yet
  bool end_of_input_ = false;
  ExecFrameReader reader_;
  std::thread thread_;
};

Result<ExecEnd> Serve(
    ExecSpec spec, const ExecServerStreams& ends,
    const std::function<Result<std::unique_ptr<Execution>>(const ExecSpec&)>& start) {
  TRY_ASSIGN(Pipe input, MakePipe());
  TRY_ASSIGN(const Pipe errors, MakePipe());
  spec.fds[0] = input.read.get();
  spec.fds[1] = ends.out;
  spec.fds[2] = errors.write.get();
  TRY_ASSIGN(const std::unique_ptr<Execution> execution, start(spec));
  Carrier carrier(ends, execution.get(), std::move(input.write), errors.read.get());
  const Result<ExecEnd> end = execution->Wait();
  carrier.End();
  return end;
}

}  // namespace

Result<ExecEnd> ServeExec(
    ExecSpec spec, const ExecServerStreams& ends,
    const std::function<Result<std::unique_ptr<Execution>>(const ExecSpec&)>& start) {
  TRY(WriteAll(ends.err, kExecHello));
  Result<ExecEnd> end = Serve(std::move(spec), ends, start);
  const ExecFrame last = end.ok()
                             ? ExecFrame{Kind::kEnded, end->exit_code, end->signal}
                             : ExecFrame{Kind::kFailed, static_cast<int32_t>(end.status().code()),
                                         0, end.status().message()};
  (void)WriteAll(ends.err, EncodeExecFrame(last));
  return end;
}

}  // namespace shoal::engine
