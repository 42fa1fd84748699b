// The end of an attempt whose processes an engine signals one after another.
#include "rendezvous/launcher/attempt.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"

namespace shoal::rendezvous {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class AttemptTest : public testing::Test {
 protected:
  void Start(const std::string& script, Duration settle) {
    AttemptSpec spec;
    spec.start.argv = {"/bin/sh", "-c", script};
    spec.start.work_dir = dir_.path().string();
    spec.start.grace_ms = 1000;
    spec.job_dir = dir_.path().string();
    spec.job_id = "job";
    spec.role = "worker";
    spec.settle = settle;
    AttemptCallbacks calls;
    calls.on_log = [this](std::string_view text) {
      printed_ += text;
      return true;
    };
    calls.on_report = [](const json::object&) {};
    calls.on_change = [] {};
    calls.on_end = [this](EndedMessage ended) {
      end_ = std::move(ended);
      loop_.Stop();
    };
    attempt_ = Attempt::Make(&loop_, std::move(spec), std::move(calls));
    attempt_->Start();
  }
  // Interrupts the attempt some turns after the program has printed its last line and gone.
  void InterruptAfterEnd(int turns) {
    loop_.After(milliseconds(5), [this, turns] {
      const pid_t program = static_cast<pid_t>(std::atoi(printed_.c_str()));
      const bool gone = program > 0 && ::kill(program, 0) != 0;
      if (!gone || turns > 0) return InterruptAfterEnd(gone ? turns - 1 : turns);
      if (!end_) attempt_->Interrupt("its launcher was told to stop by a signal");
    });
  }

  const TempDir dir_ = TempDir::Create().value();
  net::Loop loop_;
  std::unique_ptr<Attempt> attempt_;
  std::string printed_;
  std::optional<EndedMessage> end_;
};

// Slurm may signal the program some milliseconds before its launcher.
TEST_F(AttemptTest, AGoodEndJustBeforeASignalIsInterrupted) {
  Start("echo $$", hours(1));
  InterruptAfterEnd(20);
  loop_.Run();
  ASSERT_TRUE(end_);
  EXPECT_TRUE(end_->end.ok());
  EXPECT_EQ(end_->interrupted, "its launcher was told to stop by a signal");
}

TEST_F(AttemptTest, AGoodEndIsReportedOnceNoSignalCame) {
  Start("echo $$", milliseconds(1));
  loop_.Run();
  ASSERT_TRUE(end_);
  EXPECT_TRUE(end_->end.ok());
  EXPECT_EQ(end_->interrupted, "");
}

TEST_F(AttemptTest, ABadEndAndOneThatWasAskedForAreReportedAtOnce) {
  Start("exit 3", hours(1));
  loop_.Run();
  ASSERT_TRUE(end_);
  EXPECT_EQ(end_->end.exit_code, 3);
  end_.reset();
  Start("exec sleep 600", hours(1));
  attempt_->Drain();
  loop_.Run();
  ASSERT_TRUE(end_);
  EXPECT_EQ(end_->interrupted, "");
}

}  // namespace
}  // namespace shoal::rendezvous
