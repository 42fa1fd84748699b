#include "framework/framework_environment.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "job/file/parse.h"

namespace shoal::framework {
namespace {

ClusterDescription TwoRoles() {
  ClusterDescription cluster;
  cluster.generation = 3;
  cluster.roles = {
      {"server", {"ps", "web-ui"}, {{"127.0.0.1", {4001, 5001}}, {"::1", {4002, 5002}}}},
      {"worker", {}, {{"127.0.0.1", {}}, {"127.0.0.1", {}}, {"host-3", {}}}},
  };
  return cluster;
}

job::Job Parsed(std::string_view text) {
  auto job = job::ParseJob(text, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : job::Job{};
}

job::Job ShoalJob() {
  return Parsed(
      "name: vectors\nframework: shoal\nlearn: {algorithm: word2vec, dim: 100}\nenv: {A: job}\n"
      "data: {train: [a.txt, b.txt]}\nroles: {server: 2, worker: {replicas: 3, env: {A: role}}}\n"
      "outputs: {model: out, extra: other}\ncheckpoint: {every: 60s}\n");
}

TaskContext Context(const std::string& role, int index) {
  TaskContext task;
  task.job_id = "vectors-1";
  task.role = role;
  task.index = index;
  task.attempt = 2;
  task.token_file = "/d/token";
  task.checkpoint_dir = "/d/checkpoints";
  task.report_fd = 7;
  return task;
}

TEST(Cluster, HasTheDocumentedFormat) {
  EXPECT_EQ(ToText(ToJson(TwoRoles())),
            R"({"generation":3,"roles":{"server":["127.0.0.1:4001","[::1]:4002"],)"
            R"("worker":["127.0.0.1:0","127.0.0.1:0","host-3:0"]},)"
            R"("ports":{"server":{"ps":[4001,4002],"web-ui":[5001,5002]}}})");
}

TEST(Cluster, RoundTripIsExact) {
  EXPECT_TRUE(rc::check([] {
    ClusterDescription cluster;
    cluster.generation = *rc::gen::inRange<int64_t>(0, int64_t{1} << 60);
    const int roles = *rc::gen::inRange(0, 4);
    for (int r = 0; r < roles; ++r) {
      ClusterRole role;
      role.name = "role" + std::to_string(r);
      const int ports = *rc::gen::inRange(0, 3);
      for (int p = 0; p < ports; ++p) role.port_names.push_back("p" + std::to_string(p));
      const int members = *rc::gen::inRange(0, 5);
      for (int m = 0; m < members; ++m) {
        ClusterMember member;
        member.host = *rc::gen::element<std::string>("127.0.0.1", "::1", "node-7.local", "");
        for (int p = 0; p < ports; ++p) {
          member.ports.push_back(*rc::gen::inRange<uint16_t>(0, 65535));
        }
        if (*rc::gen::inRange(0, 3) == 0) role.ended.push_back(m);
        role.members.push_back(std::move(member));
      }
      cluster.roles.push_back(std::move(role));
    }
    const auto object = ParseJsonObject(ToText(ToJson(cluster)));
    RC_ASSERT(object.ok());
    const auto again = ClusterFromJson(*object);
    RC_ASSERT(again.ok());
    RC_ASSERT(*again == cluster);
  }));
}

TEST(Cluster, ListsEndedTasks) {
  ClusterDescription cluster = TwoRoles();
  cluster.roles[1].ended = {0, 2};
  const std::string text = ToText(ToJson(cluster));
  EXPECT_NE(text.find(R"("ended":{"worker":[0,2]})"), std::string::npos) << text;
  for (const char* bad : {R"({"worker":[2,0]})", R"({"worker":[3]})", R"({"worker":[-1]})",
                          R"({"worker":["0"]})", R"({"worker":0})", R"({"nobody":[0]})", "[]"}) {
    json::object object = ToJson(cluster);
    object["ended"] = *ParseJson(bad);
    EXPECT_FALSE(ClusterFromJson(object).ok()) << bad;
  }
}

TEST(Cluster, WithoutPortNamesTheAddressesHoldOnePort) {
  const auto object = ParseJsonObject(R"({"generation":1,"roles":{"ps":["a:1"],"w":["b:0"]}})");
  const auto cluster = ClusterFromJson(*object);
  ASSERT_TRUE(cluster.ok());
  EXPECT_EQ(cluster->roles[0].members[0], (ClusterMember{"a", {1}}));
  EXPECT_EQ(cluster->roles[0].port_names, std::vector<std::string>{""});
  EXPECT_EQ(cluster->roles[1].members[0], (ClusterMember{"b", {}}));
}

TEST(Cluster, BadTextIsRefusedByRoleAndIndex) {
  const auto error = [](const char* text) {
    const auto object = ParseJsonObject(text);
    EXPECT_TRUE(object.ok()) << text;
    const auto cluster = ClusterFromJson(*object);
    return cluster.ok() ? "parsed" : cluster.status().message();
  };
  EXPECT_EQ(error(R"({"generation":1,"roles":{"ps":["a:1","b:65536"]}})"),
            "cluster description: ps 1: expected a port from 0 to 65535");
  for (const char* bad : {
           R"({})",
           R"({"generation":-1,"roles":{}})",
           R"({"generation":"1","roles":{}})",
           R"({"generation":1})",
           R"({"generation":1,"roles":[]})",
           R"({"generation":1,"roles":{"ps":"a:1"}})",
           R"({"generation":1,"roles":{"ps":[1]}})",
           R"({"generation":1,"roles":{"ps":["a"]}})",
           R"({"generation":1,"roles":{"ps":["a:"]}})",
           R"({"generation":1,"roles":{"ps":["a:-1"]}})",
           R"({"generation":1,"roles":{"ps":["::1:1"]}})",
           R"({"generation":1,"roles":{"ps":["[a]:1"]}})",
           R"({"generation":1,"roles":{"ps":["a b:1"]}})",
           R"({"generation":1,"roles":{"ps":["a:1"]},"ports":[]})",
           R"({"generation":1,"roles":{"ps":["a:1"]},"ports":{"ps":{"x":[2]}}})",
           R"({"generation":1,"roles":{"ps":["a:1"]},"ports":{"ps":{"x":[]}}})",
           R"({"generation":1,"roles":{"ps":["a:1"]},"ports":{"ps":{"x":[1],"y":[70000]}}})",
           R"({"generation":1,"roles":{"ps":["a:1"]},"ports":{"no":{"x":[1]}}})",
       }) {
    EXPECT_NE(error(bad), "parsed") << bad;
  }
}

TEST(Environment, OfATaskOfFrameworkShoal) {
  const auto env = RenderEnvironment(ShoalJob(), TwoRoles(), Context("worker", 2));
  ASSERT_TRUE(env.ok()) << env.status().message();
  const Environment expected = {
      {"A", "role"},
      {"SHOAL_ATTEMPT", "2"},
      {"SHOAL_CHECKPOINT", R"({"every_ms":60000,"keep":2,"directory":"/d/checkpoints"})"},
      {"SHOAL_DATA",
       R"([{"name":"train","sources":["a.txt","b.txt"],"format":"text","shard_by":"worker"}])"},
      {"SHOAL_GENERATION", "3"},
      {"SHOAL_INDEX", "2"},
      {"SHOAL_JOB_ID", "vectors-1"},
      {"SHOAL_JOB_NAME", "vectors"},
      {"SHOAL_LEARN", R"({"algorithm":"word2vec","dim":"100"})"},
      {"SHOAL_LOCAL_RANK", "0"},
      {"SHOAL_LOCAL_SIZE", "1"},
      {"SHOAL_OUTPUT", "out"},
      {"SHOAL_OUTPUTS", R"({"extra":"other","model":"out"})"},
      {"SHOAL_REPLICAS", "3"},
      {"SHOAL_REPORT_FD", "7"},
      {"SHOAL_ROLE", "worker"},
      {"SHOAL_TOKEN_FILE", "/d/token"},
  };
  EXPECT_EQ(*env, expected);
}

TEST(Environment, TrainersHearHowManyProcessorsTheyMayUse) {
  job::Job job = ShoalJob();
  EXPECT_FALSE(RenderEnvironment(job, TwoRoles(), Context("worker", 2))->contains("SHOAL_CPUS"));
  for (job::Role& role : job.roles) role.resources.cpu = 1.5;
  EXPECT_EQ(RenderEnvironment(job, TwoRoles(), Context("worker", 2))->at("SHOAL_CPUS"), "1.5");
  EXPECT_FALSE(job::ParseJob("command: [a]\nenv: {SHOAL_CPUS: \"1\"}\n", "j").ok());
}

TEST(Environment, PortsAreTheTasksOwn) {
  const auto env = RenderEnvironment(ShoalJob(), TwoRoles(), Context("server", 1));
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->at("SHOAL_PORT"), "4002");
  EXPECT_EQ(env->at("SHOAL_PORT_PS"), "4002");
  EXPECT_EQ(env->at("SHOAL_PORT_WEB_UI"), "5002");
  EXPECT_EQ(env->at("A"), "job");
}

TEST(Environment, GenericGetsTheCommonVariablesOnly) {
  job::Job job = Parsed("command: [a]\nroles: {server: 2, worker: 3}\n");
  const auto env = RenderEnvironment(job, TwoRoles(), Context("worker", 0));
  ASSERT_TRUE(env.ok());
  EXPECT_FALSE(env->contains("SHOAL_LEARN"));
  EXPECT_FALSE(env->contains("SHOAL_OUTPUT"));
  EXPECT_FALSE(env->contains("SHOAL_DATA"));
  EXPECT_EQ(env->at("SHOAL_REPLICAS"), "3");
}

TEST(Environment, AllFrameworksGetTheirData) {
  const job::Job job = Parsed(
      "command: [a]\nroles: {server: 2, worker: 3}\n"
      "data: {train: {source: [a, b], format: csv, shard_by: worker}}\n");
  const auto env = RenderEnvironment(job, TwoRoles(), Context("worker", 0));
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->at("SHOAL_DATA"),
            R"([{"name":"train","sources":["a","b"],"format":"csv","shard_by":"worker"}])");
}

TEST(Environment, OfTheProcessesOfOneTask) {
  job::Job job = Parsed("command: [a]\nroles: {server: 2, worker: {replicas: 3, processes: 3}}\n");
  const auto env = RenderEnvironment(job, TwoRoles(), Context("worker", 1));
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->at("SHOAL_LOCAL_RANK"), "0");
  EXPECT_EQ(env->at("SHOAL_LOCAL_SIZE"), "3");
  const auto processes = RenderProcesses(job, TwoRoles(), Context("worker", 1), *env);
  ASSERT_TRUE(processes.ok());
  EXPECT_EQ(*processes, (std::vector<Environment>{
                            {}, {{"SHOAL_LOCAL_RANK", "1"}}, {{"SHOAL_LOCAL_RANK", "2"}}}));
  const auto one = RenderProcesses(job, TwoRoles(), Context("server", 1), *env);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(*one, std::vector<Environment>(1));
}

// Job files cannot override rendered variables: the parser's list of reserved names covers them
// all.
TEST(Environment, JobFilesCannotSetRenderedVariables) {
  TaskContext task = Context("server", 0);
  task.scratch = task.job_dir = task.cluster_file = "/x";
  auto env = RenderEnvironment(ShoalJob(), TwoRoles(), task);
  ASSERT_TRUE(env.ok());
  AddClusterVariable(SerializedCluster(TwoRoles()), &*env);
  EXPECT_TRUE(env->contains("SHOAL_CLUSTER"));
  int checked = 0;
  for (const auto& [name, value] : *env) {
    if (!name.starts_with("SHOAL_")) continue;
    ++checked;
    EXPECT_FALSE(job::ParseJob("command: [a]\nenv: {" + name + ": x}\n", "j").ok()) << name;
  }
  EXPECT_GE(checked, 22);
}

TEST(Environment, ErrorsSayWhatToDo) {
  job::Job job = ShoalJob();
  EXPECT_FALSE(RenderEnvironment(job, TwoRoles(), Context("worker", 3)).ok());
  EXPECT_FALSE(RenderEnvironment(job, TwoRoles(), Context("worker", -1)).ok());
  EXPECT_FALSE(RenderEnvironment(job, TwoRoles(), Context("chief", 0)).ok());
  job.data[0].sources.assign(10'000, "some/long/path/to/a/file.txt");
  const auto env = RenderEnvironment(job, TwoRoles(), Context("worker", 0));
  EXPECT_EQ(env.status().code(), Code::kResourceExhausted);
  EXPECT_NE(env.status().message().find("SHOAL_DATA"), std::string::npos);
  EXPECT_NE(env.status().message().find("a directory or a pattern"), std::string::npos);
}

TEST(SerializedCluster, IsLeftOutOfTheEnvironmentBeyondOneVariable) {
  ClusterDescription cluster;
  cluster.roles = {{"worker", {"main"}, std::vector<ClusterMember>(4000, {"10.0.0.1", {4000}})}};
  EXPECT_TRUE(SerializedCluster(cluster).fits_variable());
  cluster.roles[0].members.resize(8000, {"10.0.0.1", {4000}});
  const SerializedCluster large(cluster);
  EXPECT_FALSE(large.fits_variable());
  Environment env;
  AddClusterVariable(large, &env);
  EXPECT_FALSE(env.contains("SHOAL_CLUSTER"));
  EXPECT_EQ(large.shared().get(), SerializedCluster(large).shared().get())
      << "copies share the text";
}

}  // namespace
}  // namespace shoal::framework
