// Recovery of jobs whose controller died in any state.

#include "controller/recovery/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "base/file.h"
#include "controller/store/process_identity.h"
#include "controller/store/sqlite_store.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/journal/journal_record.h"

namespace shoal::controller {
namespace {

using testing::HasSubstr;

class LeftEngine final : public engine::Engine {
 public:
  std::string name() const override { return "left"; }
  bool UsesPids() const override { return uses_pids; }
  Result<engine::Capacity> GetCapacity() override { return engine::Capacity{}; }
  Status Apply(const engine::DesiredJob&) override { return Internal("not asked for"); }
  std::unique_ptr<Watcher> Watch(const std::string&,
                                 std::function<void(const engine::TaskEvent&)>) override {
    return nullptr;
  }
  Status Stop(const std::string& id, std::chrono::milliseconds) override {
    stopped.push_back(id);
    if (on_stop) on_stop();
    return Status::Ok();
  }
  Result<std::vector<engine::TaskStatus>> Adopt(const std::string&, const std::string&) override {
    return left;
  }
  Result<engine::Endpoint> Dial(const std::string&) override { return Unavailable(""); }
  Result<std::string> TaskLog(const std::string&, const std::string&, int, size_t) override {
    return std::string();
  }
  bool uses_pids = true;
  std::vector<engine::TaskStatus> left;
  std::vector<std::string> stopped;
  std::function<void()> on_stop;
};

// The identity of a child that has ended.
ProcessIdentity DeadProcess() {
  ProcessIdentity process = *CurrentProcess();
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  process.pid = pid;
  return process;
}

class ReconcileTest : public testing::Test {
 protected:
  ReconcileTest() : place_(std::move(*TempDir::Create())), home_(place_.path()) {
    store_ = std::move(*OpenSqliteStore(home_.database()));
    options_.store = store_.get();
    options_.home = home_;
    options_.self = *CurrentProcess();
    options_.engine = [this](const std::string&) -> Result<engine::Engine*> {
      ++engines_;
      return &engine_;
    };
  }
  void Submit(const ProcessIdentity& owner) {
    ASSERT_TRUE(store_->Submit({"left-1", "left", "left", {}, owner, {}}).ok());
    ASSERT_TRUE(MakeDirectories(home_.job_dir("left-1")).ok());
    const std::vector<Event> events = {StateEvent({}, JobState::kAdmitted, ""),
                                       StateEvent({}, JobState::kStarting, ""),
                                       StateEvent({}, JobState::kRunning, "")};
    ASSERT_TRUE(store_->Append("left-1", events, Durability::kWritten).ok());
  }
  void WriteVerdict(JobState state) {
    rendezvous::Verdict verdict;
    verdict.state = state;
    verdict.reason = "as decided";
    verdict.tasks = {{"worker", 0, 2, job::Exited(0)}};
    ASSERT_TRUE(WriteFileAtomically(home_.job_dir("left-1") / "verdict.json",
                                    ToText(rendezvous::VerdictToJson(verdict)))
                    .ok());
  }

  TempDir place_;
  StateHome home_;
  std::unique_ptr<Store> store_;
  LeftEngine engine_;
  ReconcileOptions options_;
  int engines_ = 0;
};

TEST_F(ReconcileTest, JobsOfTheLivingAreLeftAlone) {
  Submit(options_.self);
  const auto repaired = Reconcile(options_);
  ASSERT_TRUE(repaired.ok());
  EXPECT_TRUE(repaired->empty());
  EXPECT_EQ(engines_, 0);
}

// An identity as on another machine that shares the state home.
TEST_F(ReconcileTest, SoAreThoseOfTheLivingElsewhere) {
  ProcessIdentity elsewhere = options_.self;
  elsewhere.boot_id = "another-boot";
  std::optional<LivenessLock> mark(std::move(*LivenessLock::Make(home_.root(), elsewhere)));
  Submit(elsewhere);
  ASSERT_TRUE(Reconcile(options_)->empty());
  EXPECT_EQ(engines_, 0);
  mark.reset();
  EXPECT_EQ(Reconcile(options_)->size(), 1u);
  EXPECT_THAT(engine_.stopped, testing::ElementsAre("left-1"));
  EXPECT_TRUE(std::filesystem::is_empty(home_.root() / "controllers"));
}

TEST_F(ReconcileTest, VerdictIsRecorded) {
  Submit(DeadProcess());
  WriteVerdict(JobState::kSucceeded);
  const auto repaired = Reconcile(options_);
  ASSERT_TRUE(repaired.ok());
  ASSERT_EQ(repaired->size(), 1u);
  EXPECT_EQ(repaired->at(0).state, JobState::kSucceeded);
  EXPECT_EQ(store_->GetJob("left-1")->reason, "as decided");
  EXPECT_EQ(store_->ListTasks("left-1")->at(0).attempt, 1);
  EXPECT_THAT(engine_.stopped, testing::ElementsAre("left-1"));
}

TEST_F(ReconcileTest, TheJobEndedWhenItsVerdictWasWritten) {
  Submit(DeadProcess());
  WriteVerdict(JobState::kSucceeded);
  const auto an_hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(home_.job_dir("left-1") / "verdict.json", an_hour_ago);
  ASSERT_TRUE(Reconcile(options_).ok());
  const Duration since = RealClock::Get()->Wall() - store_->GetJob("left-1")->ended;
  EXPECT_GE(since, std::chrono::hours(1));
  EXPECT_LT(since, std::chrono::hours(2));
}

TEST_F(ReconcileTest, ASuspensionIsRecordedAndThenLeftAlone) {
  Submit(DeadProcess());
  WriteVerdict(JobState::kSuspended);
  const std::filesystem::path shipped = home_.job_dir("left-1") / "files";
  ASSERT_TRUE(MakeDirectories(shipped).ok());
  ASSERT_TRUE(Reconcile(options_).ok());
  EXPECT_EQ(store_->GetJob("left-1")->state, JobState::kSuspended);
  EXPECT_THAT(engine_.stopped, testing::ElementsAre("left-1"));
  EXPECT_TRUE(std::filesystem::exists(shipped));  // it goes on with them some day
  EXPECT_TRUE(Reconcile(options_)->empty());
  EXPECT_EQ(store_->GetJob("left-1")->state, JobState::kSuspended);
  // A resume that dies before anything has started changes nothing.
  const Event events[] = {StateEvent({}, JobState::kPending, "resumed"),
                          Event{0, {}, "owner", ToJson(DeadProcess())}};
  ASSERT_TRUE(store_->Append("left-1", events, Durability::kWritten).ok());
  ASSERT_TRUE(Reconcile(options_).ok());
  EXPECT_EQ(store_->GetJob("left-1")->state, JobState::kSuspended);
}

TEST_F(ReconcileTest, LivingCoordinatorIsLeftAlone) {
  Submit(DeadProcess());
  engine_.left = {{"coordinator", 0, 0, engine::TaskPhase::kRunning, 1}};
  const auto repaired = Reconcile(options_);
  ASSERT_TRUE(repaired.ok());
  ASSERT_EQ(repaired->size(), 1u);
  EXPECT_TRUE(repaired->at(0).unattended);
  EXPECT_EQ(store_->GetJob("left-1")->state, JobState::kRunning);
  EXPECT_TRUE(engine_.stopped.empty());
}

TEST_F(ReconcileTest, NothingAliveIsAFailureAndLeftoversAreStopped) {
  Submit(DeadProcess());
  engine_.left = {{"worker", 0, 0, engine::TaskPhase::kRunning, 1}};
  const auto repaired = Reconcile(options_);
  ASSERT_TRUE(repaired.ok());
  EXPECT_EQ(repaired->at(0).state, JobState::kFailed);
  EXPECT_EQ(repaired->at(0).reason, "its controller was killed and its coordinator is gone");
  EXPECT_THAT(engine_.stopped, testing::ElementsAre("left-1"));
  EXPECT_TRUE(Reconcile(options_)->empty());  // once
}

TEST_F(ReconcileTest, VerdictThatComesWhileStoppingCounts) {
  Submit(DeadProcess());
  engine_.on_stop = [this] { WriteVerdict(JobState::kCancelled); };
  ASSERT_TRUE(Reconcile(options_).ok());
  EXPECT_EQ(store_->GetJob("left-1")->state, JobState::kCancelled);
}

// As after a full disk at the coordinator's end.
TEST_F(ReconcileTest, AVerdictThatIsInTheJournalAloneIsRecorded) {
  Submit(DeadProcess());
  const std::filesystem::path dir = home_.job_dir("left-1");
  ASSERT_TRUE(WriteFileAtomically(dir / "verdict.json", "").ok());
  rendezvous::JournalRecord fact;
  fact.kind = rendezvous::JournalRecord::Kind::kVerdict;
  fact.seq = 1;
  fact.verdict.state = JobState::kSucceeded;
  fact.verdict.reason = "all have ended well";
  ASSERT_TRUE(rendezvous::Journal::Open(dir / "journal")
                  ->journal.Append(rendezvous::JournalRecordToText(fact))
                  .ok());
  ASSERT_TRUE(Reconcile(options_).ok());
  EXPECT_EQ(store_->GetJob("left-1")->state, JobState::kSucceeded);
  EXPECT_EQ(store_->GetJob("left-1")->reason, "all have ended well");
}

TEST_F(ReconcileTest, ASuspensionBeforeTheLastResumeIsNoVerdict) {
  Submit(DeadProcess());
  const std::filesystem::path dir = home_.job_dir("left-1");
  rendezvous::JournalRecord fact;
  fact.kind = rendezvous::JournalRecord::Kind::kVerdict;
  fact.seq = 1;
  fact.verdict.state = JobState::kSuspended;
  ASSERT_TRUE(rendezvous::Journal::Open(dir / "journal")
                  ->journal.Append(rendezvous::JournalRecordToText(fact))
                  .ok());
  EXPECT_EQ(ReadVerdictOrJournal(dir)->state, JobState::kSuspended);
  ASSERT_TRUE(CountResume(dir).ok());
  EXPECT_EQ(ReadVerdictOrJournal(dir).status().code(), Code::kNotFound);
}

TEST_F(ReconcileTest, DamagedVerdictIsSaid) {
  Submit(DeadProcess());
  ASSERT_TRUE(WriteFileAtomically(home_.job_dir("left-1") / "verdict.json", "{\"state\":").ok());
  ASSERT_TRUE(Reconcile(options_).ok());
  EXPECT_EQ(store_->GetJob("left-1")->state, JobState::kFailed);
  EXPECT_THAT(store_->GetJob("left-1")->reason, HasSubstr("verdict cannot be read"));
}

TEST_F(ReconcileTest, ReusedPidIsNotItsOldOwner) {
  ProcessIdentity reused = *CurrentProcess();
  reused.start_ticks -= 1;
  EXPECT_FALSE(IsAlive(home_.root(), reused));
  ProcessIdentity rebooted = *CurrentProcess();
  rebooted.boot_id = "another";
  EXPECT_FALSE(IsAlive(home_.root(), rebooted));
  EXPECT_TRUE(IsAlive(home_.root(), *CurrentProcess()));
  EXPECT_FALSE(IsAlive(home_.root(), DeadProcess()));
}

// As for a command in a container with its own PID namespace and the same state home.
ProcessIdentity InAnotherPidNamespace() {
  ProcessIdentity process = *CurrentProcess();
  process.pid_namespace += 1;
  return process;
}

TEST_F(ReconcileTest, TheLockDecidesWhetherAnOwnerOfAnotherPidNamespaceLives) {
  const ProcessIdentity elsewhere = InAnotherPidNamespace();
  EXPECT_FALSE(SharesPids(elsewhere));
  EXPECT_FALSE(IsAlive(home_.root(), elsewhere));
  std::optional<LivenessLock> mark(std::move(*LivenessLock::Make(home_.root(), elsewhere)));
  EXPECT_TRUE(IsAlive(home_.root(), elsewhere));
  Submit(elsewhere);
  EXPECT_TRUE(Reconcile(options_)->empty());
  EXPECT_EQ(engines_, 0);
  EXPECT_EQ(store_->GetJob("left-1")->owner, elsewhere);
}

TEST_F(ReconcileTest, ProcessesOfAnotherPidNamespaceAreNotStopped) {
  Submit(InAnotherPidNamespace());
  const std::filesystem::path dir = home_.job_dir("left-1");
  ASSERT_TRUE(MakeDirectories(dir / "scratch").ok());
  std::optional<rendezvous::Journal> coordinator(
      std::move(rendezvous::Journal::Open(dir / "journal")->journal));
  ASSERT_EQ(Reconcile(options_)->size(), 1u);
  EXPECT_TRUE(Reconcile(options_)->at(0).unattended);
  coordinator.reset();
  EXPECT_EQ(Reconcile(options_)->at(0).state, JobState::kFailed);
  EXPECT_TRUE(engine_.stopped.empty());
  EXPECT_TRUE(std::filesystem::exists(dir / "scratch"));
}

TEST_F(ReconcileTest, TheCoordinatorOfAnotherMachineIsLeftAlone) {
  ProcessIdentity owner = InAnotherPidNamespace();
  owner.boot_id = "11111111-2222-3333-4444-555555555555";
  Submit(owner);
  const std::filesystem::path dir = home_.job_dir("left-1");
  ASSERT_TRUE(MakeDirectories(dir / "scratch").ok());
  std::optional<rendezvous::Journal> coordinator(
      std::move(rendezvous::Journal::Open(dir / "journal")->journal));
  ASSERT_EQ(Reconcile(options_)->size(), 1u);
  EXPECT_TRUE(Reconcile(options_)->at(0).unattended);
  EXPECT_TRUE(std::filesystem::exists(dir / "scratch"));
  EXPECT_EQ(store_->GetJob("left-1")->owner, owner);
  coordinator.reset();  // or this machine was started again
  EXPECT_EQ(Reconcile(options_)->at(0).state, JobState::kFailed);
  EXPECT_FALSE(std::filesystem::exists(dir / "scratch"));
}

TEST_F(ReconcileTest, AnEngineElsewhereStopsThemFromAnywhere) {
  engine_.uses_pids = false;
  Submit(InAnotherPidNamespace());
  ASSERT_EQ(Reconcile(options_)->size(), 1u);
  EXPECT_THAT(engine_.stopped, testing::ElementsAre("left-1"));
}

TEST_F(ReconcileTest, TheMarkIsTakenBeforeAJobIsClaimed) {
  bool held = false;
  options_.hold_liveness_lock = [&] {
    held = true;
    EXPECT_NE(store_->GetJob("left-1")->owner, options_.self);
    return Status::Ok();
  };
  Submit(DeadProcess());
  ASSERT_EQ(Reconcile(options_)->size(), 1u);
  EXPECT_TRUE(held);
}

TEST_F(ReconcileTest, TheEndOfAFrozenOwnersJobIsRecordedOnceItsCoordinatorHasDecided) {
  const LivenessLock owner = std::move(*LivenessLock::Make(home_.root(), InAnotherPidNamespace()));
  Submit(InAnotherPidNamespace());
  options_.frozen = "left-1";
  engine_.uses_pids = false;
  auto coordinator = rendezvous::Journal::Open(home_.job_dir("left-1") / "journal");
  ASSERT_TRUE(coordinator.ok());
  EXPECT_TRUE(Reconcile(options_)->empty());
  WriteVerdict(JobState::kCancelled);
  ASSERT_EQ(Reconcile(options_)->size(), 1u);
  EXPECT_EQ(store_->GetJob("left-1")->state, JobState::kCancelled);
}

TEST_F(ReconcileTest, AnOwnerThatDoesNotTouchItsMarkIsFrozen) {
  const ProcessIdentity owner = InAnotherPidNamespace();
  const LivenessLock mark = std::move(*LivenessLock::Make(home_.root(), owner));
  const LivenessLock ours = std::move(*LivenessLock::Make(home_.root(), options_.self));
  EXPECT_TRUE(IsResponsive(home_.root(), owner, options_.self));
  for (const auto& file : std::filesystem::directory_iterator(home_.root() / "controllers")) {
    if (file.path().string().find(std::to_string(owner.pid_namespace)) == std::string::npos)
      continue;
    std::filesystem::last_write_time(file.path(), file.last_write_time() - 2 * kFrozenAfter);
  }
  EXPECT_FALSE(IsResponsive(home_.root(), owner, options_.self));
  RefreshLivenessLock(home_.root(), owner);
  EXPECT_TRUE(IsResponsive(home_.root(), owner, options_.self));
}

TEST_F(ReconcileTest, MarksOfProcessesThatHadNoJobAreRemoved) {
  const LivenessLock held = std::move(*LivenessLock::Make(home_.root(), InAnotherPidNamespace()));
  const std::filesystem::path marks = home_.root() / "controllers";
  for (const char* name : {"killed", "young"})
    ASSERT_TRUE(WriteFileAtomically(marks / name, "", 0600).ok());
  for (const auto& file : std::filesystem::directory_iterator(marks)) {
    if (file.path().filename() != "young")
      std::filesystem::last_write_time(file.path(), file.last_write_time() - 2 * kFrozenAfter);
  }
  ASSERT_TRUE(Reconcile(options_).ok());
  EXPECT_FALSE(std::filesystem::exists(marks / "killed"));
  EXPECT_TRUE(std::filesystem::exists(marks / "young"));
  EXPECT_TRUE(IsAlive(home_.root(), InAnotherPidNamespace()));
}

}  // namespace
}  // namespace shoal::controller
