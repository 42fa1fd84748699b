// Apps of Marathon.
#include <gtest/gtest.h>

#include "import/test_imports.h"

namespace shoal::importer {
namespace {

std::string Line(const std::string& app) {
  return Import("{\"id\": \"/a\", \"ports\": [], " + app + "}").roles[0].command.back();
}

TEST(Marathon, ProgramsHaveItsVariables) {
  const std::string app =
      R"({"id":"/team/web","cmd":"java -Xmx${MARATHON_APP_RESOURCE_MEM%.*}m","cpus":0.5,"mem":512,
          "labels":{"my-tier.1":"front"},"env":{"MARATHON_APP_LABEL_MY_TIER_1":"own"},
          "container":{"type":"DOCKER","docker":{"image":"java:21"}}})";
  const job::Job job = Import(app);
  const auto& env = job.roles[0].env;
  const std::pair<const char*, const char*> kExpected[] = {
      {"MARATHON_APP_ID", "/team/web"},       {"MARATHON_APP_RESOURCE_CPUS", "0.5"},
      {"MARATHON_APP_RESOURCE_MEM", "512.0"}, {"MARATHON_APP_RESOURCE_DISK", "0.0"},
      {"MARATHON_APP_RESOURCE_GPUS", "0"},    {"MARATHON_APP_DOCKER_IMAGE", "java:21"},
      {"MARATHON_APP_LABELS", "MY_TIER_1"},   {"MARATHON_APP_LABEL_MY_TIER_1", "own"}};
  for (const auto& [name, value] : kExpected) {
    ASSERT_TRUE(env.contains(name)) << name;
    EXPECT_EQ(env.at(name), value) << name;
  }
  const job::Job plain = Import(R"({"id":"/a","cmd":"a"})");
  EXPECT_EQ(plain.roles[0].resources.cpu, 1);
  EXPECT_EQ(plain.roles[0].resources.memory_bytes, int64_t{128} << 20);
  EXPECT_NE(Told(R"({"id":"/a","cmd":"echo $MESOS_TASK_ID"})").find("only Marathon knows"),
            std::string::npos);
}

TEST(Marathon, AnAppsOwnVariablesComeBeforeMarathons) {
  const auto job = Import(
      R"({"id": "/a", "cmd": "serve", "env": {"HOST": "0.0.0.0", "PORT": "80", "PORT_WEB": "81"},
          "portDefinitions": [{"port": 0, "name": "web"}]})");
  EXPECT_EQ(job.roles[0].env.at("HOST"), "0.0.0.0");
  EXPECT_EQ(job.roles[0].command.back(),
            "export PORT0=$SHOAL_PORT_WEB PORTS=$SHOAL_PORT_WEB\nserve");
  const auto plain = Import(R"({"id": "/a", "cmd": "serve"})");
  EXPECT_EQ(plain.roles[0].env.at("HOST"), "{{shoal.host}}");
}

TEST(Marathon, AnAppThatNamesNoPortHasOne) {
  const auto plain = Import(R"({"id":"/a","cmd":"serve $PORT0"})");
  EXPECT_EQ(plain.roles[0].command.back(),
            "export PORT=$SHOAL_PORT PORT0=$SHOAL_PORT_DEFAULT PORT_DEFAULT=$SHOAL_PORT_DEFAULT "
            "PORTS=$SHOAL_PORT_DEFAULT\nserve $PORT0");
  for (const char* ports : {R"("ports":[])", R"("portDefinitions":[])"}) {
    const auto none = Import(std::string(R"({"id":"/a","cmd":"serve",)") + ports + "}");
    EXPECT_EQ(none.roles[0].command.back(), "serve") << ports;
    EXPECT_TRUE(none.roles[0].ports.empty()) << ports;
  }
  const auto mapped = Import(
      R"({"id":"/a","cmd":"serve","container":{"docker":{"image":"i"},"portMappings":[{"containerPort":80}]}})");
  EXPECT_EQ(mapped.roles[0].ports.size(), 1U);
}

TEST(Marathon, WaitsOfMoreThanAnHourAreMentioned) {
  const auto mentioned = [](const std::string& seconds) {
    const auto imported =
        ImportText(R"({"id":"/a","cmd":"a","maxLaunchDelaySeconds":)" + seconds + "}", "f.json");
    return imported.ok() && std::ranges::any_of((*imported)->losses, [](const ImportLoss& loss) {
             return loss.field == "maxLaunchDelaySeconds";
           });
  };
  EXPECT_TRUE(mentioned("36000"));
  EXPECT_FALSE(mentioned("3600"));
  EXPECT_EQ(
      Import(R"({"id":"/a","cmd":"a","maxLaunchDelaySeconds":36000})").roles[0].restart.backoff_max,
      std::chrono::hours(1));
}

TEST(Marathon, PortsKeepTheirNumbersHoweverTheyAreCalled) {
  const std::string line = Line(
      R"("cmd": "serve", "portDefinitions": [{"port": 0, "name": "metrics-endpoint-a"},
          {"port": 8080, "name": "metrics-endpoint-b"}, {"port": 0}])");
  EXPECT_EQ(line,
            "export PORT=$SHOAL_PORT PORT0=$SHOAL_PORT_METRICS_ENDPOIN "
            "PORT_METRICS_ENDPOINT_A=$SHOAL_PORT_METRICS_ENDPOIN PORT1=$SHOAL_PORT_PORT1 "
            "PORT_METRICS_ENDPOINT_B=$SHOAL_PORT_PORT1 PORT_8080=$SHOAL_PORT_PORT1 "
            "PORT2=$SHOAL_PORT_PORT2 PORT_PORT2=$SHOAL_PORT_PORT2 "
            "PORTS=$SHOAL_PORT_METRICS_ENDPOIN,$SHOAL_PORT_PORT1,$SHOAL_PORT_PORT2\nserve");
  std::string many = R"({"id": "/a", "cmd": "serve", "ports": [0)";
  for (int i = 0; i < 15; ++i) many += ", 0";
  EXPECT_FALSE(ImportText(many + "]}", "f.json").ok());
}

TEST(Marathon, NumbersOfPortsAreToldWhereProgramsNeedThem) {
  EXPECT_NE(Told(R"({"id": "/a", "cmd": "b", "ports": [8080], "requirePorts": true})")
                .find("port 8080 itself was asked for"),
            std::string::npos);
  EXPECT_EQ(Told(R"({"id": "/a", "cmd": "b", "ports": [8080]})").find("8080"), std::string::npos);
  EXPECT_NE(Told(R"({"id": "/a", "cmd": "b", "container": {"docker": {"image": "i"},
                     "portMappings": [{"containerPort": 8080, "hostPort": 0}]}})")
                .find("listened at port 8080"),
            std::string::npos);
}

TEST(Marathon, CommandsThatKeepABackgroundProgramAliveStay) {
  EXPECT_EQ(Line(R"("cmd": "train; tail -f /dev/null")"), "train");
  EXPECT_EQ(Line(R"("cmd": "train > log 2>&1 && sleep infinity")"), "train > log 2>&1 ");
  for (const char* line : {"daemon & tail -f /dev/null", "daemon & echo up; tail -f /dev/null",
                           "nohup daemon > log 2>&1 & wait-for-it; sleep infinity"}) {
    EXPECT_EQ(Line("\"cmd\": \"" + std::string(line) + "\""), line);
  }
}

}  // namespace
}  // namespace shoal::importer
