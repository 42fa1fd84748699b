// The coordinator's rules under random orders of events: properties that hold in all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

#include "rendezvous/lifecycle/core_driver.h"

namespace shoal::rendezvous {
namespace {

using testing::HasSubstr;

// Simulated launchers that obey at random times and die at random.
class World {
 public:
  explicit World(uint64_t seed)
      : seed_(seed), random_(seed), driver_(std::make_unique<CoreDriver>(RandomJob())) {}

  void Run() {
    for (int step = 0; step < 6000 && !exited_; ++step) {
      Step();
      if (exited_ && driver_->core.job_state() == JobState::kSuspended) Resume();
      if (step % 50 == 7) CheckRestore();
      if (testing::Test::HasFatalFailure()) return;
    }
    ASSERT_TRUE(exited_) << "the job did not end";
    CheckFacts();
  }

 private:
  struct Launcher {
    MemberId member = 0;  // 0: not connected
    int task = -1;
    int incarnation = 0;
    std::string instance;
    std::string node;
    int last_attempt = -1;
    bool running = false;
    bool draining = false;
    std::optional<job::TaskEnd> unacked;
    std::string interrupted;  // something else told it to stop; it starts nothing any more
    bool released = false;
    bool told = false;  // its unacked end, on this connection
  };

  int Roll(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  job::Job RandomJob() {
    job::Job job = Make(1 + Roll(4), Roll(3));
    job.limits.gather = Millis(20'000);
    job.limits.stop_grace = Millis(Roll(2) * 500);
    job.roles[0].restart.limit = Roll(4);
    for (job::Role& role : job.roles) {
      const job::RestartScope scopes[] = {job::RestartScope::kTask, job::RestartScope::kTask,
                                          job::RestartScope::kRole, job::RestartScope::kJob};
      role.restart.scope = scopes[Roll(4)];
      if (Roll(4) == 0) role.on_exit.push_back({"1", job::EndAction::kRestartJob});
      if (Roll(4) == 0) role.on_exit.push_back({"SIGKILL", job::EndAction::kIgnore});
      if (Roll(3) == 0) role.on_exit.push_back({"1", job::EndAction::kExcludeHost});
      if (Roll(6) == 0) role.on_exit.push_back({"lost", job::EndAction::kExcludeHost});
    }
    if (job.roles.size() > 1) {
      if (Roll(2) == 0) job.roles[1].ready.by = job::ReadyBy::kTcp;
      if (Roll(2) == 0) job.roles[0].after.roles = {"server"};
      if (Roll(3) == 0) job.roles[0].after.when = job::AfterWhen::kStarted;
    }
    const job::OnStall stalls[] = {job::OnStall::kReport, job::OnStall::kRestart,
                                   job::OnStall::kFail};
    job.limits.stall = Millis(500);
    job.limits.on_stall = stalls[Roll(3)];
    job.on_controller_loss = Roll(2) ? job::OnControllerLoss::kKeep : job::OnControllerLoss::kStop;
    return job;
  }

  void Step() {
    switch (Roll(12)) {
      case 0:
        return Spawn();
      case 1:
      case 2:
        return PassTime(Millis(Roll(300)));
      case 3:
        return Disconnect(Pick());
      case 4:
        return Connect(Pick());
      case 5:
        if (Roll(8) == 0) Die(Pick());
        return;
      case 6:
        if (Roll(60) == 0) {
          if (Roll(2) != 0) return Do(Suspend{"somebody wants it"});
          Do(Command{Roll(2) ? StopMode::kDrain : StopMode::kStop, "somebody wants it"});
        }
        return;
      case 7:
        if (Launcher* l = Pick(); Roll(40) == 0 && l != nullptr && l->running && l->member != 0) {
          Do(PortConflict{l->member, l->last_attempt, "somebody has its port"});
        }
        return Tell(Pick());
      case 8:
      case 9:
      case 10:
        return EndProgram(Pick());
      default:
        for (const auto& one : launchers_) {
          if (one->member != 0) Do(Beat(*one));
        }
        if (driver_->core.verdict()) Do(VerdictAcknowledged{});
        if (Launcher* l = Pick(); l != nullptr && l->running && l->member != 0) {
          Do(ProgramReady{l->member, l->last_attempt});
        }
    }
  }

  // Half of them are idle, one in twenty has been active.
  LauncherHeartbeat Beat(const Launcher& l) {
    LauncherHeartbeat beat{l.member, l.last_attempt, std::nullopt};
    if (seed_ % 2 == 0) beat.still = Roll(20) == 0 ? Millis(0) : Millis(10'000);
    return beat;
  }

  void PassTime(Millis by) {
    const Millis until = driver_->now + by;
    while (driver_->core.NextDeadline() && *driver_->core.NextDeadline() <= until && !exited_) {
      driver_->now = std::max(driver_->now, *driver_->core.NextDeadline());
      Do(Tick{});
    }
    driver_->now = until;
  }

  // Another coordinator goes on from the journal, with other launchers.
  void Resume() {
    const job::Job job = driver_->core.job();
    launchers_.clear();
    incarnations_.clear();
    pending_.clear();
    exited_ = false;
    driver_ = std::make_unique<CoreDriver>(job, true, std::vector<JournalRecord>(driver_->records),
                                           ++resumes_);
    ASSERT_EQ(driver_->core.job_state(), JobState::kStarting);
  }

  Launcher* Pick() {
    if (launchers_.empty()) return nullptr;
    return launchers_[static_cast<size_t>(Roll(static_cast<int>(launchers_.size())))].get();
  }

  void Spawn() {
    const int task = Roll(driver_->core.task_count());
    for (const auto& one : launchers_) {
      if (one->task == task) return;  // the engine makes a new one only for a dead one
    }
    auto launcher = std::make_unique<Launcher>();
    launcher->task = task;
    launcher->incarnation = incarnations_[task]++;
    launcher->instance = "x" + std::to_string(++instances_);
    launcher->node = "n" + std::to_string(Roll(6));
    launchers_.push_back(std::move(launcher));
    Connect(launchers_.back().get());
  }

  void Connect(Launcher* l) {
    if (l == nullptr || l->member != 0 || l->released) return;
    l->member = ++members_;
    l->told = false;
    Do(LauncherJoined{l->member, driver_->core.role_of(l->task).name,
                      driver_->core.tasks().index_of(l->task), l->incarnation, l->instance, 0,
                      l->last_attempt, l->running || l->unacked, l->node});
  }

  void Disconnect(Launcher* l) {
    if (l == nullptr || l->member == 0 || Roll(3) != 0) return;
    const MemberId member = std::exchange(l->member, 0);
    Do(LauncherDisconnected{member});
  }

  void Die(Launcher* l) {
    if (l == nullptr) return;
    const MemberId member = l->member;
    std::erase_if(launchers_, [&](const auto& one) { return one.get() == l; });
    if (member != 0) Do(LauncherDisconnected{member});
  }

  void EndProgram(Launcher* l) {
    if (l == nullptr || !l->running || (!l->draining && Roll(6) != 0)) return;
    l->running = false;
    const int how = Roll(10);
    l->unacked = how < 6 ? job::Exited(0) : how < 9 ? job::Signaled(9) : job::Exited(1);
    if (!l->draining && Roll(10) == 0) l->interrupted = "its launcher was told to stop by a signal";
    if (!l->interrupted.empty()) interrupted_.insert({l->task, l->last_attempt});
    l->told = false;
    Tell(l);
  }

  void Tell(Launcher* l) {
    if (l == nullptr || l->member == 0 || !l->unacked || l->told) return;
    l->told = true;
    Do(ProgramEnded{l->member, l->last_attempt, *l->unacked, "", -1, "", l->interrupted});
  }

  Launcher* ByMember(MemberId member) {
    for (const auto& one : launchers_) {
      if (member != 0 && one->member == member) return one.get();
    }
    return nullptr;
  }

  void Do(const Event& event) {
    driver_->Do(event);
    pending_.insert(pending_.end(), driver_->last.begin(), driver_->last.end());
    if (handling_) return;
    handling_ = true;
    while (!pending_.empty()) {
      const Action action = pending_.front();
      pending_.pop_front();
      Obey(action);
    }
    handling_ = false;
  }

  void Obey(const Action& action) {
    ASSERT_FALSE(exited_ && action.kind == Kind::kRecord) << "a fact after the end";
    Launcher* l = ByMember(action.member);
    switch (action.kind) {
      case Kind::kWelcome:
        if (l != nullptr && action.lease) {
          Do(PortsLeased{l->member, l->instance, {static_cast<uint16_t>(1000 + instances_)}});
        }
        return;
      case Kind::kStart:
        return ObeyStart(action, l);
      case Kind::kDrain:
      case Kind::kKill:
        if (l != nullptr && l->running && action.attempt == l->last_attempt) l->draining = true;
        return;
      case Kind::kInspect:
        ++inspections_;
        if (l == nullptr || Roll(4) == 0) return;
        return Do(
            StallDiagnostics{l->member, action.attempt, Millis(10'000), {{"last_line", "x"}}});
      case Kind::kAck:
        if (l != nullptr && action.attempt == l->last_attempt) l->unacked.reset();
        if (l != nullptr && !l->interrupted.empty()) Die(l);
        return;
      case Kind::kRelease:
        if (l == nullptr) return;
        ASSERT_FALSE(l->running) << "released while its program runs";
        ASSERT_FALSE(l->unacked) << "released before its end was acknowledged";
        l->released = true;
        return Die(l);
      case Kind::kRefuse:
        if (l == nullptr) return;
        return Die(l);
      case Kind::kExit:
        exited_ = true;
        return;
      default:
        return;
    }
  }

  void ObeyStart(const Action& action, Launcher* l) {
    ASSERT_GT(driver_->core.generation(), 0);
    if (l == nullptr || action.attempt <= l->last_attempt || !l->interrupted.empty()) return;
    ASSERT_EQ(l->task, action.task);
    ASSERT_FALSE(l->running) << "two programs of one task";
    for (const auto& other : launchers_) {
      ASSERT_FALSE(other->task == l->task && other->running) << "two programs of one task";
    }
    l->last_attempt = action.attempt;
    l->running = true;
    l->draining = false;
  }

  // A core restored from the journal equals the original, also after the records went through their
  // text form.
  void CheckRestore() {
    std::vector<JournalRecord> read;
    for (const JournalRecord& record : driver_->records) {
      auto again = JournalRecordFromText(JournalRecordToText(record));
      ASSERT_TRUE(again.ok()) << again.status().ToString();
      read.push_back(std::move(again).value());
    }
    CoordinatorCore twin(driver_->core.job());
    ASSERT_TRUE(twin.Restore(read).ok());
    EXPECT_EQ(twin.generation(), driver_->core.generation());
    EXPECT_EQ(twin.job_state(), driver_->core.job_state());
    EXPECT_EQ(twin.last_seq(), driver_->core.last_seq());
    EXPECT_EQ(twin.verdict().has_value(), driver_->core.verdict().has_value());
    for (int task = 0; task < twin.task_count(); ++task) {
      ASSERT_EQ(twin.state_of(task), driver_->core.state_of(task));
      ASSERT_EQ(twin.attempt_of(task), driver_->core.attempt_of(task));
    }
    ASSERT_EQ(twin.Cluster(), driver_->core.Cluster());
    // And it continues from there.
    for (const Action& action : twin.Begin(driver_->now)) {
      ASSERT_NE(action.kind, Kind::kStart) << "nobody is connected to a new coordinator";
    }
  }

  void CheckFacts() {
    std::map<int, int> counted;
    std::map<int, bool> draining;
    int verdicts = 0;
    std::map<int, int> last_attempt;
    for (const JournalRecord& record : driver_->records) {
      if (record.kind == JournalRecord::Kind::kResumed) {
        ASSERT_EQ(std::exchange(verdicts, 0), 1) << "resumed without a suspension";
        draining.clear();
      }
      ASSERT_EQ(verdicts, 0) << "a fact after the verdict";
      verdicts += record.kind == JournalRecord::Kind::kVerdict;
      CheckScopes(record);
      CheckHosts(record);
      if (record.kind == JournalRecord::Kind::kStarted) {
        const auto before = last_attempt.find(record.task);
        ASSERT_TRUE(before == last_attempt.end() || before->second == record.attempt - 1);
        last_attempt[record.task] = record.attempt;
        ASSERT_FALSE(draining[record.task]) << "a drained task was started again";
      }
      if (record.kind == JournalRecord::Kind::kEnded &&
          interrupted_.contains({record.task, record.attempt})) {
        ASSERT_FALSE(record.end->ok() && !draining[record.task])
            << "others' stop counts as a good end";
      }
      if (record.kind == JournalRecord::Kind::kDraining) draining[record.task] = !record.restart;
      if (record.kind == JournalRecord::Kind::kEnded) counted[record.task] += record.counted;
    }
    EXPECT_EQ(verdicts, 1);
    for (const auto& [task, restarts] : counted) {
      EXPECT_LE(restarts, driver_->core.role_of(task).restart.limit);
    }
    EXPECT_FALSE(driver_->core.verdict()->reason.empty());
  }

  // No task of a group restart runs on when the others' next attempt begins, and roles keep their
  // order.
  void CheckScopes(const JournalRecord& record) {
    if (record.kind == JournalRecord::Kind::kStarted) {
      ASSERT_FALSE(restarting_group_[record.task]) << "started before its scope was together";
      const job::After& after = driver_->core.role_of(record.task).after;
      for (int task = 0; task < driver_->core.task_count() && !after.roles.empty(); ++task) {
        if (driver_->core.role_of(task).name != after.roles[0] || over_[task]) continue;
        const bool ready =
            ready_[task] || driver_->core.role_of(task).ready.by == job::ReadyBy::kStart;
        ASSERT_TRUE(active_[task] && (ready || after.when == job::AfterWhen::kStarted))
            << "started before " << driver_->core.NameOf(task);
      }
      active_[record.task] = true;
      ready_[record.task] = false;
    }
    if (record.kind == JournalRecord::Kind::kReady) ready_[record.task] = true;
    if (record.kind == JournalRecord::Kind::kEnded) {
      active_[record.task] = false;
      over_[record.task] = !record.restart;
      suspended_[record.task] = suspending_;
    }
    if (record.kind == JournalRecord::Kind::kJob && record.decided == JobState::kSuspended)
      suspending_ = true;
    if (record.kind == JournalRecord::Kind::kResumed) {
      suspending_ = false;
      restarting_group_.clear();
      for (const auto& [task, suspended] : suspended_) over_[task] = over_[task] && !suspended;
    }
    if (record.kind == JournalRecord::Kind::kRestart) {
      for (int task = 0; task < driver_->core.task_count(); ++task) {
        const bool in = record.scope == job::RestartScope::kJob ||
                        driver_->core.role_of(task).name == driver_->core.role_of(record.task).name;
        if (!in) continue;
        restarting_group_[task] = true;
        ++regroups_;
      }
    }
    if (record.kind != JournalRecord::Kind::kGeneration || !record.restart) return;
    for (auto& [task, regrouping] : restarting_group_) {
      ASSERT_FALSE(regrouping && active_[task]) << "a program of the last generation runs";
      if (regrouping) over_[task] = false;
      regrouping = false;
    }
  }

  void CheckHosts(const JournalRecord& record) {
    if (record.kind == JournalRecord::Kind::kLauncherAssigned) node_[record.task] = record.node;
    if (record.kind != JournalRecord::Kind::kExcluded &&
        record.kind != JournalRecord::Kind::kStarted &&
        record.kind != JournalRecord::Kind::kLauncherAssigned)
      return;
    const auto place = std::pair(driver_->core.role_of(record.task).name, node_[record.task]);
    if (record.kind == JournalRecord::Kind::kExcluded) {
      ASSERT_EQ(record.node, place.second);
      ASSERT_TRUE(excluded_.insert(place).second) << "a host was excluded twice";
      return;
    }
    ASSERT_FALSE(excluded_.contains(place)) << "a program was started on an excluded host";
  }

 public:
  int exclusions() const { return static_cast<int>(excluded_.size()); }
  int regroups() const { return regroups_; }
  int inspections() const { return inspections_; }
  int resumes() const { return resumes_; }

 private:
  std::map<int, std::string> node_;
  std::set<std::pair<std::string, std::string>> excluded_;  // role, host
  std::set<std::pair<int, int>> interrupted_;               // task, attempt
  std::map<int, bool> restarting_group_, active_, ready_, over_, suspended_;
  bool suspending_ = false;
  int resumes_ = 0;
  int regroups_ = 0;
  int inspections_ = 0;
  const uint64_t seed_;
  std::mt19937_64 random_;
  std::unique_ptr<CoreDriver> driver_;
  std::vector<std::unique_ptr<Launcher>> launchers_;
  std::map<int, int> incarnations_;
  std::deque<Action> pending_;
  bool handling_ = false;
  MemberId members_ = 0;
  int instances_ = 0;
  bool exited_ = false;
};

TEST(CoreProperties, HoldInRandomOrders) {
  int regroups = 0, inspections = 0, resumes = 0, exclusions = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    world.Run();
    if (HasFailure()) return;
    regroups += world.regroups();
    inspections += world.inspections();
    resumes += world.resumes();
    exclusions += world.exclusions();
  }
  EXPECT_GT(regroups, 100);  // otherwise they are not tested
  EXPECT_GT(inspections, 100);
  EXPECT_GT(resumes, 30);
  EXPECT_GT(exclusions, 30);
}

}  // namespace
}  // namespace shoal::rendezvous
