#include "controller/retention/log_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <random>

#include "base/file.h"
#include "controller/files/log_store.h"
#include "controller/retention/removed_logs.h"
#include "controller/store/open_store.h"
#include "job/execution/job_dir.h"
#include "rendezvous/logs/log_archive.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LogKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    auto directory = TempDir::Create();
    ASSERT_TRUE(directory.ok());
    directory_.emplace(std::move(*directory));
    home_ = StateHome(directory_->path());
    auto store = OpenStore("sqlite:" + (directory_->path() / "shoal.db").string());
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    store_ = std::move(*store);
    auto watch = store_->Watch([this] { Changed(); });
    ASSERT_TRUE(watch.ok());
    watch_ = std::move(*watch);
  }
  void TearDown() override {
    keeper_.reset();
    watch_.reset();
  }

  void Changed() {
    const std::lock_guard lock(mu_);
    changed_.notify_all();
  }

  void StartKeeper() {
    LogKeeperOptions options;
    options.store = store_.get();
    options.home = home_;
    options.clock = RealClock::Get();
    options.limits_of = [this](const std::string& team) -> Result<LogLimits> {
      const std::lock_guard lock(mu_);
      return limits_[team];
    };
    auto keeper = LogKeeper::Start(std::move(options));
    ASSERT_TRUE(keeper.ok()) << keeper.status().ToString();
    keeper_ = std::move(*keeper);
  }

  void SetLimits(const std::string& team, const LogLimits& limits) {
    {
      const std::lock_guard lock(mu_);
      limits_[team] = limits;
    }
    if (keeper_) keeper_->CheckLimits();
  }

  void Submit(const std::string& id, const std::string& team = "red") {
    NewJob job;
    job.id = id;
    job.name = id;
    job.engine = "local";
    job.team = team;
    job.time = RealClock::Get()->Wall();
    ASSERT_TRUE(store_->Submit(job).ok());
    ASSERT_TRUE(MakeDirectories(Logs(id)).ok());
  }
  fs::path Logs(const std::string& id) const { return job::JobDir(home_.job_dir(id)).logs(); }
  void Write(const std::string& id, const LogKey& key, std::string_view text) {
    auto writer = rendezvous::LogWriter::Open(Logs(id), key);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->Append(0, text).ok());
  }
  void Append(const std::string& id, const Event& event) {
    const Status done = store_->Append(id, {&event, 1}, Durability::kSynced);
    ASSERT_TRUE(done.ok()) << done.ToString();
  }
  void EndTask(const std::string& id, const LogKey& key) {
    TaskRecord task;
    task.role = key.role;
    task.index = key.index;
    task.attempt = key.attempt;
    task.state = job::TaskState::kEnded;
    task.end = job::TaskEnd{};
    Append(id, TaskEvent(RealClock::Get()->Wall(), task));
  }
  void EndJob(const std::string& id, Duration ago = {}) {
    const WallTime time =
        RealClock::Get()->Wall() - std::chrono::duration_cast<std::chrono::microseconds>(ago);
    Append(id, EndedEvent(time, job::JobState::kCancelled, "", {}));
  }

  // The keeper works on its own thread; what it does shows in its counters and in the store.
  bool Await(const std::function<bool(const LogKeeperCounters&)>& condition) {
    std::unique_lock lock(mu_);
    for (int i = 0; i < 3000 && !condition(keeper_->counters()); ++i)
      changed_.wait_for(lock, std::chrono::milliseconds(10));
    return condition(keeper_->counters());
  }

  std::optional<TempDir> directory_;
  StateHome home_{fs::path()};
  std::unique_ptr<Store> store_;
  std::mutex mu_;
  std::condition_variable changed_;
  std::map<std::string, LogLimits> limits_;
  std::unique_ptr<Store::Watcher> watch_;
  std::unique_ptr<LogKeeper> keeper_;
};

std::string Noise(size_t bytes) {
  std::mt19937 random(7);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST_F(LogKeeperTest, AttemptsThatHaveEndedAreCompressed) {
  const std::string text(100'000, 'x');
  Submit("one");
  Write("one", {"worker", 0, 0}, text);
  Write("one", {"worker", 0, 1}, text);
  Write("one", {"worker", 1, 0}, text);
  Write("one", {"worker", 2, 0}, "short\n");
  StartKeeper();
  EndTask("one", {"worker", 0, 1});  // and so its first attempt
  EXPECT_TRUE(Await([](const auto& counters) { return counters.compressed == 2; }));
  EXPECT_TRUE(fs::exists(Logs("one") / "worker-0.0.log.zst"));
  EXPECT_TRUE(fs::exists(Logs("one") / "worker-1.0.log"));
  EndJob("one");
  EXPECT_TRUE(Await([](const auto& counters) { return counters.compressed == 3; }));
  EXPECT_TRUE(fs::exists(Logs("one") / "worker-2.0.log"));  // not worth it
  const LogStore logs(home_.job_dir("one"));
  EXPECT_EQ(logs.List()->size(), 4U);
  EXPECT_EQ(logs.List()->at(1).bytes, 100'000);
  EXPECT_EQ(*logs.TailOffset({"worker", 0, 0}, 1), 0);
  EXPECT_EQ(keeper_->counters().failures, 0U);
}

TEST_F(LogKeeperTest, WhatEndedWithoutItIsFoundAtTheStart) {
  Submit("one");
  Write("one", {"worker", 0, 0}, std::string(100'000, 'x'));
  EndJob("one");
  StartKeeper();
  EXPECT_TRUE(Await([](const auto& counters) { return counters.compressed == 1; }));
}

TEST_F(LogKeeperTest, LogsOfOldJobsAreRemovedAndTheRecordSaysSo) {
  using std::chrono::hours;
  SetLimits("red", {.keep = hours(24 * 30), .bytes = {}});
  for (const char* id : {"old", "young", "blue", "running"}) {
    Submit(id, std::string(id) == "blue" ? "blue" : "red");
    Write(id, {"worker", 0, 0}, "line\n");
  }
  EndJob("old", hours(24 * 31));
  EndJob("young", hours(24 * 29));
  EndJob("blue", hours(24 * 31));
  StartKeeper();
  EXPECT_TRUE(Await([](const auto& counters) { return counters.removed_jobs == 1; }));
  EXPECT_FALSE(fs::exists(Logs("old") / "worker-0.0.log"));
  for (const char* id : {"young", "blue", "running"})
    EXPECT_TRUE(fs::exists(Logs(id) / "worker-0.0.log")) << id;
  const auto logs = LogStore(home_.job_dir("old")).Select({});
  EXPECT_EQ(logs.status().code(), Code::kNotFound);
  EXPECT_THAT(logs.status().message(), HasSubstr("removed by retention on 20"));
  EXPECT_THAT(logs.status().message(), HasSubstr("ended more than 30 days ago"));
  const auto events = store_->ReadEvents("old", 0, 100);
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->back().type, "note");
  EXPECT_THAT(ToText(events->back().body), HasSubstr("removed by retention"));
}

TEST_F(LogKeeperTest, AFileOfHolesKeepsItFromNothing) {
  Submit("planted", "red");
  const fs::path holes = Logs("planted") / "worker-7.0.log";
  ASSERT_TRUE(WriteFileAtomically(holes, "begin", 0600, false).ok());
  ASSERT_EQ(::truncate(holes.c_str(), off_t{1} << 42), 0);
  EndJob("planted");
  Submit("theirs", "blue");
  Write("theirs", {"worker", 0, 0}, std::string(10'000, 'x'));
  EndJob("theirs");
  StartKeeper();
  EXPECT_TRUE(Await([](const auto& counters) { return counters.compressed == 1; }));
  Submit("later", "blue");
  Write("later", {"worker", 0, 0}, std::string(10'000, 'x'));
  EndJob("later");
  EXPECT_TRUE(Await([](const auto& counters) { return counters.compressed == 2; }));
  EXPECT_TRUE(fs::exists(holes));
}

TEST_F(LogKeeperTest, LogsThatCannotBeRemovedKeepNoOthers) {
  // The newest first: the job of `red` comes before that of `blue`.
  Submit("theirs", "blue");
  Submit("planted", "red");
  for (const char* id : {"theirs", "planted"}) {
    Write(id, {"worker", 0, 0}, "text");
    EndJob(id, std::chrono::hours(48));
  }
  fs::create_directories(Logs("planted") / "removed.json" / "x");  // where the mark goes
  for (const char* team : {"red", "blue"})
    SetLimits(team, {.keep = std::chrono::hours(24), .bytes = {}});
  StartKeeper();
  EXPECT_TRUE(Await([](const auto& counters) { return counters.removed_jobs == 1; }));
  EXPECT_TRUE(ReadRemovedLogs(Logs("theirs")));
  EXPECT_GE(keeper_->counters().failures, 1u);
}

TEST_F(LogKeeperTest, ATeamOverItsLimitLosesTheOldestFirst) {
  const std::string text = Noise(100'000);  // which compression does not make smaller
  for (const char* id : {"first", "second", "third", "running"}) {
    Submit(id);
    Write(id, {"worker", 0, 0}, text);
  }
  for (const char* id : {"first", "second", "third"}) EndJob(id);
  StartKeeper();
  EXPECT_TRUE(Await([](const auto& counters) { return counters.compressed == 3; }));
  SetLimits("red", {.keep = {}, .bytes = 250'000});
  EXPECT_TRUE(Await([](const auto& counters) { return counters.removed_jobs == 2; }));
  EXPECT_TRUE(ReadRemovedLogs(Logs("first")));
  EXPECT_TRUE(ReadRemovedLogs(Logs("second")));
  EXPECT_FALSE(ReadRemovedLogs(Logs("third")));
  EXPECT_TRUE(fs::exists(Logs("running") / "worker-0.0.log"));
  SetLimits("red", {.keep = {}, .bytes = 0});
  EXPECT_TRUE(Await([](const auto& counters) { return counters.removed_jobs == 3; }));
  EXPECT_TRUE(fs::exists(Logs("running") / "worker-0.0.log"));  // never of a running job
}

}  // namespace
}  // namespace shoal::controller
