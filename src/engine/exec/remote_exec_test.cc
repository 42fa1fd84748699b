// Both ends of a command that is elsewhere, joined by pipes: input, signals, ends, and what happens
// when either side is gone. script/test-cluster docker and kubernetes run them over real engines.
#include "engine/exec/remote_exec.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/file.h"
#include "engine/exec/exec_frames.h"
#include "engine/exec/exec_server.h"
#include "engine/process/child_process.h"
#include "engine/process/spawn.h"

namespace shoal::engine {
namespace {

using Kind = ExecFrame::Kind;
using testing::HasSubstr;
using testing::SizeIs;

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

Ends MakePipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string ReadAll(int fd) {
  std::string all;
  char block[4096];
  for (ssize_t got = 0; (got = ::read(fd, block, sizeof block)) > 0;)
    all.append(block, static_cast<size_t>(got));
  return all;
}

// A child of the test instead of a command beside a task's program.
class ChildExecution final : public Execution {
 public:
  explicit ChildExecution(Child child) : child_(std::move(child)) {}
  void Signal(int signal) override { (void)SignalProcess(child_.pidfd.get(), signal); }
  void Resize(uint16_t rows, uint16_t columns) override {
    sizes += std::to_string(rows) + "x" + std::to_string(columns) + " ";
  }
  Result<ExecEnd> Wait() override {
    pollfd ended{child_.pidfd.get(), POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    const int status = ReapChild(child_);
    if (WIFSIGNALED(status)) return ExecEnd{-1, WTERMSIG(status)};
    return ExecEnd{WEXITSTATUS(status), 0};
  }

  std::string sizes;

 private:
  const Child child_;
};

// Three pipes to a far end in a thread of this process.
class PipeTransport final : public ExecTransport {
 public:
  PipeTransport(UniqueFd in, UniqueFd out, UniqueFd err)
      : in_(std::move(in)), out_(std::move(out)), err_(std::move(err)) {
    (void)::fcntl(out_.get(), F_SETFL, O_NONBLOCK);
    (void)::fcntl(err_.get(), F_SETFL, O_NONBLOCK);
  }
  // The error stream is closed last.
  int fd() const override { return err_.get(); }
  Status Send(std::string_view bytes) override { return WriteAll(in_.get(), bytes); }
  Status Receive(ExecOutput* said) override {
    said->closed = Take(err_.get(), &said->err);
    (void)Take(out_.get(), &said->out);
    return Status::Ok();
  }
  Result<ExecEnd> GetEnd() override { return Unavailable("nobody said how it ended"); }

 private:
  static bool Take(int fd, std::string* bytes) {
    char block[4096];
    for (;;) {
      const ssize_t got = ::read(fd, block, sizeof block);
      if (got < 0) return errno != EAGAIN && errno != EINTR;
      if (got == 0) return true;
      bytes->append(block, static_cast<size_t>(got));
    }
  }
  const UniqueFd in_;
  const UniqueFd out_;
  const UniqueFd err_;
};

class RemoteExec : public testing::Test {
 protected:
  RemoteExec() { (void)::signal(SIGPIPE, SIG_IGN); }
  ~RemoteExec() override {
    execution_.reset();
    if (far_.joinable()) far_.join();
  }

  void Start(const std::string& script, std::chrono::milliseconds grace = {}) {
    Ends in = MakePipe();
    Ends out = MakePipe();
    Ends err = MakePipe();
    ExecSpec ours;
    ours.fds[0] = input_.read.get();
    ours.fds[1] = output_.write.get();
    ours.fds[2] = errors_.write.get();
    execution_ =
        MakeRemoteExecution(std::make_unique<PipeTransport>(
                                std::move(in.write), std::move(out.read), std::move(err.read)),
                            ours);
    far_ = std::thread([this, script, grace, in = std::move(in.read), out = std::move(out.write),
                        err = std::move(err.write)]() mutable {
      const ExecServerStreams ends{in.get(), out.get(), err.get(), grace};
      far_end_ = ServeExec({}, ends, [&](const ExecSpec& spec) { return Begin(script, spec); });
      in.Reset();
      out.Reset();
      err.Reset();
    });
  }

  Result<std::unique_ptr<Execution>> Begin(const std::string& script, const ExecSpec& spec) {
    if (script.empty()) return NotFound("no program of worker-0 runs here now");
    TRY_ASSIGN(Child child, StartChildWithFds({"/bin/sh", "-c", script}, {"PATH=/usr/bin:/bin"},
                                              {spec.fds[0], spec.fds[1], spec.fds[2]}));
    auto made = std::make_unique<ChildExecution>(std::move(child));
    begun_ = made.get();
    return std::unique_ptr<Execution>(std::move(made));
  }

  std::string Said(Ends* of) {
    of->write.Reset();
    return ReadAll(of->read.get());
  }

  Ends input_ = MakePipe();
  Ends output_ = MakePipe();
  Ends errors_ = MakePipe();
  std::unique_ptr<Execution> execution_;
  ChildExecution* begun_ = nullptr;
  Result<ExecEnd> far_end_ = Internal("");
  std::thread far_;
};

TEST_F(RemoteExec, InputOutputAndExitCode) {
  Start("cat; echo wrong >&2; exit 7");
  ASSERT_TRUE(WriteAll(input_.write.get(), "blue\n").ok());
  input_.write.Reset();
  const auto end = execution_->Wait();
  ASSERT_TRUE(end.ok()) << end.status().message();
  EXPECT_EQ(end->exit_code, 7);
  EXPECT_EQ(end->signal, 0);
  EXPECT_EQ(Said(&output_), "blue\n");
  EXPECT_EQ(Said(&errors_), "wrong\n");
}

// Ten times what may be on its way, to who reads it and to who does not.
TEST_F(RemoteExec, MuchInput) {
  Start("wc -c");
  std::thread writer([this] {
    for (int i = 0; i < 10; ++i) (void)WriteAll(input_.write.get(), std::string(kExecWindow, 'x'));
    input_.write.Reset();
  });
  EXPECT_EQ(execution_->Wait().value_or(ExecEnd()).exit_code, 0);
  writer.join();
  EXPECT_EQ(Said(&output_), std::to_string(10 * kExecWindow) + "\n");
}

TEST_F(RemoteExec, ASignalDoesNotWaitBehindInputThatNobodyReads) {
  Start("trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done");
  std::thread writer([this] {
    while (WriteAll(input_.write.get(), std::string(1 << 16, 'x')).ok()) {
    }
  });
  std::thread teller([this] {
    char byte = 0;
    EXPECT_EQ(::read(output_.read.get(), &byte, 1), 1);
    execution_->Signal(SIGTERM);
  });
  EXPECT_EQ(execution_->Wait().value_or(ExecEnd()).exit_code, 9);
  teller.join();
  input_.read.Reset();
  writer.join();
}

TEST_F(RemoteExec, AnEndBySignalAndTheTerminalsSize) {
  Start("read word; kill -USR1 $$");
  execution_->Resize(50, 132);
  ASSERT_TRUE(WriteAll(input_.write.get(), "go\n").ok());
  const auto end = execution_->Wait();
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->signal, SIGUSR1);
}

TEST_F(RemoteExec, WhyItCouldNotBeStarted) {
  Start("");
  const auto end = execution_->Wait();
  EXPECT_EQ(end.status().code(), Code::kNotFound);
  EXPECT_THAT(end.status().message(), HasSubstr("no program of worker-0"));
}

// Whoever cannot be told of signals any more is hung up, and killed where it ignores that.
TEST_F(RemoteExec, ACallerThatIsGoneEndsTheCommand) {
  auto directory = TempDir::Create("exec");
  ASSERT_TRUE(directory.ok());
  const std::string ready = directory->path() / "ready";
  ASSERT_EQ(::mkfifo(ready.c_str(), 0600), 0);
  Start("trap '' HUP; echo > " + ready + "; read never", std::chrono::milliseconds(1));
  ASSERT_EQ(ReadFile(ready, 10).value_or(""), "\n");
  execution_.reset();
  far_.join();
  ASSERT_TRUE(far_end_.ok());
  EXPECT_EQ(far_end_->signal, SIGKILL);
}

TEST(RemoteExecWords, OfWhoIsNoLauncherAreTold) {
  Ends in = MakePipe();
  Ends out = MakePipe();
  Ends err = MakePipe();
  ASSERT_TRUE(WriteAll(err.write.get(), "shoal: unknown option --terminal\n").ok());
  err.write.Reset();
  ExecSpec spec;
  spec.fds[0] = in.read.get();
  const auto end =
      MakeRemoteExecution(std::make_unique<PipeTransport>(std::move(in.write), std::move(out.read),
                                                          std::move(err.read)),
                          spec)
          ->Wait();
  EXPECT_THAT(end.status().message(), HasSubstr("unknown option --terminal"));
}

TEST(ExecFrames, ComeBackAsTheyWere) {
  const std::string bytes = EncodeExecFrame({Kind::kSize, 24, 80}) +
                            EncodeExecFrame({Kind::kBytes, 0, 0, std::string(1000, 'x')}) +
                            EncodeExecFrame({Kind::kEnded, -1, 9});
  ExecFrameReader reader;
  std::vector<ExecFrame> frames;
  for (const char c : bytes) ASSERT_TRUE(reader.Feed(std::string(1, c), &frames).ok());
  ASSERT_THAT(frames, SizeIs(3));
  EXPECT_EQ(frames[0].b, 80);
  EXPECT_EQ(frames[1].bytes.size(), 1000u);
  EXPECT_EQ(frames[2].a, -1);
  std::string wrong = bytes;
  wrong[0] = 77;
  EXPECT_EQ(ExecFrameReader().Feed(wrong, &frames).code(), Code::kDataLoss);
  const std::string long_one =
      EncodeExecFrame({Kind::kBytes, 0, 0, std::string(kExecWindow + 1, 'x')});
  EXPECT_EQ(ExecFrameReader().Feed(long_one, &frames).code(), Code::kDataLoss);
}

}  // namespace
}  // namespace shoal::engine
