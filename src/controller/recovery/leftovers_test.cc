#include "controller/recovery/leftovers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "base/file.h"
#include "controller/store/process_identity.h"
#include "controller/store/sqlite_store.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr milliseconds kPatience{10};

// An engine whose Stop succeeds, fails, or blocks until it is interrupted.
class StoppingEngine final : public engine::Engine {
 public:
  std::string name() const override { return "far"; }
  Result<engine::Capacity> GetCapacity() override { return engine::Capacity{}; }
  Status Apply(const engine::DesiredJob&) override { return Internal("not asked for"); }
  std::unique_ptr<Watcher> Watch(const std::string&,
                                 std::function<void(const engine::TaskEvent&)>) override {
    return nullptr;
  }
  Status Stop(const std::string& id, milliseconds) override {
    stopped.push_back(id);
    if (!mute) return answer;
    std::unique_lock lock(mu_);
    interrupted_.wait(lock, [this] { return told_; });
    return Unavailable("interrupted");
  }
  void Interrupt(const std::string&) override {
    {
      std::lock_guard lock(mu_);
      told_ = true;
    }
    interrupted_.notify_all();
  }
  Result<std::vector<engine::TaskStatus>> Adopt(const std::string&, const std::string&) override {
    return std::vector<engine::TaskStatus>();
  }
  Result<engine::Endpoint> Dial(const std::string&) override { return Unavailable(""); }
  Result<std::string> TaskLog(const std::string&, const std::string&, int, size_t) override {
    return std::string();
  }
  Status answer;
  bool mute = false;
  std::vector<std::string> stopped;

 private:
  std::mutex mu_;
  std::condition_variable interrupted_;
  bool told_ = false;
};

class LeftoversTest : public testing::Test {
 protected:
  LeftoversTest() : place_(std::move(*TempDir::Create())), home_(place_.path()) {
    store_ = std::move(*OpenSqliteStore(home_.database()));
    options_.store = store_.get();
    options_.home = home_;
    options_.self = *CurrentProcess();
    options_.clock = &clock_;
    options_.engine = [this](const std::string& name) -> Result<engine::Engine*> {
      if (name != "far") return NotFound("no such engine");
      return &engine_;
    };
  }
  void SubmitIn(JobState state) {
    ASSERT_TRUE(store_->Submit({"left-1", "left", "far", {}, options_.self, {}}).ok());
    std::vector<Event> events = {StateEvent({}, JobState::kAdmitted, ""),
                                 StateEvent({}, JobState::kStarting, ""),
                                 StateEvent({}, JobState::kRunning, "")};
    if (job::IsFinal(state)) events.push_back(EndedEvent({}, state, "", {}));
    ASSERT_TRUE(store_->Append("left-1", events, Durability::kWritten).ok());
  }
  void Record() {
    ASSERT_TRUE(RecordLeftover(home_, {"left-1", "far", "it is away", clock_.Wall()}).ok());
  }
  std::vector<Leftover> Remove() { return RemoveLeftovers(options_, kPatience); }

  TempDir place_;
  StateHome home_;
  std::unique_ptr<Store> store_;
  FakeClock clock_;
  StoppingEngine engine_;
  ReconcileOptions options_;
};

TEST_F(LeftoversTest, NothingIsRecordedAtFirst) {
  EXPECT_THAT(ListLeftovers(home_), IsEmpty());
  EXPECT_THAT(Remove(), IsEmpty());
}

TEST_F(LeftoversTest, WhatIsRecordedIsRemovedLaterAndForgotten) {
  SubmitIn(JobState::kCancelled);
  Record();
  ASSERT_THAT(ListLeftovers(home_), SizeIs(1));
  EXPECT_EQ(ListLeftovers(home_)[0].why, "it is away");
  EXPECT_THAT(Remove(), IsEmpty());  // it was tried just now
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_THAT(Remove(), SizeIs(1));
  EXPECT_THAT(engine_.stopped, ElementsAre("left-1"));
  EXPECT_THAT(ListLeftovers(home_), IsEmpty());
}

TEST_F(LeftoversTest, WhatCannotBeRemovedStaysAndIsTriedAgain) {
  SubmitIn(JobState::kFailed);
  Record();
  engine_.answer = Unavailable("it is still away");
  for (size_t attempt = 1; attempt <= 2; ++attempt) {
    clock_.Advance(std::chrono::minutes(2));
    EXPECT_THAT(Remove(), IsEmpty());
    EXPECT_THAT(Remove(), IsEmpty());
    EXPECT_THAT(engine_.stopped, SizeIs(attempt));
  }
  EXPECT_THAT(ListLeftovers(home_), SizeIs(1));
}

TEST_F(LeftoversTest, ScratchThatCannotBeRemovedIsRemovedLater) {
  SubmitIn(JobState::kFailed);
  const job::JobDir dir(home_.job_dir("left-1"));
  ASSERT_TRUE(MakeDirectories(dir.scratch() / "worker-0.0", 0700).ok());
  // A directory that is not empty, in the place of a file, cannot be removed.
  ASSERT_TRUE(MakeDirectories(dir.secrets() / "x", 0700).ok());
  ClearScratch(home_, {"left-1", "far", "", clock_.Wall()}, JobState::kFailed);
  ASSERT_THAT(ListLeftovers(home_), SizeIs(1));
  EXPECT_THAT(ListLeftovers(home_)[0].why, testing::HasSubstr("secrets"));
  EXPECT_FALSE(std::filesystem::exists(dir.scratch()));  // what can be removed is
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_THAT(Remove(), IsEmpty());
  std::filesystem::remove(dir.secrets() / "x");
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_THAT(Remove(), SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(dir.secrets()));
}

TEST_F(LeftoversTest, AnEngineThatDoesNotAnswerIsInterrupted) {
  SubmitIn(JobState::kFailed);
  Record();
  engine_.mute = true;
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_THAT(ListLeftovers(home_), SizeIs(1));
}

TEST_F(LeftoversTest, AJobThatHasNotEndedIsNotTouched) {
  SubmitIn(JobState::kRunning);
  Record();
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_THAT(Remove(), IsEmpty());
  EXPECT_THAT(engine_.stopped, IsEmpty());
}

TEST_F(LeftoversTest, AJobWhoseRecordWasPrunedIsRemoved) {
  Record();
  clock_.Advance(std::chrono::minutes(2));
  EXPECT_THAT(Remove(), SizeIs(1));
}

}  // namespace
}  // namespace shoal::controller
