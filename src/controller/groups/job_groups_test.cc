// Groups over a supervisor that runs nothing: limits, takeovers, refusals, stops, and a sweep over
// series as jobs write them.

#include "controller/groups/job_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "base/file.h"
#include "controller/run/test_controller.h"
#include "controller/series/series_files.h"
#include "controller/series/series_log.h"
#include "controller/store/sqlite_store.h"

namespace shoal::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Stores what is submitted; a job ends when it is stopped, or by End. Thread-safe.
class StoringSupervisor final : public Supervisor {
 public:
  explicit StoringSupervisor(Store* store) : store_(store) {}

  Result<std::string> Submit(const job::Job& job, const SubmitOptions& options) override {
    const std::lock_guard lock(mu_);
    if (!answer_.ok()) return answer_;
    NewJob stored{.id = options.id, .name = job.name, .engine = "local", .job = {}, .owner = {}};
    stored.labels = options.labels;
    TRY(store_->Submit(stored));
    live_.insert(options.id);
    most_ = std::max(most_, live_.size());
    return options.id;
  }
  void Drain(const std::string& id, const std::string& reason, Done done) override {
    done(Status::Ok());
    End(id, JobState::kCancelled, reason);
  }
  void Kill(const std::string& id, const std::string& reason, Done done) override {
    Drain(id, reason, std::move(done));
  }
  std::unique_ptr<Observation> Observe(JobsObserver observer) override {
    const std::lock_guard lock(mu_);
    observer_ = std::move(observer);
    return std::make_unique<Watching>(this);
  }
  void OnGroupEnd(const std::string& id) override {
    const std::lock_guard lock(mu_);
    ended_groups_.push_back(id);
    changed_.notify_all();
  }
  Result<std::vector<std::string>> AttachAll() override { return std::vector<std::string>(); }
  Status Attach(const std::string&) override { return Status::Ok(); }
  void Suspend(const std::string&, const std::string&, Done) override {}
  void Resume(const std::string&, Done) override {}
  void Scale(const std::string&, const std::string&, int, const std::string&, Done) override {}
  void Why(const std::string&, std::function<void(const WhyWaits&)>) override {}
  std::vector<std::string> running() const override { return {}; }
  QueueManager& queues() override { return queues_; }

  void End(const std::string& id, JobState state, const std::string& reason = "") {
    std::vector<Event> events;
    for (const JobState before :
         {JobState::kAdmitted, JobState::kStarting, JobState::kRunning, JobState::kFinishing})
      events.push_back(StateEvent(WallTime(), before, ""));
    events.push_back(EndedEvent(WallTime(), state, reason, {}));
    if (!store_->Append(id, events, Durability::kWritten).ok()) return;
    const JobRecord job = *store_->GetJob(id);
    const std::lock_guard lock(mu_);
    live_.erase(id);
    if (observer_.on_end) observer_.on_end(id, job);
  }
  void Answer(const Status& status) {
    const std::lock_guard lock(mu_);
    answer_ = status;
  }
  size_t most() {
    const std::lock_guard lock(mu_);
    return most_;
  }
  bool AwaitGroupEnd(const std::string& id) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, kPatience, [&] {
      return std::ranges::find(ended_groups_, id) != ended_groups_.end();
    });
  }

 private:
  QueueManager queues_{QueueManagerOptions()};  // has no policy
  class Watching final : public Observation {
   public:
    explicit Watching(StoringSupervisor* supervisor) : supervisor_(supervisor) {}
    ~Watching() override {
      const std::lock_guard lock(supervisor_->mu_);
      supervisor_->observer_ = {};
    }

   private:
    StoringSupervisor* const supervisor_;
  };

  Store* const store_;
  std::mutex mu_;
  std::condition_variable changed_;
  Status answer_;
  JobsObserver observer_;
  std::set<std::string> live_;
  size_t most_ = 0;
  std::vector<std::string> ended_groups_;
};

class JobGroupsTest : public testing::Test {
 protected:
  JobGroupsTest()
      : home_(place_.path()),
        store_(std::move(*OpenSqliteStore(home_.database()))),
        supervisor_(store_.get()) {
    StartServer();
  }

  void StartServer() {
    JobGroupsOptions options;
    options.store = store_.get();
    options.supervisor = &supervisor_;
    options.home = home_;
    options.tick = std::chrono::milliseconds(5);
    options.make = [](const StoredSubmission&, size_t member) -> Result<MadeJob> {
      if (member == 1) return PermissionDenied("image: not allowed");
      MadeJob made;
      made.job.name = "grid-" + std::to_string(member);
      return made;
    };
    auto groups = JobGroups::Start(std::move(options));
    ASSERT_TRUE(groups.ok()) << groups.status().message();
    groups_ = std::move(*groups);
  }
  static GroupRecord GroupOf(size_t members, int limit) {
    GroupRecord group;
    group.id = "grid-1a2b3c";
    group.name = "grid";
    group.source.team = "red";
    group.triggers.matrix.parameters = {{"n", {}}};
    for (size_t i = 0; i < members; ++i)
      group.triggers.matrix.parameters[0].second.push_back(std::to_string(i));
    group.triggers.matrix.limit = limit;
    group.members.assign(members, '.');
    return group;
  }
  // The letters of the members once they are these, else as they are then.
  std::string Await(const std::string& members) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::string now;
    while (std::chrono::steady_clock::now() < end) {
      now = ReadGroup(store_.get(), "grid-1a2b3c")->members;
      if (now == members) break;
      std::this_thread::yield();
    }
    return now;
  }
  bool AwaitRung(size_t member) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      const auto rungs = ReadGroup(store_.get(), "grid-1a2b3c")->rungs;
      if (!rungs.empty() && rungs[0].contains(member)) return true;
      std::this_thread::yield();
    }
    return false;
  }
  void Report(size_t member, const std::vector<double>& losses) {
    const auto dir = SeriesDir(home_.job_dir(MemberId("grid-1a2b3c", member)));
    std::filesystem::create_directories(dir);
    auto log = SeriesLogFile::Create(SeriesLogPath(dir, 1));
    ASSERT_TRUE(log.ok()) << log.status().message();
    SeriesLogEncoder encoder;
    int64_t ms = 1000;
    for (const double loss : losses) encoder.Add("worker-0.loss", {ms += 1000, loss});
    ASSERT_TRUE(log->Append(encoder.TakeBlock()).ok());
  }

  TempDir place_ = std::move(*TempDir::Create());
  StateHome home_;
  std::unique_ptr<Store> store_;
  StoringSupervisor supervisor_;
  std::unique_ptr<JobGroups> groups_;
};

TEST_F(JobGroupsTest, AtMostSoManyMembersAreUnfinished) {
  ASSERT_TRUE(groups_->Create(GroupOf(6, 2)).ok());
  EXPECT_EQ(groups_->Create(GroupOf(6, 2)).code(), Code::kAlreadyExists);
  EXPECT_EQ(Await("uxu..."), "uxu...");  // 1 is refused
  EXPECT_EQ(groups_->Remove("grid-1a2b3c").code(), Code::kFailedPrecondition);
  supervisor_.End("grid-1a2b3c-2", JobState::kSucceeded);
  EXPECT_EQ(Await("uxsu.."), "uxsu..");
  supervisor_.End("grid-1a2b3c-0", JobState::kFailed);
  supervisor_.End("grid-1a2b3c-3", JobState::kSucceeded);
  EXPECT_EQ(Await("fxssuu"), "fxssuu");
  supervisor_.End("grid-1a2b3c-4", JobState::kSucceeded);
  supervisor_.End("grid-1a2b3c-5", JobState::kCancelled);
  ASSERT_TRUE(supervisor_.AwaitGroupEnd("grid-1a2b3c"));
  const auto group = ReadGroup(store_.get(), "grid-1a2b3c");
  EXPECT_EQ(group->state, JobState::kFailed);
  EXPECT_EQ(group->reason, "2 of 6 members failed, 1 of 6 members were cancelled");
  EXPECT_THAT(group->refusals, ElementsAre(testing::Pair(1, "image: not allowed")));
  EXPECT_EQ(supervisor_.most(), 2u);
  EXPECT_TRUE(groups_->Remove("grid-1a2b3c").ok());
  EXPECT_EQ(groups_->Stop("grid-1a2b3c", "x", false).code(), Code::kNotFound);
}

TEST_F(JobGroupsTest, TheNextServerGoesOn) {
  ASSERT_TRUE(groups_->Create(GroupOf(6, 3)).ok());
  EXPECT_EQ(Await("uxuu.."), "uxuu..");
  groups_.reset();
  supervisor_.End("grid-1a2b3c-0", JobState::kSucceeded);  // without a server
  // A server that died after it had submitted a member, and before it stored that.
  NewJob made{.id = "grid-1a2b3c-4", .name = "grid-4", .engine = "local", .job = {}, .owner = {}};
  made.labels = {{kGroupLabel, "grid-1a2b3c"}, {kMemberLabel, "4"}};
  ASSERT_TRUE(store_->Submit(made).ok());
  StartServer();
  EXPECT_EQ(Await("sxuuu."), "sxuuu.");
  supervisor_.End("grid-1a2b3c-2", JobState::kSucceeded);
  EXPECT_EQ(Await("sxsuuu"), "sxsuuu");
  ASSERT_TRUE(groups_->Stop("grid-1a2b3c", "stopped by ann", true).ok());
  ASSERT_TRUE(supervisor_.AwaitGroupEnd("grid-1a2b3c"));
  const auto group = ReadGroup(store_.get(), "grid-1a2b3c");
  EXPECT_EQ(group->state, JobState::kCancelled);
  EXPECT_EQ(group->reason, "stopped by ann");
}

TEST_F(JobGroupsTest, AStoreThatCannotBeWrittenIsTriedAgain) {
  supervisor_.Answer(Unavailable("no disk"));
  ASSERT_TRUE(groups_->Create(GroupOf(1, 3)).ok());
  supervisor_.Answer(Status::Ok());
  EXPECT_EQ(Await("u"), "u");
}

TEST_F(JobGroupsTest, ASweepStopsTheWorst) {
  GroupRecord group = GroupOf(0, 1);
  group.triggers.matrix = {};
  group.triggers.sweep.objective = "loss";
  group.triggers.sweep.trials = 5;
  group.triggers.sweep.limit = 5;
  group.triggers.sweep.parameters = {{"lr", job::ParameterKind::kUniform, {}, 0, 1, 0}};
  group.triggers.sweep.stop = {"", 2, 2};
  group.members.assign(5, '.');
  ASSERT_TRUE(groups_->Create(group).ok());
  EXPECT_EQ(Await("uxuuu"), "uxuuu");
  Report(0, {5, 4});
  Report(2, {9});  // below the rung
  ASSERT_TRUE(AwaitRung(0));
  EXPECT_EQ(ReadGroup(store_.get(), "grid-1a2b3c")->members, "uxuuu");  // one result
  Report(3, {9, 8});                                                    // the worse half of two
  EXPECT_EQ(Await("uxueu"), "uxueu");
  EXPECT_THAT(store_->GetJob("grid-1a2b3c-3")->reason,
              HasSubstr("stopped by its sweep: loss 8 at rung 1 is not among the best 1/2"));
  groups_.reset();
  StartServer();  // judges no rung again
  Report(4, {3, 2, 1});
  supervisor_.End("grid-1a2b3c-4", JobState::kSucceeded);
  supervisor_.End("grid-1a2b3c-2", JobState::kFailed);
  supervisor_.End("grid-1a2b3c-0", JobState::kSucceeded);
  ASSERT_TRUE(supervisor_.AwaitGroupEnd("grid-1a2b3c"));
  const auto ended = ReadGroup(store_.get(), "grid-1a2b3c");
  EXPECT_EQ(ended->members, "sxfes");
  EXPECT_EQ(ended->state, JobState::kSucceeded);
  EXPECT_THAT(ended->reason, HasSubstr("best: grid-1a2b3c-4 with loss 1 (lr="));
  EXPECT_THAT(ended->rungs[0], testing::SizeIs(3));
}

}  // namespace
}  // namespace shoal::controller
