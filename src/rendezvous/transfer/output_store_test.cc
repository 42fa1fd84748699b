// Outputs of tasks on other hosts: stored completely, once, after any interruption, or reported as
// lost; and senders that violate the protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/id.h"
#include "rendezvous/integration/job_harness.h"
#include "rendezvous/lifecycle/core_driver.h"
#include "rendezvous/transfer/output_store.h"

namespace shoal::rendezvous {
namespace {

namespace fs = std::filesystem;
using job::JobState;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

std::string TextOf(const fs::path& path) {
  return ReadFile(path, size_t{1} << 30).value_or("(none)");
}

// ---- With real launchers ------------------------------------------------------------------------

constexpr const char* kWrites =
    "cd $SHOAL_OUTPUT && mkdir -p d/e && echo one > d/a && : > empty && printf x > d/e/run && "
    "chmod +x d/e/run && ln -s d/a link && head -c 3000000 /dev/zero > large";

TEST(Outputs, ComeBackFromAnotherHost) {
  JobHarness bench(JobOf({ShellRole("worker", 2, std::string(kWrites) + "; echo done")}));
  bench.StartCoordinator();
  bench.StartController();
  const std::string away = bench.StartRemoteLauncher("worker", 0);
  bench.StartLauncher("worker", 1);  // sees the directory: writes it there itself
  const Verdict verdict = bench.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kSucceeded) << verdict.reason;
  EXPECT_FALSE(fs::exists(fs::path(away) / "outputs/worker-0.0"));
  EXPECT_EQ(bench.LogOf("worker", 0), "done\n");
  for (const char* name : {"worker-0.0", "worker-1.0"}) {
    const fs::path there = fs::path(bench.dir()) / "outputs" / name;
    EXPECT_EQ(TextOf(there / "d/a"), "one\n");
    EXPECT_EQ(TextOf(there / "empty"), "");
    EXPECT_EQ(TextOf(there / "large"), std::string(3'000'000, '\0'));
    EXPECT_EQ(fs::read_symlink(there / "link"), "d/a");
    EXPECT_EQ(::access((there / "d/e/run").c_str(), X_OK), 0);
  }
  const fs::path outputs = fs::path(bench.dir()) / "outputs";
  EXPECT_TRUE(fs::is_empty(outputs / ".incoming"));
  for (const auto& entry : fs::directory_iterator(outputs)) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".probe")) << entry.path();
  }
}

TEST(Outputs, OfEveryAttempt) {
  job::Role worker =
      ShellRole("worker", 1, "echo $SHOAL_ATTEMPT > $SHOAL_OUTPUT/which; test $SHOAL_ATTEMPT = 1");
  worker.restart.when = job::RestartWhen::kAlways;
  worker.restart.limit = 2;
  worker.restart.backoff = std::chrono::milliseconds(1);
  JobHarness bench(JobOf({worker}));
  bench.StartCoordinator();
  bench.StartController();
  bench.StartRemoteLauncher("worker", 0);
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded);
  for (const char* attempt : {"0", "1"}) {
    const fs::path there = fs::path(bench.dir()) / "outputs" / ("worker-0." + std::string(attempt));
    EXPECT_EQ(TextOf(there / "which"), std::string(attempt) + "\n");
  }
}

// Two hosts may see one directory by different paths, for instance on a network file system.
TEST(Outputs, StayWhereTheyAreIfThatIsTheCoordinatorsOwnPlace) {
  JobHarness bench(JobOf({ShellRole("worker", 1, kWrites)}));
  bench.StartCoordinator();
  bench.StartController();
  fs::create_directories(fs::path(bench.dir()) / "outputs");
  const std::string away = bench.StartRemoteLauncher("worker", 0);
  fs::create_directory_symlink(fs::path(bench.dir()) / "outputs", fs::path(away) / "outputs");
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded);
  EXPECT_EQ(TextOf(fs::path(bench.dir()) / "outputs/worker-0.0/d/a"), "one\n");
  for (const JobEvent& event : bench.events) EXPECT_THAT(event.text, Not(HasSubstr("lost")));
}

TEST(Outputs, WhatCannotBeSentIsNamedAndTheRestComes) {
  JobHarness bench(JobOf({ShellRole(
      "worker", 1, "cd $SHOAL_OUTPUT; mkfifo pipe; ln -s /etc/passwd out; echo a > a")}));
  bench.StartCoordinator();
  bench.StartController();
  bench.StartRemoteLauncher("worker", 0);
  EXPECT_EQ(bench.RunToVerdict().state, JobState::kSucceeded);
  EXPECT_EQ(TextOf(fs::path(bench.dir()) / "outputs/worker-0.0/a"), "a\n");
  EXPECT_FALSE(fs::exists(fs::path(bench.dir()) / "outputs/worker-0.0/out"));
  const auto told = std::count_if(bench.events.begin(), bench.events.end(), [](const JobEvent& e) {
    return e.text.starts_with("outputs of worker 0 are lost: '") &&
           e.text.find("' and 1 others, which cannot be sent") != std::string::npos;
  });
  EXPECT_EQ(told, 1);
}

TEST(Outputs, GoOnWithACoordinatorThatCameBack) {
  JobHarness bench(JobOf({ShellRole("worker", 1,
                                    "cd $SHOAL_OUTPUT; echo a > a; mkdir m; ln -s ../a m/l; "
                                    "head -c 40000000 /dev/urandom > m/large; sha256sum < m/large; "
                                    "echo z > z")}));
  pid_t coordinator = bench.SpawnCoordinator();
  ASSERT_TRUE(bench.Until([&] { return ReadCoordinatorFile(bench.dir()).ok(); }));
  bench.StartController();
  bench.StartRemoteLauncher("worker", 0);
  const fs::path coming = fs::path(bench.dir()) / "outputs/.incoming/worker-0.0/m/large";
  std::error_code error;
  for (const int64_t least : {1'000'000, 15'000'000}) {
    // The sender lives on this loop: it sends nothing in the meantime.
    ASSERT_TRUE(bench.Until([&] {
      return fs::exists(coming, error) && static_cast<int64_t>(fs::file_size(coming)) >= least;
    }));
    bench.KillProcess(coordinator, SIGKILL);
    const auto had = fs::file_size(coming);
    EXPECT_LT(had, 40'000'000u);
    coordinator = bench.SpawnCoordinator();
    ASSERT_TRUE(
        bench.Until([&] { return !fs::exists(coming, error) || fs::file_size(coming) > had; }));
    if (!fs::exists(coming)) break;  // it was fast
  }
  const Verdict verdict = bench.RunToVerdict();
  EXPECT_EQ(verdict.state, JobState::kSucceeded) << verdict.reason;
  const fs::path there = fs::path(bench.dir()) / "outputs/worker-0.0";
  EXPECT_EQ(Sha256Hex(TextOf(there / "m/large")), bench.LogOf("worker", 0).substr(0, 64));
  EXPECT_EQ(TextOf(there / "m/l"), "a\n");
  EXPECT_EQ(TextOf(there / "z"), "z\n");
}

// ---- The rules ----------------------------------------------------------------------------------

TEST(Outputs, WhoseStoringTakesTimeIsNotTakenForDisobedient) {
  CoreDriver driver(Make(1, 0));
  driver.JoinAll();
  driver.Do(Command{StopMode::kDrain, "enough"});
  for (int i = 0; i < 60; ++i) {
    driver.Do(LauncherHeartbeat{1, 0, Millis(0), true});
    driver.Pass(seconds(1));
    EXPECT_EQ(driver.Count(Action::Kind::kKill), 0) << i;
  }
  EXPECT_FALSE(driver.core.verdict());
  driver.Do(Command{StopMode::kKill, "now"});
  ASSERT_EQ(driver.Count(Action::Kind::kKill), 1);
  EXPECT_TRUE(driver.last.back().abandon || driver.last.front().abandon);
  for (int i = 0; i < 60; ++i) {
    driver.Do(LauncherHeartbeat{1, 0, Millis(0), true});
    driver.Pass(seconds(1));
  }
  EXPECT_TRUE(driver.core.verdict());
}

// ---- A sender that lies -------------------------------------------------------------------------

class FakeConnection final : public Connection {
 public:
  void Send(std::string_view type, json::object fields) override {
    said.emplace_back(type);
    last = std::move(fields);
  }
  void SendShared(std::shared_ptr<const std::string> /*bytes*/, bool /*text*/) override {}
  void SendBinary(std::string /*frame*/) override {}
  size_t queued_bytes() const override { return 0; }
  void OnDrain(std::function<void()> /*fn*/) override {}
  void Close(std::string_view /*reason*/) override { said.emplace_back("(closed)"); }
  const std::string& address() const override { return address_; }

  std::vector<std::string> said;
  json::object last;

 private:
  const std::string address_ = "nowhere";
};

class OutputsOf : public testing::Test {
 protected:
  void Come(FakeConnection* connection, const std::string& id = std::string(32, 'a')) {
    EXPECT_TRUE(store_->Add(connection, {"worker", 1, 0}, {{"upload", id}}).ok());
  }
  Status Entry(FakeConnection* connection, const OutputEntry& entry) {
    return store_->Received(connection, "entry", ToJson(entry));
  }
  Status File(FakeConnection* connection, const std::string& path, const std::string& text) {
    TRY(Entry(connection,
              {path, OutputEntry::Kind::kFile, false, static_cast<int64_t>(text.size()), ""}));
    return text.empty() ? Status::Ok() : store_->Received(connection, text);
  }
  Status Whole(FakeConnection* connection, int entries) {
    return store_->Received(connection, "whole", {{"entries", entries}});
  }
  // Another coordinator.
  void Restart() { store_ = std::make_unique<OutputStore>(temp_.path() / "outputs"); }
  fs::path There(const std::string& path = "") const {
    return temp_.path() / "outputs/worker-1.0" / path;
  }
  bool NothingComing() const { return fs::is_empty(temp_.path() / "outputs/.incoming"); }

  TempDir temp_ = TempDir::Create().value();
  std::unique_ptr<OutputStore> store_ = std::make_unique<OutputStore>(temp_.path() / "outputs");
};

TEST_F(OutputsOf, AnHonestSenderAreStored) {
  FakeConnection connection;
  Come(&connection);
  EXPECT_EQ(GetIntOr(connection.last, "entries", -1), 0);
  EXPECT_TRUE(File(&connection, "a", "text").ok());
  EXPECT_TRUE(Whole(&connection, 1).ok());
  EXPECT_THAT(connection.said, ElementsAre("outputs", "stored"));
  EXPECT_EQ(TextOf(There("a")), "text");
  EXPECT_TRUE(NothingComing());
  FakeConnection again;  // the acknowledgement was lost
  Come(&again);
  EXPECT_TRUE(GetBoolOr(again.last, "stored", false));
}

TEST_F(OutputsOf, PathsThatLeadOutAreRefused) {
  for (const char* path : {"../a", "/tmp/a", "a/../../b", "", ".", "a//b", "a\nb"}) {
    FakeConnection connection;
    Come(&connection);
    (void)File(&connection, path, "x");
    EXPECT_THAT(connection.said, ElementsAre("outputs", "failed")) << path;
    store_->Remove(&connection);
  }
  for (const char* target : {"/etc", "../../x", "a/../../x"}) {
    FakeConnection connection;
    Come(&connection);
    EXPECT_TRUE(Entry(&connection, {"l", OutputEntry::Kind::kLink, false, 0, target}).ok());
    EXPECT_THAT(connection.said, ElementsAre("outputs", "failed")) << target;
    store_->Remove(&connection);
  }
  EXPECT_FALSE(fs::exists(There()));
}

TEST_F(OutputsOf, NothingIsWrittenThroughALink) {
  FakeConnection connection;
  Come(&connection);
  EXPECT_TRUE(Entry(&connection, {"d", OutputEntry::Kind::kLink, false, 0, "e"}).ok());
  EXPECT_TRUE(Entry(&connection, {"e", OutputEntry::Kind::kDirectory, false, 0, ""}).ok());
  EXPECT_TRUE(Entry(&connection, {"d/x", OutputEntry::Kind::kFile, false, 1, ""}).ok());
  EXPECT_THAT(connection.said, ElementsAre("outputs", "failed"));
  EXPECT_TRUE(NothingComing());
}

TEST_F(OutputsOf, SizesAreKept) {
  FakeConnection more;
  Come(&more);
  EXPECT_TRUE(Entry(&more, {"a", OutputEntry::Kind::kFile, false, 2, ""}).ok());
  EXPECT_FALSE(store_->Received(&more, "three").ok());
  store_->Remove(&more);
  FakeConnection less;
  Come(&less, std::string(32, 'b'));
  EXPECT_TRUE(Entry(&less, {"a", OutputEntry::Kind::kFile, false, 2, ""}).ok());
  EXPECT_TRUE(Whole(&less, 1).ok());
  EXPECT_THAT(less.said, ElementsAre("outputs", "failed"));
  store_->Remove(&less);
  FakeConnection twice;
  Come(&twice);
  EXPECT_TRUE(File(&twice, "a", "x").ok());
  (void)File(&twice, "a", "y");
  EXPECT_THAT(twice.said, ElementsAre("outputs", "failed"));
  store_->Remove(&twice);
  FakeConnection huge;
  Come(&huge);
  EXPECT_TRUE(Entry(&huge, {"a", OutputEntry::Kind::kFile, false, kMaxOutputBytes + 1, ""}).ok());
  EXPECT_THAT(huge.said, ElementsAre("outputs", "failed"));
  store_->Remove(&huge);
  FakeConnection bytes;
  Come(&bytes);
  EXPECT_FALSE(store_->Received(&bytes, "what is this").ok());
  EXPECT_FALSE(store_->Received(&bytes, "nonsense", {}).ok());
  EXPECT_FALSE(store_->Add(&bytes, {"worker", 1, 0}, {{"upload", "../x"}}).ok());
}

TEST_F(OutputsOf, AnotherCoordinatorGoesOnWithinAFile) {
  FakeConnection first;
  Come(&first);
  EXPECT_TRUE(File(&first, "a", "whole").ok());
  EXPECT_TRUE(Entry(&first, {"b", OutputEntry::Kind::kFile, true, 6, ""}).ok());
  EXPECT_TRUE(store_->Received(&first, "abc").ok());
  Restart();
  FakeConnection second;
  Come(&second);
  EXPECT_EQ(GetIntOr(second.last, "entries", -1), 1);
  EXPECT_EQ(GetIntOr(second.last, "bytes", -1), 3);
  EXPECT_TRUE(Entry(&second, {"b", OutputEntry::Kind::kFile, true, 6, ""}).ok());
  EXPECT_TRUE(store_->Received(&second, "def").ok());
  EXPECT_TRUE(Entry(&second, {"c", OutputEntry::Kind::kLink, false, 0, "a"}).ok());
  Restart();
  FakeConnection third;
  Come(&third);
  EXPECT_EQ(GetIntOr(third.last, "entries", -1), 2);
  EXPECT_TRUE(Entry(&third, {"c", OutputEntry::Kind::kLink, false, 0, "a"}).ok());
  EXPECT_TRUE(Whole(&third, 3).ok());
  EXPECT_EQ(third.said.back(), "stored");
  EXPECT_EQ(TextOf(There("b")), "abcdef");
  EXPECT_EQ(TextOf(There("c")), "whole");
}

TEST_F(OutputsOf, ASenderThatComesAgainTakesOverAndAnotherBeginsAnew) {
  FakeConnection first, again, other;
  Come(&first);
  EXPECT_TRUE(Entry(&first, {"a", OutputEntry::Kind::kFile, false, 2, ""}).ok());
  EXPECT_TRUE(store_->Received(&first, "x").ok());
  Come(&again);
  EXPECT_EQ(first.said.back(), "(closed)");
  EXPECT_TRUE(store_->Received(&first, "y").ok());  // too late, and ignored
  EXPECT_EQ(GetIntOr(again.last, "bytes", -1), 1);
  EXPECT_TRUE(Entry(&again, {"b", OutputEntry::Kind::kFile, false, 2, ""}).ok());  // not the same
  EXPECT_EQ(again.said.back(), "failed");
  Come(&other, std::string(32, 'b'));
  EXPECT_EQ(GetIntOr(other.last, "entries", -1), 0);
  EXPECT_TRUE(File(&other, "c", "z").ok());
  EXPECT_TRUE(Whole(&other, 1).ok());
  EXPECT_FALSE(fs::exists(There("a")));
  EXPECT_EQ(TextOf(There("c")), "z");
}

}  // namespace
}  // namespace shoal::rendezvous
