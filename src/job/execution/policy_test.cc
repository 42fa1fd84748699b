#include "job/execution/policy.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace shoal::job {
namespace {

using std::chrono::milliseconds;

Job TwoRoles(SuccessRule rule, int count = 0) {
  Job job;
  Role worker;
  worker.name = "worker";
  worker.replicas = 3;
  Role server;
  server.name = "server";
  server.follows = "worker";
  job.roles = {worker, server};
  job.success = {rule, {"worker"}, count};
  return job;
}

std::vector<TaskOutcome> Workers(std::initializer_list<Outcome> outcomes) {
  std::vector<TaskOutcome> tasks;
  for (const Outcome outcome : outcomes) {
    tasks.push_back({"worker", static_cast<int>(tasks.size()), outcome,
                     outcome == Outcome::kFailed ? "exited with 3" : ""});
  }
  tasks.push_back({"server", 0, Outcome::kUnfinished, ""});
  return tasks;
}

constexpr auto kUnfinished = Outcome::kUnfinished;
constexpr auto kGood = Outcome::kSucceeded;
constexpr auto kBad = Outcome::kFailed;

TEST(Judge, All) {
  const Job job = TwoRoles(SuccessRule::kAll);
  EXPECT_EQ(Judge(job, Workers({kGood, kUnfinished, kGood})).reason,
            "waiting for 1 task of worker to end");
  EXPECT_EQ(Judge(job, Workers({kGood, kGood, kGood})).reason, "all 3 tasks of worker ended well");
  const Verdict failed = Judge(job, Workers({kGood, kBad, kUnfinished}));
  EXPECT_EQ(failed.kind, Verdict::Kind::kFailed);
  EXPECT_EQ(failed.reason, "worker 1 exited with 3, and every task of worker must end well");
}

TEST(Judge, AnyFirstAndCount) {
  EXPECT_EQ(Judge(TwoRoles(SuccessRule::kAny), Workers({kBad, kGood, kUnfinished})).kind,
            Verdict::Kind::kSucceeded);
  EXPECT_EQ(Judge(TwoRoles(SuccessRule::kAny), Workers({kBad, kBad, kUnfinished})).kind,
            Verdict::Kind::kUndecided);
  EXPECT_EQ(Judge(TwoRoles(SuccessRule::kAny), Workers({kBad, kBad, kBad})).kind,
            Verdict::Kind::kFailed);
  EXPECT_EQ(Judge(TwoRoles(SuccessRule::kFirst), Workers({kGood, kBad, kUnfinished})).kind,
            Verdict::Kind::kSucceeded);
  EXPECT_EQ(Judge(TwoRoles(SuccessRule::kFirst), Workers({kUnfinished, kGood, kBad})).reason,
            "worker 2 exited with 3 and is not started again, so worker 0 cannot finish");
  EXPECT_EQ(Judge(TwoRoles(SuccessRule::kFirst), Workers({kBad, kGood, kGood})).reason,
            "worker 0 exited with 3, and its end decides the job");
  const Verdict count = Judge(TwoRoles(SuccessRule::kCount, 2), Workers({kBad, kBad, kUnfinished}));
  EXPECT_EQ(count.kind, Verdict::Kind::kFailed);
  EXPECT_EQ(
      count.reason,
      "only 1 of 3 tasks of worker could still end well, and 2 had to: worker 0 exited with 3");
}

TEST(Judge, AServerThatIsGoneFailsTheJobUnlessItHasSucceeded) {
  const Job job = TwoRoles(SuccessRule::kAll);
  auto tasks = Workers({kGood, kUnfinished, kGood});
  tasks.back().outcome = kBad;
  tasks.back().reason = "was killed by signal 9 (SIGKILL)";
  EXPECT_EQ(Judge(job, tasks).reason,
            "server 0 was killed by signal 9 (SIGKILL) and is not started again, so worker cannot "
            "finish");
  tasks[1].outcome = kGood;
  EXPECT_EQ(Judge(job, tasks).kind, Verdict::Kind::kSucceeded);
  tasks[1].outcome = kUnfinished;
  tasks.back().outcome = Outcome::kStopped;
  EXPECT_EQ(Judge(job, tasks).kind, Verdict::Kind::kUndecided);
}

TEST(Judge, AnElasticRoleDoesWithoutSomeWhileItsMinIsThere) {
  Job job = TwoRoles(SuccessRule::kAll);
  job.roles[0].min_replicas = 2;
  EXPECT_EQ(Judge(job, Workers({kUnfinished, kBad, kUnfinished})).kind, Verdict::Kind::kUndecided);
  EXPECT_EQ(Judge(job, Workers({kGood, kBad, kGood})).reason, "all 2 tasks of worker ended well");
  EXPECT_EQ(Judge(job, Workers({kGood, kBad, kBad})).kind, Verdict::Kind::kFailed);
  EXPECT_EQ(Judge(job, Workers({kGood, Outcome::kStopped, kGood})).kind, Verdict::Kind::kSucceeded);
  job.success.rule = SuccessRule::kFirst;
  EXPECT_EQ(Judge(job, Workers({kUnfinished, kBad, kUnfinished})).kind, Verdict::Kind::kUndecided);
  EXPECT_EQ(Judge(job, Workers({kBad, kUnfinished, kUnfinished})).kind, Verdict::Kind::kFailed);
}

TEST(Judge, TheJobsLastRestartEndsItUnderEveryRule) {
  for (const SuccessRule rule :
       {SuccessRule::kAll, SuccessRule::kAny, SuccessRule::kFirst, SuccessRule::kCount}) {
    Job job = TwoRoles(rule, 1);
    job.roles[0].min_replicas = 1;
    auto tasks = Workers({kUnfinished, kBad, kUnfinished});
    EXPECT_EQ(Judge(job, tasks).kind, Verdict::Kind::kUndecided);
    tasks[1].ends_job = true;
    EXPECT_EQ(Judge(job, tasks).kind, Verdict::Kind::kFailed);
  }
}

TEST(Restart, TheWholeJobsLimitCountsWhatCounts) {
  Limits limits;
  limits.restarts = 2;
  const auto decide = [&](int of_job, bool consequence) {
    RestartHistory history;
    history.of_job = of_job;
    return LimitRestarts(limits, history,
                         DecideRestart(Restart{}, Signaled(9), history, consequence));
  };
  EXPECT_TRUE(decide(1, false).restart);
  EXPECT_FALSE(decide(2, false).restart);
  EXPECT_TRUE(decide(2, false).exhausted);
  EXPECT_EQ(decide(2, false).reason,
            "not restarted, as tasks of this job were restarted 2 times already, and 'limits: "
            "restarts' allows 2");
  EXPECT_TRUE(decide(2, true).restart);
  limits.restarts.reset();
  EXPECT_TRUE(decide(1000, false).restart);
}

TEST(Judge, NoTasksNoSuccess) {
  EXPECT_EQ(Judge(TwoRoles(SuccessRule::kAll), {}).kind, Verdict::Kind::kFailed);
  EXPECT_EQ(Judge(TwoRoles(SuccessRule::kFirst), {}).kind, Verdict::Kind::kFailed);
}

rc::Gen<Outcome> AnyOutcome() {
  return rc::gen::element(kUnfinished, kGood, kBad, Outcome::kStopped);
}

std::vector<TaskOutcome> Tasks(const std::vector<Outcome>& workers, Outcome server) {
  std::vector<TaskOutcome> tasks;
  for (const Outcome outcome : workers) {
    tasks.push_back({"worker", static_cast<int>(tasks.size()), outcome, ""});
  }
  tasks.push_back({"server", 0, server, ""});
  return tasks;
}

// Compares with a brute-force formulation of the rules: a verdict is decided exactly when all
// possible outcomes of the unfinished tasks lead to the same one.
TEST(Judge, IsDecidedExactlyWhenNothingCanChangeIt) {
  EXPECT_TRUE(rc::check([] {
    const auto n = *rc::gen::inRange<size_t>(1, 6);
    const auto workers = *rc::gen::container<std::vector<Outcome>>(n, AnyOutcome());
    const auto rule = *rc::gen::element(SuccessRule::kAll, SuccessRule::kAny, SuccessRule::kFirst,
                                        SuccessRule::kCount);
    const int count = *rc::gen::inRange(1, static_cast<int>(n) + 1);
    const Job job = TwoRoles(rule, count);
    bool may_succeed = false;
    bool may_fail = false;
    std::vector<size_t> going;
    for (size_t i = 0; i < n; ++i) {
      if (workers[i] == kUnfinished) going.push_back(i);
    }
    for (size_t ends = 0; ends < (size_t{1} << going.size()); ++ends) {
      std::vector<Outcome> final = workers;
      for (size_t k = 0; k < going.size(); ++k) {
        final[going[k]] = (ends >> k & 1) != 0 ? kGood : kBad;
      }
      const auto good = std::count(final.begin(), final.end(), kGood);
      // Another worker that has failed already keeps worker 0 from ending well.
      const bool first =
          final[0] == kGood &&
          (workers[0] == kGood || std::count(workers.begin(), workers.end(), kBad) == 0);
      const bool success = rule == SuccessRule::kAll     ? good == static_cast<long>(n)
                           : rule == SuccessRule::kAny   ? good >= 1
                           : rule == SuccessRule::kFirst ? first
                                                         : good >= count;
      (success ? may_succeed : may_fail) = true;
    }
    const Verdict verdict = Judge(job, Tasks(workers, kUnfinished));
    RC_ASSERT(!verdict.reason.empty());
    RC_ASSERT((verdict.kind == Verdict::Kind::kSucceeded) == !may_fail);
    RC_ASSERT((verdict.kind == Verdict::Kind::kFailed) == !may_succeed);
    const Verdict with_dead_server = Judge(job, Tasks(workers, kBad));
    RC_ASSERT((with_dead_server.kind == Verdict::Kind::kSucceeded) == !may_fail);
    RC_ASSERT(with_dead_server.kind != Verdict::Kind::kUndecided);
  }));
}

TEST(ClassifyEnd, TransientAndPermanent) {
  EXPECT_EQ(ClassifyEnd(Exited(0)), EndClass::kSuccess);
  EXPECT_EQ(ClassifyEnd(Exited(1)), EndClass::kPermanent);
  EXPECT_EQ(ClassifyEnd(Exited(127)), EndClass::kPermanent);
  EXPECT_EQ(ClassifyEnd(Exited(128)), EndClass::kTransient);
  EXPECT_EQ(ClassifyEnd(Exited(137)), EndClass::kTransient);
  EXPECT_EQ(ClassifyEnd(Signaled(9)), EndClass::kTransient);
  EXPECT_EQ(ClassifyEnd(Lost("")), EndClass::kTransient);
  EXPECT_EQ(ClassifyEnd(OutOfMemory(""), 0), EndClass::kTransient);
  EXPECT_EQ(ClassifyEnd(OutOfMemory(""), 1), EndClass::kPermanent);
  EXPECT_EQ(ClassifyEnd(CancelledEnd("")), EndClass::kCancelled);
}

TEST(Restart, TransientUpToTheLimit) {
  Restart policy;
  EXPECT_FALSE(DecideRestart(policy, Exited(1), {}, false).restart);
  EXPECT_FALSE(DecideRestart(policy, Exited(0), {}, true).restart);
  EXPECT_FALSE(DecideRestart(policy, CancelledEnd(""), {}, true).restart);
  const RestartDecision first = DecideRestart(policy, Signaled(9), {}, false);
  EXPECT_TRUE(first.restart && first.counted);
  EXPECT_EQ(first.delay, milliseconds(500));
  EXPECT_EQ(first.reason, "restart 1 of 3 in 500 ms");
  EXPECT_TRUE(DecideRestart(policy, Signaled(9), {2, 0}, false).restart);
  const RestartDecision last = DecideRestart(policy, Signaled(9), {3, 0}, false);
  EXPECT_FALSE(last.restart);
  EXPECT_EQ(last.reason, "not restarted, as it was restarted 3 times already and the limit is 3");
  Restart never;
  never.limit = 0;
  EXPECT_EQ(DecideRestart(never, Signaled(9), {}, false).reason,
            "not restarted, as the limit of restarts is 0");
  EXPECT_TRUE(DecideRestart(policy, OutOfMemory(""), {0, 0}, false).restart);
  EXPECT_FALSE(DecideRestart(policy, OutOfMemory(""), {1, 1}, false).restart);
}

TEST(Restart, AlwaysNeverAndConsequences) {
  Restart policy;
  policy.when = RestartWhen::kAlways;
  EXPECT_TRUE(DecideRestart(policy, Exited(1), {}, false).restart);
  EXPECT_FALSE(DecideRestart(policy, Exited(0), {}, false).restart);
  EXPECT_FALSE(DecideRestart(policy, Exited(1), {3, 0}, false).restart);
  policy.when = RestartWhen::kNever;
  EXPECT_FALSE(DecideRestart(policy, Signaled(9), {}, false).restart);
  EXPECT_FALSE(DecideRestart(policy, Signaled(9), {}, true).restart);
  policy.when = RestartWhen::kTransient;
  const RestartDecision consequence = DecideRestart(policy, Exited(1), {3, 0}, true);
  EXPECT_TRUE(consequence.restart);
  EXPECT_FALSE(consequence.counted);
}

TEST(Restart, CountedRestartsNeverPassTheLimit) {
  EXPECT_TRUE(rc::check([] {
    Restart policy;
    policy.limit = *rc::gen::inRange(0, 10);
    policy.when =
        *rc::gen::element(RestartWhen::kNever, RestartWhen::kTransient, RestartWhen::kAlways);
    const auto ends = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 200));
    RestartHistory history;
    milliseconds before{0};
    for (const int code : ends) {
      const TaskEnd end = code >= 190 ? OutOfMemory("") : Exited(code);
      const RestartDecision decision = DecideRestart(policy, end, history, false);
      RC_ASSERT(!decision.reason.empty());
      RC_ASSERT(decision.restart == decision.counted);
      if (!decision.restart) continue;
      RC_ASSERT(decision.delay >= before && decision.delay <= policy.backoff_max);
      before = decision.delay;
      ++history.restarts;
      history.ooms += end.kind == EndKind::kOutOfMemory ? 1 : 0;
    }
    RC_ASSERT(history.restarts <= policy.limit);
    if (policy.when == RestartWhen::kTransient) RC_ASSERT(history.ooms <= 1);
  }));
}

TEST(Restart, TheLimitIsOfTheScope) {
  Restart policy;
  policy.scope = RestartScope::kJob;
  EXPECT_EQ(DecideRestart(policy, Signaled(9), {1, 0}, false).scope, RestartScope::kJob);
  EXPECT_EQ(DecideRestart(policy, Signaled(9), {3, 0}, false).reason,
            "not restarted, as the job was restarted 3 times already and the limit is 3");
}

TEST(Rules, OfEndsComeBeforeRestart) {
  Role role;
  role.on_exit = {{"7", EndAction::kRetry},
                  {"SIGSEGV", EndAction::kFail},
                  {"20-29", EndAction::kIgnore},
                  {"lost", EndAction::kRestartJob}};
  const auto decide = [&](const TaskEnd& end, int restarts = 0, bool consequence = false) {
    return DecideEnd(role, end, {restarts, 0}, consequence, -1);
  };
  EXPECT_TRUE(decide(Exited(7)).restart && decide(Exited(7)).counted);
  EXPECT_EQ(decide(Exited(7)).reason, "restart 1 of 3 in 500 ms, as 'on_exit: {code: 7}' says");
  EXPECT_FALSE(decide(Exited(7), 3).restart);
  EXPECT_TRUE(decide(Exited(7), 3, true).restart);
  EXPECT_FALSE(decide(Exited(7), 3, true).counted);
  EXPECT_FALSE(decide(Exited(8)).restart);
  EXPECT_FALSE(decide(Signaled(11)).restart);
  EXPECT_FALSE(decide(Exited(139), 0, true).restart);  // as a shell says SIGSEGV
  EXPECT_TRUE(decide(Signaled(9)).restart);
  EXPECT_TRUE(decide(Exited(20)).ignored && decide(Exited(29)).ignored);
  EXPECT_FALSE(decide(Exited(30)).ignored);
  EXPECT_EQ(decide(Lost("")).scope, RestartScope::kJob);
  EXPECT_EQ(decide(Exited(0)).reason, "it has ended");
  role.on_log = {{"*NCCL*", EndAction::kRetry}, {"no*", EndAction::kFail}};
  EXPECT_TRUE(DecideEnd(role, Exited(1), {}, false, 0).restart);
  EXPECT_FALSE(DecideEnd(role, Signaled(9), {}, false, 1).restart);
  EXPECT_FALSE(DecideEnd(role, Exited(1), {}, false, 2).restart);
}

TEST(Rules, AHostIsExcludedByWhoWasTheFirstToDieOnIt) {
  Role role;
  role.on_exit = {{"7", EndAction::kExcludeHost}};
  const RestartDecision first = DecideEnd(role, Exited(7), {1, 0}, false, -1);
  EXPECT_TRUE(first.restart && first.counted && first.exclude_host);
  EXPECT_EQ(first.reason, "restart 2 of 3 in 1.0 s on another host, as 'on_exit: {code: 7}' says");
  EXPECT_EQ(first.rule, "'on_exit: {code: 7}'");
  const RestartDecision follower = DecideEnd(role, Exited(7), {1, 0}, true, -1);
  EXPECT_TRUE(follower.restart);
  EXPECT_FALSE(follower.exclude_host || follower.counted);
  EXPECT_FALSE(DecideEnd(role, Exited(7), {3, 0}, false, -1).exclude_host);  // it starts no more
  EXPECT_FALSE(DecideEnd(role, Exited(8), {}, false, -1).exclude_host);
  Limits limits;
  limits.restarts = 1;
  EXPECT_FALSE(LimitRestarts(limits, {1, 0, 1}, first).exclude_host);
}

TEST(Rules, CodesSignalsAndClasses) {
  for (const char* bad :
       {"", "0", "256", "9-", "-9", "5-4", "SIG", "SIGNONE", "1-2-3", "7 ", "x"}) {
    EXPECT_FALSE(ParseExitMatch(bad).has_value()) << bad;
  }
  EXPECT_TRUE(MatchesEnd(*ParseExitMatch("137"), Signaled(9)));
  EXPECT_TRUE(MatchesEnd(*ParseExitMatch("signal"), Exited(137)));
  EXPECT_FALSE(MatchesEnd(*ParseExitMatch("signal"), Exited(128)));
  EXPECT_TRUE(MatchesEnd(*ParseExitMatch("out-of-memory"), OutOfMemory("")));
  EXPECT_FALSE(MatchesEnd(*ParseExitMatch("1-255"), OutOfMemory("")));
}

// Reference implementation: tries every text for every star.
bool SlowMatch(std::string_view pattern, std::string_view line) {
  if (pattern.empty()) return line.empty();
  if (pattern[0] != '*') {
    return !line.empty() && line[0] == pattern[0] && SlowMatch(pattern.substr(1), line.substr(1));
  }
  for (size_t i = 0; i <= line.size(); ++i) {
    if (SlowMatch(pattern.substr(1), line.substr(i))) return true;
  }
  return false;
}

TEST(Rules, LinesMatchAsByTryingEverything) {
  EXPECT_TRUE(LineMatches("*CUDA error*", "RuntimeError: CUDA error: out of memory"));
  EXPECT_FALSE(LineMatches("CUDA error*", "RuntimeError: CUDA error"));
  EXPECT_TRUE(rc::check([] {
    const auto text = [](const char* letters, int n) {
      return *rc::gen::container<std::string>(
          static_cast<size_t>(*rc::gen::inRange(0, n)),
          rc::gen::map(rc::gen::inRange(0, 3), [letters](int i) { return letters[i]; }));
    };
    const std::string pattern = text("ab*", 8);
    const std::string line = text("aab", 9);
    RC_ASSERT(LineMatches(pattern, line) == SlowMatch(pattern, line));
  }));
}

TEST(Backoff, DoublesUpToItsMost) {
  Restart policy;
  EXPECT_EQ(BackoffBefore(policy, 1), milliseconds(1000));
  EXPECT_EQ(BackoffBefore(policy, 5), milliseconds(16'000));
  EXPECT_EQ(BackoffBefore(policy, 6), milliseconds(30'000));
  EXPECT_EQ(BackoffBefore(policy, 1'000'000'000), milliseconds(30'000));
  policy.backoff = milliseconds(0);
  EXPECT_EQ(BackoffBefore(policy, 1'000'000'000), milliseconds(0));
}

TEST(Consequence, WithinThirtySecondsOfAnothersDeath) {
  const TaskFailure first{2, "worker", 0, milliseconds(5000)};
  const auto at = [](int generation, int index, int ms) {
    return TaskFailure{generation, "worker", index, milliseconds(ms)};
  };
  EXPECT_FALSE(IsConsequence(std::nullopt, at(2, 1, 5000)));
  EXPECT_TRUE(IsConsequence(first, at(2, 1, 5000)));
  EXPECT_TRUE(IsConsequence(first, at(2, 1, 35'000)));
  EXPECT_FALSE(IsConsequence(first, at(2, 1, 35'001)));
  EXPECT_FALSE(IsConsequence(first, at(3, 1, 6000)));
  EXPECT_FALSE(IsConsequence(first, at(2, 0, 6000)));
  EXPECT_FALSE(IsConsequence(first, at(2, 1, 4999)));
}

}  // namespace
}  // namespace shoal::job
