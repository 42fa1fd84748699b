#include "job/spec/json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace shoal::job {
namespace {

using std::chrono::milliseconds;

// Any text without regard to what a parser would let through, as long as it is UTF-8.
std::string Text() {
  return *rc::gen::map(rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)),
                       [](std::string text) { return text + "\u00e9\u4e2d"; });
}

std::vector<std::string> TextList() {
  std::vector<std::string> texts;
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) texts.push_back(Text());
  return texts;
}

std::map<std::string, std::string> TextMap() {
  std::map<std::string, std::string> map;
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) map[Text()] = Text();
  return map;
}

milliseconds Time() { return milliseconds(*rc::gen::inRange<int64_t>(0, int64_t{1} << 40)); }

Role AnyRole() {
  Role role;
  role.name = Text();
  role.replicas = *rc::gen::inRange(0, kMaxReplicas + 1);
  if (*rc::gen::arbitrary<bool>()) role.min_replicas = *rc::gen::inRange(0, kMaxReplicas + 1);
  if (*rc::gen::arbitrary<bool>()) role.max_replicas = *rc::gen::inRange(0, kMaxReplicas + 1);
  role.processes = *rc::gen::inRange(1, 1000);
  role.resources.cpu = static_cast<double>(*rc::gen::inRange<uint64_t>(0, uint64_t{1} << 53)) /
                       static_cast<double>(uint64_t{1} << 38);
  role.resources.memory_bytes = *rc::gen::inRange<int64_t>(0, kMaxMemoryBytes + 1);
  role.resources.gpu = *rc::gen::inRange(0, kMaxGpus + 1);
  role.resources.cpu_request = *rc::gen::inRange(0, 100) / 7.0;
  role.resources.memory_request = *rc::gen::inRange<int64_t>(0, kMaxMemoryBytes + 1);
  role.command = TextList();
  role.args = TextList();
  role.env = TextMap();
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    role.ports.push_back({Text(), *rc::gen::arbitrary<bool>()});
  }
  role.follows = Text();
  role.restart.when =
      *rc::gen::element(RestartWhen::kNever, RestartWhen::kTransient, RestartWhen::kAlways);
  role.restart.limit = *rc::gen::inRange(0, 1000);
  role.restart.scope =
      *rc::gen::element(RestartScope::kTask, RestartScope::kRole, RestartScope::kJob);
  role.restart.backoff = Time();
  role.restart.backoff_max = Time();
  role.after = {TextList(),
                *rc::gen::element(AfterWhen::kStarted, AfterWhen::kReady, AfterWhen::kEnded)};
  role.ready.by = *rc::gen::element(ReadyBy::kStart, ReadyBy::kTcp, ReadyBy::kHttp,
                                    ReadyBy::kCommand, ReadyBy::kLog);
  role.ready.port = Text();
  role.ready.path = Text();
  role.ready.command = TextList();
  role.ready.line = Text();
  role.ready.every = Time();
  role.ready.timeout = Time();
  role.health = {role.ready.by, Text(), Text(), TextList(),
                 Time(),        Time(), Time(), *rc::gen::inRange(1, 100)};
  const auto action = [] {
    return *rc::gen::element(EndAction::kRetry, EndAction::kFail, EndAction::kIgnore,
                             EndAction::kRestartJob, EndAction::kExcludeHost);
  };
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) role.on_exit.push_back({Text(), action()});
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) role.on_log.push_back({Text(), action()});
  role.checkpoint_signal = *rc::gen::element(0, SIGUSR1, SIGUSR2, SIGHUP, SIGINT);
  return role;
}

Triggers AnyTriggers() {
  Triggers triggers;
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n)
    triggers.after.push_back(
        {Text(), *rc::gen::element(DependencyWhen::kSucceeded, DependencyWhen::kFailed,
                                   DependencyWhen::kEnded)});
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    triggers.matrix.parameters.emplace_back(Text(), TextList());
    triggers.matrix.include.push_back(TextMap());
    triggers.matrix.exclude.push_back(TextMap());
    triggers.matrix.limit = n;
    triggers.sweep.parameters.push_back(
        {Text(),
         *rc::gen::element(ParameterKind::kChoice, ParameterKind::kUniform,
                           ParameterKind::kLogUniform, ParameterKind::kInteger,
                           ParameterKind::kLogInteger),
         TextList(), *rc::gen::inRange(0, 100) / 7.0, *rc::gen::inRange(0, 100) / 7.0, n});
  }
  if (*rc::gen::arbitrary<bool>()) {
    triggers.sweep.objective = Text();
    triggers.sweep.goal = SweepGoal::kMaximize;
    triggers.sweep.search = SweepSearch::kGrid;
    triggers.sweep.trials = *rc::gen::inRange(0, 100);
    triggers.sweep.seed = *rc::gen::inRange(0, 100);
    triggers.sweep.stop = {Text(), *rc::gen::inRange(0, 100) / 7.0, *rc::gen::inRange(2, 9)};
  }
  return triggers;
}

Job AnyJob() {
  Job job;
  job.file = Text();
  job.name = Text();
  job.framework = *rc::gen::element(Framework::kShoal, Framework::kPsLite, Framework::kTensorflow,
                                    Framework::kPytorch, Framework::kMpi, Framework::kHorovod,
                                    Framework::kRabit, Framework::kSpark, Framework::kGeneric);
  job.queue = Text();
  job.priority = *rc::gen::inRange(-1000, 1001);
  job.image = Text();
  if (*rc::gen::arbitrary<bool>())
    job.container = {TextList(), Text(), Text(), *rc::gen::inRange(0, 100),
                     *rc::gen::inRange(0, 100)};
  job.files = Text();
  job.command = TextList();
  job.env = TextMap();
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    job.learn[Text()] = {Text(), *rc::gen::inRange(0, 10'000), *rc::gen::inRange(0, 10'000)};
  }
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    job.data.push_back({Text(), TextList(), Text(), TextList(), Text(), Text()});
  }
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) job.roles.push_back(AnyRole());
  job.success = {*rc::gen::element(SuccessRule::kAll, SuccessRule::kAny, SuccessRule::kFirst,
                                   SuccessRule::kCount),
                 TextList(), *rc::gen::inRange(0, 1000)};
  job.checkpoint = {Time(), *rc::gen::inRange(1, 1000)};
  job.store = Text();
  job.limits = {Time(), Time(), Time(), Time(), Time(), std::nullopt, {}, {}};
  if (*rc::gen::arbitrary<bool>()) job.limits.restarts = *rc::gen::inRange(0, 1000);
  job.limits.on_stall = *rc::gen::element(OnStall::kReport, OnStall::kRestart, OnStall::kFail);
  job.limits.keep_records = Time();
  if (*rc::gen::arbitrary<bool>()) {
    job.on_controller_loss = *rc::gen::element(OnControllerLoss::kStop, OnControllerLoss::kKeep);
  }
  job.outputs = TextMap();
  if (*rc::gen::arbitrary<bool>()) {
    job.schedule = {
        Text(),
        Text(),
        *rc::gen::element(Concurrency::kForbid, Concurrency::kAllow, Concurrency::kReplace),
        *rc::gen::element(MissedRuns::kRunOnce, MissedRuns::kSkip),
        Time(),
        *rc::gen::arbitrary<bool>(),
        TextMap()};
  }
  job.triggers = AnyTriggers();
  return job;
}

TEST(JobJson, RoundTripIsExact) {
  EXPECT_TRUE(rc::check([] {
    const Job job = AnyJob();
    const auto again = FromJsonText(ToJsonText(job));
    RC_ASSERT(again.ok());
    RC_ASSERT(*again == job);
  }));
}

// Takes away, one at a time, every field of every object inside a job's JSON.
void ForEachLoss(json::value* root, json::value* at, int* losses) {
  if (at->is_array()) {
    for (json::value& item : at->get_array()) ForEachLoss(root, &item, losses);
  }
  if (!at->is_object()) return;
  std::vector<std::string> keys;
  for (const auto& [key, value] : at->get_object()) keys.emplace_back(key);
  for (const std::string& key : keys) {
    ForEachLoss(root, &at->get_object()[key], losses);
    json::value kept = at->get_object()[key];
    if (kept.is_object() && key != "restart" && key != "limits") continue;
    at->get_object()[key] = json::array{1, 2};  // no field is an array of numbers
    if (key != "min" && key != "on_controller_loss") {
      EXPECT_FALSE(FromJson(root->get_object()).ok()) << key;
      ++*losses;
    }
    at->get_object()[key] = std::move(kept);
  }
}

TEST(JobJson, EveryFieldOfAnotherTypeIsRefused) {
  Job job;
  job.roles.emplace_back().name = "worker";
  job.roles[0].ports = {{"grpc", false}};
  job.data.push_back({"train", {"a"}, "", {}, "text", "worker"});
  job.learn["dim"] = {"100", 1, 2};
  json::value root = ToJson(job);
  ASSERT_TRUE(FromJson(root.get_object()).ok());
  int losses = 0;
  ForEachLoss(&root, &root, &losses);
  EXPECT_GT(losses, 40);
  EXPECT_TRUE(FromJson(root.get_object()).ok());
}

TEST(JobJson, OutOfRangeAndUnknownNamesAreRefused) {
  Job job;
  job.roles.emplace_back().name = "worker";
  json::object object = ToJson(job);
  object["framework"] = "shaol";
  EXPECT_EQ(FromJson(object).status().message(),
            "field 'framework': expected a known name, got 'shaol'");
  object["framework"] = "shoal";
  object["roles"].get_array()[0].get_object()["replicas"] = kMaxReplicas + 1;
  EXPECT_EQ(FromJson(object).status().message(),
            "roles[0]: field 'replicas': expected an integer from 0 to 100000");
  object["roles"].get_array()[0].get_object()["replicas"] = 1;
  object["roles"].get_array()[0].get_object()["cpu"] = "nan";
  EXPECT_FALSE(FromJson(object).ok());
  EXPECT_FALSE(FromJsonText("[]").ok());
  EXPECT_FALSE(FromJsonText("{}").ok());
}

}  // namespace
}  // namespace shoal::job
