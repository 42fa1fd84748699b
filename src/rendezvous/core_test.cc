// The coordinator's rules under a clock that the test turns: single rules first, then random
// orders of events against what must hold in all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "rendezvous/coordinator_core.h"

namespace shoal::rendezvous {
namespace {

using job::JobState;
using job::TaskState;
using testing::HasSubstr;
using Kind = Action::Kind;

job::Job Make(int workers, int servers) {
  job::Job job;
  job.roles.resize(servers > 0 ? 2 : 1);
  job.roles[0].name = "worker";
  job.roles[0].replicas = workers;
  if (servers > 0) {
    job.roles[1].name = "server";
    job.roles[1].replicas = servers;
    job.roles[1].follows = "worker";
    job.roles[1].ports = {{"ps", false}};
  }
  job.success.roles = {"worker"};
  return job;
}

// Drives a core by hand and keeps what it said.
class Driver {
 public:
  explicit Driver(const job::Job& job, bool controller = true) : core(job) {
    Take(core.Begin(now));
    if (controller) Do(ControllerCame{});
  }
  void Do(const Event& event) { Take(core.Handle(event, now)); }
  // `last` is then what was said during all of it.
  void Pass(Millis by) {
    const Millis until = now + by;
    std::vector<Action> all;
    do {
      now = std::min(until, std::max(now, core.NextDeadline().value_or(until)));
      Do(Tick{});
      all.insert(all.end(), last.begin(), last.end());
    } while (now < until);
    last = std::move(all);
  }
  void Join(MemberId member, const std::string& role, int index, int incarnation = 0) {
    Do(Joined{member, role, index, incarnation, "i" + std::to_string(member), 0, -1, false});
    Do(PortsLeased{member, "h" + std::to_string(member), {static_cast<uint16_t>(4000 + member)}});
  }
  void JoinAll() {
    MemberId member = 1;
    for (const job::Role& role : core.job().roles) {
      for (int i = 0; i < role.replicas; ++i) Join(member++, role.name, i);
    }
  }
  void End(MemberId member, const job::TaskEnd& end, const std::string& line = "") {
    Do(ProgramEnded{member, core.attempt_of(*core.TaskOf(member)), end, line});
  }
  int Count(Kind kind, int task = -1) const {
    return static_cast<int>(std::count_if(last.begin(), last.end(), [&](const Action& one) {
      return one.kind == kind && (task < 0 || one.task == task);
    }));
  }
  std::string Text(Kind kind) const {
    for (const Action& one : last) {
      if (one.kind == kind) return one.text;
    }
    return "(none)";
  }
  void Take(std::vector<Action> actions) {
    last = std::move(actions);
    for (const Action& one : last) {
      if (one.kind == Kind::kRecord) facts.push_back(one.fact);
    }
  }

  Millis now{0};
  CoordinatorCore core;
  std::vector<Action> last;
  std::vector<Fact> facts;
};

TEST(Core, StartsNobodyBeforeAllHaveJoinedAndThenInIndexOrder) {
  Driver d(Make(2, 1));
  d.Join(1, "worker", 1);
  d.Join(2, "server", 0);
  EXPECT_EQ(d.core.generation(), 0);
  d.Do(Joined{3, "worker", 0, 0, "i3", 0, -1, false});
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  d.Do(PortsLeased{3, "h3", {}});
  EXPECT_EQ(d.Count(Kind::kStart), 3);
  EXPECT_EQ(d.core.generation(), 1);
  const auto cluster = d.core.Cluster();
  EXPECT_EQ(cluster.FindRole("worker")->members[0].host, "h3");
  EXPECT_EQ(cluster.FindRole("worker")->members[1].host, "h1");
  EXPECT_EQ(cluster.FindRole("server")->members[0].ports, std::vector<uint16_t>{4002});
}

TEST(Core, GatheringFailsNamingWhoIsMissing) {
  Driver d(Make(3, 0));
  d.Join(1, "worker", 0);
  d.Do(Heard{1});
  for (int i = 0; i < 310; ++i) {
    d.Pass(Millis(1000));
    d.Do(Heard{1});
  }
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kFailed);
  EXPECT_FALSE(d.core.verdict()->gathered);
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 1 and 1 other task did not join"));
}

TEST(Core, OneHolderAPlace) {
  Driver d(Make(1, 0));
  d.Join(1, "worker", 0, 0);
  d.Do(Joined{2, "worker", 0, 1, "i2", 0, -1, false});
  EXPECT_EQ(d.Count(Kind::kWait), 1);
  d.Do(Joined{3, "worker", 7, 0, "i3", 0, -1, false});
  EXPECT_EQ(d.Count(Kind::kRefuse), 1);
  // A later incarnation and the end of the old one's connection: known dead, at once.
  d.Do(Left{1});
  EXPECT_EQ(d.Count(Kind::kWelcome), 1);
  EXPECT_EQ(d.core.MemberOf(0), 2u);
  d.Do(Joined{4, "worker", 0, 0, "i4", 0, -1, false});
  EXPECT_EQ(d.Count(Kind::kRefuse), 1);  // an older one
}

TEST(Core, ANewcomerOfTheSameIncarnationWaitsUntilTheOldOneIsDead) {
  Driver d(Make(1, 0));
  d.JoinAll();
  d.Do(Joined{2, "worker", 0, 0, "other", 0, -1, false});
  d.Do(Left{1});
  EXPECT_EQ(d.core.MemberOf(0), 0u);
  d.Pass(Millis(29'000));
  EXPECT_EQ(d.core.MemberOf(0), 0u);
  d.Pass(Millis(1'500));
  EXPECT_EQ(d.core.MemberOf(0), 2u);
}

TEST(Core, FollowersAreDrainedInTheVeryStepOfTheLastEndWellOrBadly) {
  for (const int code : {0, 3}) {
    Driver d(Make(2, 2));
    d.JoinAll();
    d.End(1, job::Exited(0));
    EXPECT_EQ(d.Count(Kind::kDrain), 0);
    d.End(2, job::Exited(code));
    EXPECT_EQ(d.Count(Kind::kDrain, 2), 1);
    EXPECT_EQ(d.Count(Kind::kDrain, 3), 1);
    d.End(3, job::Signaled(15));
    d.End(4, job::Exited(0));
    ASSERT_TRUE(d.core.verdict());
    EXPECT_EQ(d.core.verdict()->state, code == 0 ? JobState::kSucceeded : JobState::kFailed);
  }
}

TEST(Core, AFollowerIsNotStoppedForATaskThatWillBeRestarted) {
  Driver d(Make(1, 1));
  d.JoinAll();
  d.End(1, job::Signaled(11));
  EXPECT_EQ(d.Count(Kind::kDrain), 0);
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  d.Pass(Millis(600));
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  EXPECT_EQ(d.core.attempt_of(0), 1);
}

TEST(Core, KilledAtTheGraceAndGivenUpAfterThat) {
  Driver d(Make(1, 1));
  d.JoinAll();
  d.End(1, job::Exited(0));
  const Millis drained = d.now;
  while (d.Count(Kind::kKill) == 0) {
    d.Do(Heard{2});
    d.Pass(Millis(100));
    ASSERT_LT(d.now, Millis(20'000));
  }
  EXPECT_GE(d.now - drained, d.core.job().limits.stop_grace);
  EXPECT_LE(d.now - drained, d.core.job().limits.stop_grace + Millis(100));
  for (int i = 0; i < 60; ++i) {
    d.Do(Heard{2});
    d.Pass(Millis(100));
  }
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kSucceeded);
}

TEST(Core, RestartsBackOffAndEndAtTheLimit) {
  Driver d(Make(1, 0));
  d.JoinAll();
  for (const int wait : {500, 1000, 2000}) {
    d.End(1, job::Signaled(9));
    EXPECT_EQ(d.core.state_of(0), TaskState::kJoined);
    d.Pass(Millis(wait - 1));
    EXPECT_EQ(d.core.state_of(0), TaskState::kJoined);
    d.Pass(Millis(1));
    EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
    d.Do(Heard{1});
  }
  d.End(1, job::Signaled(9), "goodbye");
  ASSERT_TRUE(d.core.verdict());
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 0 was killed by"));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("the limit is 3"));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("its last line was: goodbye"));
}

TEST(Core, TheFirstDeathIsTheCauseAndTheNextAreNotCounted) {
  job::Job job = Make(3, 0);
  job.roles[0].restart.limit = 1;
  Driver d(job);
  d.JoinAll();
  d.End(1, job::Signaled(9));
  d.End(2, job::Exited(1));  // permanent by itself, here a consequence
  d.End(3, job::Signaled(9));
  EXPECT_FALSE(d.core.verdict());
  EXPECT_TRUE(d.facts[d.facts.size() - 1].consequence);
  EXPECT_FALSE(d.facts[d.facts.size() - 1].counted);
  d.Pass(Millis(600));
  for (int task = 0; task < 3; ++task) EXPECT_EQ(d.core.state_of(task), TaskState::kRunning);
}

TEST(Core, OneOutOfMemoryIsTransientTheSecondIsTheReason) {
  Driver d(Make(1, 0));
  d.JoinAll();
  d.End(1, job::OutOfMemory("exceeded its 512 MiB"));
  d.Pass(Millis(600));
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  d.End(1, job::OutOfMemory("exceeded its 512 MiB"));
  ASSERT_TRUE(d.core.verdict());
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 0 exceeded its 512 MiB"));
}

TEST(Core, ALostLauncherCostsARestartAndItsNewAddressANewGeneration) {
  Driver d(Make(2, 1));
  d.JoinAll();
  d.Do(Left{3});
  d.Do(Joined{9, "server", 0, 1, "i9", 0, -1, false});
  d.Do(PortsLeased{9, "h9", {4999}});
  EXPECT_EQ(d.core.generation(), 2);
  EXPECT_EQ(d.Count(Kind::kDescribe), 1);
  d.Pass(Millis(600));
  EXPECT_EQ(d.core.state_of(2), TaskState::kRunning);
  EXPECT_EQ(d.core.attempt_of(2), 1);
  EXPECT_EQ(d.core.Cluster().FindRole("server")->members[0].host, "h9");
}

TEST(Core, SilenceIsSuspectThenDeathAndTheEnginesWordIsDeathAtOnce) {
  Driver d(Make(2, 0));
  d.JoinAll();
  d.Pass(Millis(5'000));
  d.Do(Heard{1});
  EXPECT_EQ(d.Text(Kind::kNote), "worker 0 is heard of again");
  d.Pass(Millis(25'000));
  EXPECT_EQ(d.core.state_of(1), TaskState::kCreated);
  EXPECT_EQ(d.core.state_of(0), TaskState::kRunning);
  d.Do(LauncherLost{"worker", 0, 0, "its node went away"});
  EXPECT_EQ(d.core.state_of(0), TaskState::kCreated);
}

TEST(Core, AReconnectingLauncherKeepsItsProgramAndGetsOrdersThatWereLost) {
  Driver d(Make(1, 1));
  d.JoinAll();
  d.Do(Left{2});
  d.End(1, job::Exited(0));
  d.Do(Joined{5, "server", 0, 0, "i2", 1, 0, true});
  EXPECT_EQ(d.Count(Kind::kStart), 0);
  EXPECT_EQ(d.Count(Kind::kDrain, 1), 1);
  d.Do(Left{5});
  d.Do(Joined{6, "server", 0, 0, "i2", 1, 0, true});
  d.End(6, job::Exited(0));
  ASSERT_TRUE(d.core.verdict());
  // The same end again: acknowledged again, counted once.
  d.Do(Joined{7, "server", 0, 0, "i2", 1, 0, true});
  d.Do(ProgramEnded{7, 0, job::Exited(0), ""});
  EXPECT_GE(d.Count(Kind::kAck), 1);
  EXPECT_EQ(d.Count(Kind::kRecord), 0);
}

TEST(Core, AnUnknownProgramIsRefused) {
  Driver d(Make(1, 0));
  d.Do(Joined{1, "worker", 0, 0, "stranger", 3, 2, true});
  EXPECT_EQ(d.Count(Kind::kRefuse), 1);
}

TEST(Core, NothingIsAcknowledgedBeforeItIsStored) {
  Driver d(Make(1, 0));
  d.JoinAll();
  d.End(1, job::Exited(0));
  int64_t ended = 0, verdict = 0;
  for (const Action& one : d.last) {
    if (one.kind == Kind::kRecord && one.fact.kind == Fact::Kind::kEnded) ended = one.fact.seq;
    if (one.kind == Kind::kRecord && one.fact.kind == Fact::Kind::kVerdict) verdict = one.fact.seq;
    if (one.kind == Kind::kAck || one.kind == Kind::kRelease) {
      EXPECT_EQ(one.after, ended);
    }
    if (one.kind == Kind::kWriteVerdict) {
      EXPECT_EQ(one.after, verdict);
    }
  }
  EXPECT_GT(ended, 0);
  EXPECT_GT(verdict, ended);
}

TEST(Core, ItEndsWhenTheVerdictIsAcknowledgedOrAfterFiveSeconds) {
  Driver acked(Make(1, 0));
  acked.JoinAll();
  acked.End(1, job::Exited(0));
  acked.Do(VerdictAcked{});
  EXPECT_EQ(acked.Count(Kind::kExit), 0);
  acked.Do(Left{1});
  EXPECT_EQ(acked.Count(Kind::kExit), 1);

  Driver silent(Make(1, 0));
  silent.JoinAll();
  silent.End(1, job::Exited(0));
  silent.now += Millis(4'999);
  silent.Do(Tick{});
  EXPECT_EQ(silent.Count(Kind::kExit), 0);
  silent.now += Millis(1);
  silent.Do(Tick{});
  EXPECT_EQ(silent.Count(Kind::kExit), 1);
}

TEST(Core, ADeadlineAndALostController) {
  job::Job job = Make(1, 0);
  job.limits.deadline = Millis(2'000);
  Driver d(job);
  d.JoinAll();
  d.Pass(Millis(2'000));
  EXPECT_EQ(d.Count(Kind::kDrain), 1);
  d.End(1, job::Signaled(15));
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("deadline of 2.0 s"));

  Driver e(Make(1, 0));
  e.JoinAll();
  e.Do(ControllerWent{});
  e.Pass(Millis(4'900));
  EXPECT_EQ(e.core.state_of(0), TaskState::kRunning);
  e.Pass(Millis(100));
  EXPECT_EQ(e.core.state_of(0), TaskState::kDraining);
  e.End(1, job::Exited(0));
  EXPECT_EQ(e.core.verdict()->state, JobState::kCancelled);
  // Nobody is left to acknowledge it.
  e.Do(Left{1});
  EXPECT_EQ(e.Count(Kind::kExit), 1);
}

TEST(Core, DrainThenStopThenKill) {
  Driver d(Make(1, 1));
  d.JoinAll();
  d.Do(Command{StopMode::kDrain, "Ctrl-C"});
  EXPECT_EQ(d.Count(Kind::kDrain, 0), 1);
  EXPECT_EQ(d.Count(Kind::kDrain, 1), 0);  // it follows
  d.Do(Command{StopMode::kStop, "Ctrl-C again"});
  EXPECT_EQ(d.Count(Kind::kDrain, 1), 1);
  d.Do(Command{StopMode::kKill, "and again"});
  EXPECT_EQ(d.Count(Kind::kKill), 2);
  d.End(1, job::Signaled(9));
  d.End(2, job::Signaled(9));
  EXPECT_EQ(d.core.verdict()->state, JobState::kCancelled);
}

TEST(Core, AStopBeforeAnythingStartedEndsAtOnce) {
  Driver d(Make(2, 1));
  d.Join(1, "worker", 0);
  d.Do(Command{StopMode::kStop, "never mind"});
  ASSERT_TRUE(d.core.verdict());
  EXPECT_EQ(d.core.verdict()->state, JobState::kCancelled);
  EXPECT_EQ(d.Count(Kind::kRelease), 1);
}

TEST(Core, ARefusedTaskFailsTheJobWithItsReason) {
  Driver d(Make(2, 0));
  d.Join(1, "worker", 0);
  d.Do(LauncherRefused{"worker", 1, "no such image"});
  ASSERT_TRUE(d.core.verdict());
  EXPECT_THAT(d.core.verdict()->reason, HasSubstr("worker 1 could not be started: no such image"));
}

TEST(Core, RestoreRefusesAForeignJournal) {
  Driver d(Make(2, 0));
  d.JoinAll();
  CoordinatorCore smaller(Make(1, 0));
  EXPECT_EQ(smaller.Restore(d.facts).code(), Code::kDataLoss);
  std::vector<Fact> gap = d.facts;
  gap.erase(gap.begin() + 1);
  CoordinatorCore same(Make(2, 0));
  EXPECT_EQ(same.Restore(gap).code(), Code::kDataLoss);
}

// ---- Random orders ------------------------------------------------------------------------------

// A world of launchers that do what they are told, at random times, and die at random.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed), driver_(RandomJob()) {}

  void Run() {
    for (int step = 0; step < 3000 && !exited_; ++step) {
      Step();
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
    int last_attempt = -1;
    bool running = false;
    bool draining = false;
    std::optional<job::TaskEnd> unacked;
    bool released = false;
    bool told = false;  // its unacked end, on this connection
  };

  int Roll(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  job::Job RandomJob() {
    job::Job job = Make(1 + Roll(4), Roll(3));
    job.limits.gather = Millis(20'000);
    job.limits.stop_grace = Millis(Roll(2) * 500);
    job.roles[0].restart.limit = Roll(4);
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
          Do(Command{Roll(2) ? StopMode::kDrain : StopMode::kStop, "somebody wants it"});
        }
        return;
      case 7:
        return Tell(Pick());
      case 8:
      case 9:
      case 10:
        return EndProgram(Pick());
      default:
        for (const auto& one : launchers_) {
          if (one->member != 0) Do(Heard{one->member});
        }
        if (driver_.core.verdict()) Do(VerdictAcked{});
    }
  }

  void PassTime(Millis by) {
    const Millis until = driver_.now + by;
    while (driver_.core.NextDeadline() && *driver_.core.NextDeadline() <= until && !exited_) {
      driver_.now = std::max(driver_.now, *driver_.core.NextDeadline());
      Do(Tick{});
    }
    driver_.now = until;
  }

  Launcher* Pick() {
    if (launchers_.empty()) return nullptr;
    return launchers_[static_cast<size_t>(Roll(static_cast<int>(launchers_.size())))].get();
  }

  void Spawn() {
    const int task = Roll(driver_.core.task_count());
    for (const auto& one : launchers_) {
      if (one->task == task) return;  // the engine makes a new one only for a dead one
    }
    auto launcher = std::make_unique<Launcher>();
    launcher->task = task;
    launcher->incarnation = incarnations_[task]++;
    launcher->instance = "x" + std::to_string(++instances_);
    launchers_.push_back(std::move(launcher));
    Connect(launchers_.back().get());
  }

  void Connect(Launcher* l) {
    if (l == nullptr || l->member != 0 || l->released) return;
    l->member = ++members_;
    l->told = false;
    Do(Joined{l->member, driver_.core.role_of(l->task).name, driver_.core.index_of(l->task),
              l->incarnation, l->instance, 0, l->last_attempt, l->running || l->unacked});
  }

  void Disconnect(Launcher* l) {
    if (l == nullptr || l->member == 0 || Roll(3) != 0) return;
    const MemberId member = std::exchange(l->member, 0);
    Do(Left{member});
  }

  void Die(Launcher* l) {
    if (l == nullptr) return;
    const MemberId member = l->member;
    std::erase_if(launchers_, [&](const auto& one) { return one.get() == l; });
    if (member != 0) Do(Left{member});
  }

  void EndProgram(Launcher* l) {
    if (l == nullptr || !l->running || (!l->draining && Roll(6) != 0)) return;
    l->running = false;
    const int how = Roll(10);
    l->unacked = how < 6 ? job::Exited(0) : how < 9 ? job::Signaled(9) : job::Exited(1);
    l->told = false;
    Tell(l);
  }

  void Tell(Launcher* l) {
    if (l == nullptr || l->member == 0 || !l->unacked || l->told) return;
    l->told = true;
    Do(ProgramEnded{l->member, l->last_attempt, *l->unacked, ""});
  }

  Launcher* ByMember(MemberId member) {
    for (const auto& one : launchers_) {
      if (member != 0 && one->member == member) return one.get();
    }
    return nullptr;
  }

  void Do(const Event& event) {
    driver_.Do(event);
    pending_.insert(pending_.end(), driver_.last.begin(), driver_.last.end());
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
      case Kind::kAck:
        if (l != nullptr && action.attempt == l->last_attempt) l->unacked.reset();
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
    ASSERT_GT(driver_.core.generation(), 0);
    if (l == nullptr || action.attempt <= l->last_attempt) return;
    ASSERT_EQ(l->task, action.task);
    ASSERT_FALSE(l->running) << "two programs of one task";
    for (const auto& other : launchers_) {
      ASSERT_FALSE(other->task == l->task && other->running) << "two programs of one task";
    }
    l->last_attempt = action.attempt;
    l->running = true;
    l->draining = false;
  }

  // What the journal holds is what the core is: another one made of it agrees, and so it does when
  // the facts went through their text.
  void CheckRestore() {
    std::vector<Fact> read;
    for (const Fact& fact : driver_.facts) {
      auto again = FactFromText(FactToText(fact));
      ASSERT_TRUE(again.ok()) << again.status().ToString();
      read.push_back(std::move(again).value());
    }
    CoordinatorCore twin(driver_.core.job());
    ASSERT_TRUE(twin.Restore(read).ok());
    EXPECT_EQ(twin.generation(), driver_.core.generation());
    EXPECT_EQ(twin.job_state(), driver_.core.job_state());
    EXPECT_EQ(twin.last_seq(), driver_.core.last_seq());
    EXPECT_EQ(twin.verdict().has_value(), driver_.core.verdict().has_value());
    for (int task = 0; task < twin.task_count(); ++task) {
      ASSERT_EQ(twin.state_of(task), driver_.core.state_of(task));
      ASSERT_EQ(twin.attempt_of(task), driver_.core.attempt_of(task));
    }
    ASSERT_EQ(twin.Cluster(), driver_.core.Cluster());
    // And goes on from there by itself.
    for (const Action& action : twin.Begin(driver_.now)) {
      ASSERT_NE(action.kind, Kind::kStart) << "nobody is connected to a new coordinator";
    }
  }

  void CheckFacts() {
    std::map<int, int> counted;
    std::map<int, bool> draining;
    int verdicts = 0;
    std::map<int, int> last_attempt;
    for (const Fact& fact : driver_.facts) {
      ASSERT_EQ(verdicts, 0) << "a fact after the verdict";
      verdicts += fact.kind == Fact::Kind::kVerdict;
      if (fact.kind == Fact::Kind::kStarted) {
        const auto before = last_attempt.find(fact.task);
        ASSERT_TRUE(before == last_attempt.end() || before->second == fact.attempt - 1);
        last_attempt[fact.task] = fact.attempt;
        ASSERT_FALSE(draining[fact.task]) << "a drained task was started again";
      }
      if (fact.kind == Fact::Kind::kDraining) draining[fact.task] = true;
      if (fact.kind == Fact::Kind::kEnded) counted[fact.task] += fact.counted;
    }
    EXPECT_EQ(verdicts, 1);
    for (const auto& [task, restarts] : counted) {
      EXPECT_LE(restarts, driver_.core.role_of(task).restart.limit);
    }
    EXPECT_FALSE(driver_.core.verdict()->reason.empty());
  }

  std::mt19937_64 random_;
  Driver driver_;
  std::vector<std::unique_ptr<Launcher>> launchers_;
  std::map<int, int> incarnations_;
  std::deque<Action> pending_;
  bool handling_ = false;
  MemberId members_ = 0;
  int instances_ = 0;
  bool exited_ = false;
};

TEST(CoreProperties, HoldInRandomOrders) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace shoal::rendezvous
