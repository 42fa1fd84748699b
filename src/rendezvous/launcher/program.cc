#include "rendezvous/launcher/program.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/log.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kTurnBytes = 1 << 20;  // read from one program before others get a turn
// A program that prints without pause would wake the loop for each of its writes. One that prints
// again so soon after a read, and less than kMuch, is read this much later.
constexpr auto kNap = std::chrono::milliseconds(1);
constexpr size_t kMuch = 256 << 10;
constexpr size_t kReportLine = 4096;
constexpr int kOutputPipe = 1 << 20;

struct Pipe {
  UniqueFd in;   // read end, non-blocking
  UniqueFd out;  // write end
};

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot make a pipe");
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  if (::fcntl(pipe.in.get(), F_SETFL, O_NONBLOCK) != 0) return ErrnoStatus(errno, "a pipe");
  return pipe;
}

// Owns the process tree and one output pipe per process. Pipes are read in turns of kTurnBytes, and
// later for processes that print without pause, so that one program cannot occupy the loop. on_end
// waits until the tree is gone and every pipe is empty.
class ProcessTreeProgram final : public Program {
 public:
  ProcessTreeProgram(net::Loop* loop, ProgramCallbacks callbacks)
      : loop_(loop), callbacks_(std::move(callbacks)) {}

  ~ProcessTreeProgram() override {
    for (const net::Loop::Id id : {report_watch_, exit_watch_, kill_timer_, nap_timer_}) {
      loop_->Cancel(id);
    }
    for (const Output& one : outputs_) loop_->Cancel(one.watch);
  }

  Status Open(host::ProcessSpec spec, const host::Isolation& isolation) {
    TRY_ASSIGN(Pipe report, MakePipe());
    std::vector<UniqueFd> writers;  // until the process tree has inherited them
    for (size_t i = 0; i <= spec.additional.size(); ++i) {
      TRY_ASSIGN(Pipe output, MakePipe());
      ::fcntl(output.in.get(), F_SETPIPE_SZ, kOutputPipe);  // best effort: a limit may forbid it
      int* const fds[2] = {i == 0 ? &spec.stdout_fd : &spec.additional[i - 1].stdout_fd,
                           i == 0 ? &spec.stderr_fd : &spec.additional[i - 1].stderr_fd};
      *fds[0] = *fds[1] = output.out.get();
      writers.push_back(std::move(output.out));
      outputs_.push_back({std::move(output.in)});
    }
    spec.inherited.push_back({report.out.get(), kReportFd});
    TRY_ASSIGN(tree_, host::ProcessTree::Start(spec, isolation));
    report_ = std::move(report.in);
    TRY_ASSIGN(exit_watch_, loop_->WatchReadable(tree_->exit_fd(), [this] { Ended(); }));
    TRY_ASSIGN(report_watch_, loop_->WatchReadable(report_.get(), [this] {
      if (ReadReports() == Read::kEnd) loop_->Cancel(std::exchange(report_watch_, 0));
    }));
    return WatchOutput();
  }

  void Drain(Duration grace, int signal) override {
    if (std::exchange(draining_, true)) return;
    if (signal == 0) return Terminate(grace);
    (void)tree_->Signal(signal);
    kill_timer_ = loop_->After(grace, [this, grace] { Terminate(grace); });
  }

  void Signal(int signal) override { (void)tree_->Signal(signal); }
  void Kill() override { tree_->KillAll(); }

  void Resume() override {
    if (!paused_) return;
    paused_ = false;
    if (exit_) return Finish();
    WatchOrSay();
  }

  Result<host::Usage> Sample() override { return tree_->Sample(); }
  int64_t pid() const override { return tree_->pid(); }
  std::vector<pid_t> Pids() const override { return tree_->Pids(); }

 private:
  struct Output {
    UniqueFd in;
    net::Loop::Id watch = 0;  // 0: at its end, paused, or delayed
    bool ended = false;
    TimePoint read_at{};
  };

  Status WatchOutput() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i].ended || outputs_[i].watch != 0) continue;
      TRY_ASSIGN(outputs_[i].watch, loop_->WatchReadable(outputs_[i].in.get(),
                                                         [this, i] { Readable(&outputs_[i], i); }));
    }
    return Status::Ok();
  }

  void Readable(Output* one, size_t process) {
    const size_t before = read_bytes_;
    Read last = Read::kSome;
    // A partial block has emptied the pipe.
    for (size_t full = 1; last == Read::kSome && !paused_ && full * kReadBytes <= kTurnBytes;
         ++full) {
      const size_t so_far = read_bytes_;
      last = ReadOutput(process);
      if (read_bytes_ - so_far < kReadBytes) break;
    }
    one->ended = last == Read::kEnd;
    if (one->ended) loop_->Cancel(std::exchange(one->watch, 0));
    if (paused_) return Unwatch();
    const TimePoint now = RealClock::Get()->Now();
    const bool busy = now - std::exchange(one->read_at, now) < 2 * kNap;
    if (busy && !one->ended && read_bytes_ - before < kMuch) Nap();
  }

  void Nap() {
    Unwatch();
    if (nap_timer_ != 0) return;
    nap_timer_ = loop_->After(kNap, [this] {
      nap_timer_ = 0;
      if (!paused_ && !exit_) WatchOrSay();
    });
  }

  void WatchOrSay() {
    const Status status = WatchOutput();
    if (!status.ok()) LogError("the program's output: {}", status.message());
  }

  void Unwatch() {
    for (Output& one : outputs_) loop_->Cancel(std::exchange(one.watch, 0));
  }

  void Terminate(Duration grace) {
    (void)tree_->Signal(SIGTERM);  // fails only if it has ended already
    kill_timer_ = loop_->After(grace, [this] { Kill(); });
  }

  enum class Read { kSome, kNothing, kEnd };

  // One block of a process's output.
  Read ReadOutput(size_t process) {
    const ssize_t got = ::read(outputs_[process].in.get(), block_.get(), kReadBytes);
    if (got < 0 && errno == EINTR) return Read::kSome;
    if (got < 0 && errno == EAGAIN) return Read::kNothing;
    if (got <= 0) return Read::kEnd;
    read_bytes_ += static_cast<size_t>(got);
    paused_ =
        !callbacks_.on_output(static_cast<int>(process), {block_.get(), static_cast<size_t>(got)});
    return Read::kSome;
  }

  Read ReadReports() {
    char bytes[kReportLine];
    const ssize_t got = ::read(report_.get(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return Read::kSome;
    if (got < 0 && errno == EAGAIN) return Read::kNothing;
    if (got <= 0) return Read::kEnd;
    for (const char c : std::string_view(bytes, static_cast<size_t>(got))) {
      if (c == '\n') {
        TakeReport();
      } else if (report_line_.size() <= kReportLine) {
        report_line_ += c;
      }
    }
    return Read::kSome;
  }

  // A report that is not a JSON object, or too long, is the program's mistake: it is only logged.
  void TakeReport() {
    const std::string line = std::exchange(report_line_, {});
    if (line.empty()) return;
    auto report = line.size() <= kReportLine
                      ? ParseJsonObject(line)
                      : Result<json::object>(ResourceExhausted("longer than 4096 bytes"));
    if (report.ok()) {
      callbacks_.on_report(*report);
    } else {
      LogWarning("a report of the program was dropped: {}", report.status().message());
    }
  }

  void Ended() {
    loop_->Cancel(std::exchange(exit_watch_, 0));
    loop_->Cancel(std::exchange(kill_timer_, 0));
    loop_->Cancel(std::exchange(nap_timer_, 0));
    exit_ = tree_->Wait(std::chrono::seconds(1)).value_or(host::ProcessExit{});
    if (!paused_) Finish();
  }

  // The tree is gone, so the pipes hold all remaining output.
  void Finish() {
    Unwatch();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      while (!paused_ && ReadOutput(i) == Read::kSome) {
      }
    }
    if (paused_) return;
    loop_->Cancel(std::exchange(report_watch_, 0));
    while (ReadReports() == Read::kSome) {
    }
    TakeReport();
    const auto on_end = callbacks_.on_end;
    on_end(*exit_);
  }

  net::Loop* const loop_;
  const ProgramCallbacks callbacks_;
  std::unique_ptr<host::ProcessTree> tree_;
  std::vector<Output> outputs_;  // by process
  UniqueFd report_;
  std::string report_line_;
  std::optional<host::ProcessExit> exit_;
  bool draining_ = false;
  bool paused_ = false;
  net::Loop::Id report_watch_ = 0;
  net::Loop::Id exit_watch_ = 0;
  net::Loop::Id kill_timer_ = 0;
  net::Loop::Id nap_timer_ = 0;
  size_t read_bytes_ = 0;  // in all
  const std::unique_ptr<char[]> block_ = std::make_unique_for_overwrite<char[]>(kReadBytes);
};

}  // namespace

Result<std::unique_ptr<Program>> Program::Start(net::Loop* loop, ProgramSpec spec,
                                                const host::Isolation& isolation,
                                                ProgramCallbacks callbacks) {
  auto program = std::make_unique<ProcessTreeProgram>(loop, std::move(callbacks));
  TRY(program->Open(std::move(spec.process), isolation));
  return std::unique_ptr<Program>(std::move(program));
}

}  // namespace shoal::rendezvous
