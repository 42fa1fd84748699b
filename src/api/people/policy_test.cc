#include "api/people/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "job/file/parse.h"

namespace shoal::api {
namespace {

using testing::HasSubstr;

Policy PolicyOf(const std::string& text) {
  return ParsePolicy(ParseJsonObject(text).value()).value();
}

// What the policy says of a job file; empty if it allows the job.
std::string Refusal(const Policy& policy, const std::string& file,
                    const std::string& engine = "docker", const std::string& directory = "") {
  job::FieldLocations locations;
  auto job = job::ParseJob("roles: {worker: 1}\ncommand: [a]\n" + file, "job.yaml", {}, &locations);
  if (!job.ok()) return "not parsed: " + job.status().message();
  job::ResolvePaths(locations, "/base", "/base", &*job);
  const Status checked = CheckPolicy(
      policy, {.job = *job, .locations = locations, .engine = engine, .directory = directory});
  EXPECT_TRUE(checked.ok() || checked.code() == Code::kPermissionDenied);
  return checked.message();
}

TEST(Policy, WithoutLimitsAllowsEverything) {
  EXPECT_EQ(Refusal({}, "image: any\ncontainer: {volumes: ['/:/host']}\noutputs: {m: /etc}\n",
                    "local", "/root"),
            "");
}

TEST(Policy, LimitsEnginesAndImages) {
  const Policy policy =
      PolicyOf(R"({"engines": ["k8s-*"], "images": ["reg.example/red/*", "python:3.11"]})");
  EXPECT_EQ(Refusal(policy, "image: python:3.11\n", "k8s-east"), "");
  EXPECT_EQ(Refusal(policy, "image: reg.example/red/a/b:1\n", "k8s-east"), "");
  EXPECT_EQ(Refusal(policy, "image: python:3.11\n", "local"),
            "engine: got local, but the team's policy allows k8s-*");
  EXPECT_EQ(Refusal(policy, "image: docker.io/reg.example/red/x\n", "k8s-east"),
            "job.yaml:3:8: image: got docker.io/reg.example/red/x, but the team's policy allows "
            "reg.example/red/*, python:3.11");
  EXPECT_THAT(Refusal(policy, "image: python:3.11\nkubernetes: {launcher: evil}\n", "k8s-east"),
              HasSubstr("kubernetes.launcher: got evil"));
  EXPECT_THAT(Refusal(PolicyOf(R"({"engines": []})"), ""), HasSubstr("allows none"));
}

// Each way in which a job file can name a path of the machine.
TEST(Policy, LimitsPaths) {
  const Policy policy = PolicyOf(R"({"paths": ["/data/", "/base"]})");
  for (const char* const allowed :
       {"image: a\ncontainer: {volumes: ['/data/x:/in:ro', 'named:/n', './y:/y']}\n",
        "outputs: {m: model}\n", "outputs: {m: /data}\n", "data: {d: 'hdfs://nn/etc'}\n",
        "kubernetes: {volumes: ['host:/data/x:/in', 'pvc:claim:/etc']}\n",
        "image: a\nmarathon: {parameters: ['volume=/data/x:/etc', 'ulimit=nofile=65536',\n"
        "  'mount=type=bind,src=/data/x,dst=/etc']}\n"})
    EXPECT_EQ(Refusal(policy, allowed), "");
  for (const char* const refused :
       {"image: a\ncontainer: {volumes: ['/database:/in']}\n",
        "image: a\ncontainer: {volumes: ['/data/../etc:/in']}\n",
        "image: a\ncontainer: {volumes: ['../etc:/in']}\n", "outputs: {m: /etc/cron.d}\n",
        "data: {d: /etc/shadow}\n", "data: {d: [/data/a, 'file:///etc/shadow']}\n",
        "kubernetes: {volumes: ['host:/:/host']}\n",
        "kubernetes: {volumes: ['host:/etc:/data:ro']}\n",
        "marathon: {fetch: ['file:///etc/shadow']}\n",
        "image: a\nmarathon: {parameters: ['volume=/etc:/data']}\n",
        "image: a\nmarathon: {parameters: ['v=/:/host']}\n",
        "image: a\nmarathon: {parameters: ['mount=type=bind,target=/data,source=/etc']}\n",
        "image: a\nmarathon: {parameters: ['env-file=/etc/shadow']}\n"})
    EXPECT_THAT(Refusal(policy, refused), HasSubstr("but the team's policy allows /data/, /base"))
        << refused;
  EXPECT_EQ(Refusal(policy, "", "docker", "/base/red"), "");
  EXPECT_THAT(Refusal(policy, "", "docker", "/root"), HasSubstr("directory: got /root"));
  EXPECT_EQ(Refusal(PolicyOf(R"({"paths": ["/"]})"), "outputs: {m: /etc}\n"), "");
}

TEST(Policy, FixedFieldsHoldForRolesAndOptions) {
  const Policy policy =
      PolicyOf(R"({"fields": {"slurm.account": "red", "kubernetes.service_account": "red"}})");
  EXPECT_EQ(Refusal(policy, "slurm: {partition: gpu, options: ['--licenses=a']}\n"), "");
  for (const char* const refused :
       {"slurm: {options: ['--account=blue']}\n", "slurm: {options: ['--acc=blue']}\n",
        "slurm: {options: ['--a=blue']}\n"})
    EXPECT_THAT(Refusal(policy, refused), HasSubstr("slurm.options: the team's policy sets"))
        << refused;
  const std::string role = "  other: {replicas: 1, command: [a], ";
  const auto parsed = [&](const std::string& settings) {
    job::FieldLocations locations;
    const auto job = job::ParseJob("command: [a]\nroles:\n" + role + settings + "}\n", "job.yaml",
                                   {}, &locations);
    EXPECT_TRUE(job.ok()) << job.status().message();
    return CheckPolicy(policy,
                       {.job = *job, .locations = locations, .engine = "slurm", .directory = ""})
        .message();
  };
  EXPECT_EQ(parsed("slurm: {partition: gpu}"), "");
  EXPECT_THAT(parsed("slurm: {options: ['--account=blue']}"),
              HasSubstr("roles.other.slurm.options: the team's"));
  EXPECT_THAT(parsed("slurm: {account: blue}"), HasSubstr("roles.other.slurm.account: the team's"));
  EXPECT_THAT(parsed("kubernetes: {service_account: blue}"),
              HasSubstr("roles.other.kubernetes.service_account: the team's"));
}

TEST(Policy, ForbidsFields) {
  const Policy policy =
      PolicyOf(R"({"forbidden": ["slurm.options", "roles.*.command", "kubernetes.*"]})");
  EXPECT_EQ(Refusal(policy, "slurm: {partition: gpu}\n"), "");
  EXPECT_EQ(Refusal(policy, "slurm: {options: ['--uid=0']}\n"),
            "job.yaml:3:18: slurm.options: the team's policy forbids this field; leave it out");
  EXPECT_THAT(Refusal(policy, "kubernetes: {host_network: true}\n"),
              HasSubstr("kubernetes.host_network: the team's policy forbids"));
}

TEST(Policy, NamesTheUserOfTasks) {
  EXPECT_EQ(*TaskUserOf({}, "local"), std::nullopt);
  EXPECT_EQ(*TaskUserOf(PolicyOf(R"({"user": "2001:2001", "isolated": true})"), "docker"),
            std::nullopt);
  const Policy isolated = PolicyOf(R"({"isolated": true})");
  EXPECT_EQ(*TaskUserOf(isolated, "kubernetes"), std::nullopt);
  for (const char* kind : {"local", "slurm"}) {
    EXPECT_EQ(TaskUserOf(isolated, kind).status().code(), Code::kPermissionDenied) << kind;
    const auto user = TaskUserOf(PolicyOf(R"({"user": "2001:2001"})"), kind);
    if (::geteuid() == 0) {
      EXPECT_EQ(**user, (UserIds{2001, 2001}));
    } else {
      EXPECT_EQ(user.status().code(), Code::kFailedPrecondition);
    }
  }
}

TEST(Policy, IsReadStrictly) {
  const auto message = [](const std::string& text) {
    return ParsePolicy(ParseJsonObject(text).value()).status().message();
  };
  EXPECT_EQ(
      message(R"({"engine": []})"),
      "engine: expected one of engines, images, paths, forbidden, fields, log_days, log_bytes, "
      "user, isolated and separate_network; did you mean 'engines'?");
  EXPECT_THAT(message(R"({"log_days": 0})"), HasSubstr("log_days: got 0, expected an integer"));
  EXPECT_THAT(message(R"({"user": "root"})"), HasSubstr("other than root's"));
  EXPECT_THAT(message(R"({"user": "no-such-user-here"})"), HasSubstr("has no user"));
  EXPECT_THAT(message(R"({"user": 5})"), HasSubstr("expected one of"));
  EXPECT_THAT(message(R"({"isolated": "yes"})"), HasSubstr("expected one of"));
  EXPECT_THAT(message(R"({"forbidden": ["slurm.option"]})"),
              HasSubstr("forbidden: got slurm.option, which is no field of job files"));
  EXPECT_THAT(message(R"({"fields": {"kubernetes.name": "x"}})"),
              HasSubstr("no field of job files"));
  EXPECT_THAT(message(R"({"paths": ["data"]})"), HasSubstr("expected an absolute path"));
  EXPECT_THAT(message(R"({"images": "all"})"), HasSubstr("expected a list"));
  EXPECT_THAT(message(R"({"images": [""]})"), HasSubstr("expected a list"));
  EXPECT_THAT(message(R"({"fields": []})"), HasSubstr("expected one of"));
  const std::string text =
      R"({"engines":["a"],"images":[],"paths":["/x"],"forbidden":["slurm.*"],"fields":{"slurm.account":"red"},"log_days":30,"log_bytes":5,"user":"2001:2001","isolated":true,"separate_network":true})";
  EXPECT_EQ(ToText(ToJson(PolicyOf(text))), text);
}

}  // namespace
}  // namespace shoal::api
