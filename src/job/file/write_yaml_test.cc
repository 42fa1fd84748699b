#include "job/file/write_yaml.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/file.h"
#include "job/file/parse.h"
#include "job/spec/cluster_reference.h"

namespace shoal::job {
namespace {

using std::chrono::milliseconds;

// Texts that have tripped writers of YAML, and random ones.
std::string AnyText() {
  static const std::vector<std::string> kHard = {
      "true",    "null",  "~",      "1.5",        "-",     "- a",     "a: b",      "#x",
      "a #b",    " lead", "trail ", "two\nline",  "end\n", "end\n\n", "\nfirst",   " a\nb",
      "a \nb",   "tab\t", "\ta\nb", "\x7f\x01",   "'\"\\", "---",     "...",       "0x10",
      "é\u2028", "@at",   "%per",   "{a}",        "[a]",   "!tag",    "&a",        "*a",
      "a,b",     "|",     ">",      "2020-01-01", "1_000", "a\r\nb",  "\ufeffbom", "a\n\n b\n  c",
      "=",       "<<",    "--flag", "-c",         "a\n#b", "no",      "\u0085",    "a\n\tb"};
  if (*rc::gen::inRange(0, 3) > 0) return *rc::gen::elementOf(kHard);
  return *rc::gen::map(rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)),
                       [](std::string text) { return text + "x"; });
}

std::string AnyName(const char* stem) {
  return stem + std::to_string(*rc::gen::inRange(0, 1000)) +
         *rc::gen::element<std::string>("", "-a", "-0", "x");
}

std::vector<std::string> AnyCommand() {
  std::vector<std::string> words = {AnyText()};
  for (int n = *rc::gen::inRange(0, 6); n > 0; --n) words.push_back(AnyText());
  return words;
}

std::map<std::string, std::string> AnyEnv() {
  std::map<std::string, std::string> env;
  for (int n = *rc::gen::inRange(0, 4); n > 0; --n) {
    env["V_" + std::to_string(*rc::gen::inRange(0, 99))] =
        *rc::gen::elementOf(std::vector<std::string>{AnyText(), "", SecretReference("db", false),
                                                     SecretReference("k.9_-A", true),
                                                     "u:" + SecretReference("db", false)});
  }
  return env;
}

milliseconds Time(int64_t least = 0) {
  const int64_t unit = *rc::gen::element<int64_t>(1, 1000, 60'000, 3'600'000);
  return milliseconds(std::max(least, unit * *rc::gen::inRange<int64_t>(0, 60)));
}

Role AnyRole(const std::string& name) {
  Role role;
  role.name = name;
  role.replicas = *rc::gen::inRange(1, 50);
  if (*rc::gen::arbitrary<bool>()) role.min_replicas = *rc::gen::inRange(0, role.replicas + 1);
  role.processes = *rc::gen::inRange(1, 9);
  role.resources.cpu = *rc::gen::inRange(0, 100) / 7.0;
  role.resources.memory_bytes = *rc::gen::inRange<int64_t>(1 << 20, kMaxMemoryBytes);
  if (*rc::gen::arbitrary<bool>()) role.resources.memory_bytes &= ~int64_t{0xfffff};
  role.resources.gpu = *rc::gen::inRange(0, 3);
  if (*rc::gen::arbitrary<bool>()) role.resources.memory_request = role.resources.memory_bytes / 2;
  if (role.resources.memory_request < 1 << 20) role.resources.memory_request = 0;
  if (*rc::gen::arbitrary<bool>()) role.resources.cpu_request = role.resources.cpu / 3;
  if (*rc::gen::arbitrary<bool>()) role.command = AnyCommand();
  if (*rc::gen::arbitrary<bool>()) role.args = AnyCommand();
  role.env = AnyEnv();
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n) {
    role.ports.push_back({"p" + std::to_string(n), *rc::gen::arbitrary<bool>()});
  }
  role.restart.when =
      *rc::gen::element(RestartWhen::kNever, RestartWhen::kTransient, RestartWhen::kAlways);
  role.restart.limit = *rc::gen::inRange(0, 1001);
  role.restart.scope =
      *rc::gen::element(RestartScope::kTask, RestartScope::kRole, RestartScope::kJob);
  role.restart.backoff = std::min(Time(), milliseconds(3'600'000));
  if (*rc::gen::arbitrary<bool>()) {
    role.on_exit = {{"128-255", EndAction::kRetry}, {"SIGKILL", EndAction::kFail}};
  }
  if (*rc::gen::arbitrary<bool>()) role.on_log = {{AnyText(), EndAction::kRestartJob}};
  if (*rc::gen::arbitrary<bool>()) {
    role.ready.by = ReadyBy::kCommand;
    role.ready.command = AnyCommand();
    role.ready.every = milliseconds(20);
  }
  role.checkpoint_signal = *rc::gen::element(0, SIGUSR1, SIGHUP);
  role.restart.backoff_max = std::max(role.restart.backoff, milliseconds(30'000));
  return role;
}

// A job as ParseJob could have made it.
Job AnyValidJob() {
  Job job;
  job.file = "job.yaml";
  job.name = AnyName("Job_");
  job.framework = *rc::gen::element(Framework::kPsLite, Framework::kTensorflow, Framework::kPytorch,
                                    Framework::kMpi, Framework::kGeneric);
  if (*rc::gen::arbitrary<bool>()) job.queue = AnyName("q");
  job.priority = *rc::gen::inRange(-3, 4);
  if (*rc::gen::arbitrary<bool>()) {
    job.image = AnyText();
  } else if (*rc::gen::arbitrary<bool>()) {
    job.files = AnyText();
  }
  if (*rc::gen::arbitrary<bool>())
    job.container = {{"a:/b", "/c d:/e:ro"}, "/work", "1:2", 100, int64_t{3} << 20};
  job.command = AnyCommand();
  job.env = AnyEnv();
  for (const char* name : {"scheduler", "worker", "ps", "server", "x"}) {
    job.roles.push_back(AnyRole(name));
  }
  job.roles[2].follows = "worker";
  if (*rc::gen::arbitrary<bool>()) job.roles[4].after = {{"worker", "ps"}, AfterWhen::kStarted};
  if (*rc::gen::arbitrary<bool>()) job.roles[3].follows = "ps";
  job.success.rule = *rc::gen::element(SuccessRule::kAll, SuccessRule::kAny, SuccessRule::kCount);
  job.success.roles = {"x", "worker"};
  if (job.success.rule == SuccessRule::kCount) job.success.count = 1;
  if (*rc::gen::arbitrary<bool>()) job.success = {SuccessRule::kFirst, {"worker"}, 0};
  if (*rc::gen::arbitrary<bool>()) job.data = {{"train", {AnyText()}, "", {}, "csv", "x"}};
  if (*rc::gen::arbitrary<bool>())
    job.data.push_back({"test", {"a", AnyText()}, "", {}, "text", "worker"});
  job.checkpoint = {Time(), *rc::gen::inRange(1, 5)};
  if (*rc::gen::arbitrary<bool>()) job.store = AnyText();
  job.limits = {Time(100),
                Time(),
                Time(),
                std::min(Time(), milliseconds(3'600'000)),
                std::min(Time(100), milliseconds(3'600'000)),
                std::nullopt,
                *rc::gen::element(OnStall::kReport, OnStall::kRestart, OnStall::kFail),
                Time()};
  if (job.limits.stall < kLeastStall) job.limits.stall = milliseconds(0);
  if (*rc::gen::arbitrary<bool>()) job.limits.restarts = *rc::gen::inRange(0, 1000);
  if (*rc::gen::arbitrary<bool>()) job.on_controller_loss = OnControllerLoss::kKeep;
  if (*rc::gen::arbitrary<bool>()) job.outputs = {{"model", AnyText()}, {"logs", "x"}};
  return job;
}

TEST(WriteYaml, IsReadBackExactly) {
  EXPECT_TRUE(rc::check([] {
    Job job = AnyValidJob();
    // A framework may refuse the job or add to it: what it then is must be read back.
    const auto valid = ParseJob(WriteYaml(job), "job.yaml");
    if (!valid.ok()) RC_DISCARD("not a job of its framework");
    if (job.framework != Framework::kGeneric) job = *valid;
    const std::string text = WriteYaml(job, {{"", {"two words"}}, {"roles.worker.env", {"why"}}});
    const auto again = ParseJob(text, "job.yaml");
    if (!again.ok()) RC_FAIL(again.status().message() + "\n" + text);
    if (!(*again == job)) RC_FAIL(text);
  }));
}

// Everything the table of fields knows stands in that file, so a field that the writer forgets is
// found here.
TEST(WriteYaml, EveryFieldSurvives) {
  const std::string root = SHOAL_SOURCE_DIR;
  for (const char* name :
       {"/tests/golden/job/all-fields.yaml", "/tests/golden/job/shoal.yaml",
        "/tests/golden/job/shorthand.yaml", "/tests/golden/job/no-roles.yaml",
        "/tests/golden/job/matrix.yaml", "/tests/golden/job/sweep.yaml",
        "/tests/golden/job/kubernetes.yaml", "/tests/golden/job/kubernetes-roles.yaml",
        "/examples/word2vec.yaml", "/examples/hello.yaml"}) {
    auto job = ParseJobFile(root + name);
    ASSERT_TRUE(job.ok()) << job.status().message();
    auto again = ParseJob(WriteYaml(*job), root + name);
    ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << WriteYaml(*job);
    for (Job* one : {&*job, &*again}) {
      for (auto& [key, value] : one->learn) value.line = value.column = 0;
    }
    EXPECT_EQ(*again, *job) << WriteYaml(*job);
  }
}

TEST(WriteYaml, LooksAsPeopleWriteIt) {
  Job job;
  job.name = "mnist";
  Role worker;
  worker.name = "worker";
  worker.replicas = 2;
  worker.resources = {1.5, int64_t{2} << 30, 1};
  worker.command = {"sh", "-c", "set -e\n\npython train.py --steps 100\n"};
  worker.env = {{"OMP_NUM_THREADS", "1"}, {"MODE", "fast: yes"}};
  worker.restart.when = RestartWhen::kNever;
  job.roles = {worker};
  job.success.roles = {"worker"};
  const Comments comments = {{"", {"From mnist.json."}},
                             {"roles.worker.resources.disk", {"disk was 5 GB."}},
                             {"roles.worker.env.SECRET", {"SECRET is not here."}}};
  EXPECT_EQ(WriteYaml(job, comments), R"yaml(# From mnist.json.
name: mnist
framework: generic
roles:
  worker:
    replicas: 2
    # disk was 5 GB.
    resources: {cpu: 1.5, memory: 2Gi, gpu: 1}
    command:
      - sh
      - -c
      - |
        set -e

        python train.py --steps 100
    # SECRET is not here.
    env: {MODE: "fast: yes", OMP_NUM_THREADS: "1"}
    restart: {when: never}
success: {all: worker}
)yaml");
}

}  // namespace
}  // namespace shoal::job
