// What is sent to the daemon, against the definition of its API (tests/golden/docker), and what is
// made of answers that are wrong.
#include "engine/docker/docker_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/docker/container_spec.h"
#include "engine/testing/test_fake_http_server.h"
#include "engine/testing/test_json_schema.h"

namespace shoal::engine::docker {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr const char* kVersion =
    R"({"ApiVersion":"1.41","MinAPIVersion":"1.12","Version":"20.10"})";
constexpr const char* kId = "0123456789abcdef";

class Definition {
 public:
  Definition() : calls_(ReadGolden("docker/api-1.41.json").at("calls").as_object()) {}
  // "" if the definition has the call, with these query parameters and this body.
  std::string Check(const ReceivedRequest& asked) const {
    std::string path = asked.target.substr(0, asked.target.find('?'));
    if (path.starts_with("/v1.")) path = path.substr(path.find('/', 1));
    for (const auto& [key, call] : calls_) {
      const std::string name(key);
      const size_t blank = name.find(' ');
      if (name.substr(0, blank) != asked.method || !Matches(name.substr(blank + 1), path)) continue;
      const size_t mark = asked.target.find('?');
      const std::string wrong = mark == std::string::npos ? ""
                                                          : Query(asked.target.substr(mark + 1),
                                                                  call.at("query").as_array());
      if (!wrong.empty() || !asked.body.starts_with('{') || !call.as_object().contains("body"))
        return wrong;
      return DescribeDifference(*ParseJson(asked.body), call.at("body").as_object(), "body");
    }
    return "no such call: " + asked.method + " " + path;
  }

 private:
  static bool Matches(std::string_view pattern, std::string_view path) {
    const size_t open = pattern.find('{');
    if (open == std::string_view::npos) return pattern == path;
    const std::string_view end = pattern.substr(pattern.find('}') + 1);
    return path.starts_with(pattern.substr(0, open)) && path.ends_with(end) &&
           path.substr(open, path.size() - open - end.size()).find('/') == std::string_view::npos;
  }
  static std::string Query(std::string text, const json::array& known) {
    while (!text.empty()) {
      const std::string one = text.substr(0, text.find('&'));
      text.erase(0, one.size() + 1);
      const std::string name = one.substr(0, one.find('='));
      if (std::find(known.begin(), known.end(), json::value(name)) == known.end())
        return "query parameter " + name + " is not in the definition";
    }
    return "";
  }
  const json::object calls_;
};

DesiredJob FullJob() {
  DesiredJob job;
  job.job_id = "job-1";
  job.job_dir = "/state/jobs/job-1";
  job.image = "acme/train:7";
  job.container.mounts = {{"/data", "/in", true}};
  job.container.user = "7:8";
  job.container.pids = 100;
  job.container.shm_bytes = 1 << 30;
  DesiredTask task;
  task.role = "worker";
  task.index = 3;
  task.argv = {"/bin/shoal", "task", "--incarnation", "{incarnation}"};
  task.env = {{"API_TOKEN", "hush"}, {"PLAIN", "seen"}};
  task.work_dir = "/in/x";
  task.resources = {1.5, int64_t{64} << 20, 2};
  job.tasks = {task};
  return job;
}

SpecOptions Options() { return {"/bin/shoal", "/bin/shoal-task", "1:2", {"LANG=C"}}; }

TEST(DockerApi, EveryCallIsOneOfTheDefinition) {
  FakeHttpServer daemon([](const ReceivedRequest& asked) {
    if (asked.target == "/version") return FakeHttpServer::Reply(200, kVersion);
    if (asked.target.find("/info") != std::string::npos)
      return FakeHttpServer::Reply(200, R"({"NCPU":2,"MemTotal":1000})");
    if (asked.target.find("/containers/json") != std::string::npos)
      return FakeHttpServer::Reply(200, "[]");
    if (asked.method == "GET" && asked.target.find("/networks") != std::string::npos)
      return FakeHttpServer::Reply(200, std::string(R"([{"Id":")") + kId + R"("}])");
    return FakeHttpServer::Reply(
        200, std::string(R"({"Id":")") + kId +
                 R"(","State":{"Running":true},"Running":false,"ExitCode":5,"Pid":0,)" +
                 R"("Config":{"Entrypoint":["/e"]}})");
  });
  auto api = DockerApi::Connect("unix://" + daemon.path());
  ASSERT_TRUE(api.ok()) << api.status().message();
  const DesiredJob job = FullJob();
  EXPECT_TRUE((*api)->GetMachine().ok());
  EXPECT_TRUE((*api)->List("job-1").ok());
  EXPECT_EQ((*api)
                ->Create("shoal-job-1-worker-3-0",
                         MakeContainer(Options(), {&job, &job.tasks[0], 0, 0, {"GPU-1", "GPU-2"}}))
                .value_or("?"),
            kId);
  DesiredJob alone = job;
  alone.container.own_network = true;
  EXPECT_TRUE((*api)->CreateNetwork(MakeNetwork("job-1")).ok());
  EXPECT_EQ(
      (*api)->Create("x", MakeContainer(Options(), {&alone, &job.tasks[0], 0, 0, {}})).value_or(""),
      kId);
  EXPECT_TRUE((*api)->RemoveNetworks("job-1").ok());
  EXPECT_TRUE((*api)->Start(kId, "x").ok());
  EXPECT_TRUE((*api)->Kill(kId, "TERM").ok());
  EXPECT_TRUE((*api)->Remove(kId).ok());
  EXPECT_TRUE((*api)->Inspect(kId).ok());
  (void)(*api)->Logs(kId, 100);
  EXPECT_TRUE((*api)->Events("12.000000001").ok());
  EXPECT_TRUE((*api)->HasImage("acme/train:7").value_or(false));
  EXPECT_EQ((*api)->ImageEntryPoint("acme/train:7")->program, std::vector<std::string>{"/e"});
  EXPECT_TRUE(
      (*api)->Pull("acme/train", "abc", [](const std::string&) { return Status::Ok(); }).ok());
  EXPECT_TRUE((*api)->MakeEmptyImage("shoal/empty", "1").ok());
  EXPECT_TRUE(
      (*api)
          ->CreateExec(kId, {{"AttachStdin", true}, {"Tty", false}, {"Cmd", json::array{"ls"}}})
          .ok());
  (void)(*api)->StartExec(kId);
  EXPECT_EQ((*api)->ExecEnd(kId)->value_or(-1), 5);
  const Definition definition;
  const std::vector<ReceivedRequest> asked = daemon.asked();
  EXPECT_EQ(asked.size(), 21u);
  std::string heads;
  for (const ReceivedRequest& one : asked) {
    EXPECT_EQ(definition.Check(one), "") << one.method << " " << one.target;
    heads += one.head;
  }
  EXPECT_THAT(heads, HasSubstr("X-Registry-Auth: abc"));
}

TEST(DockerApi, OneSentenceForEachWayNotToHaveADaemon) {
  const auto none = DockerApi::Connect("unix:///no/such/socket").status();
  EXPECT_EQ(none.code(), Code::kUnavailable);
  EXPECT_THAT(none.message(), HasSubstr("/no/such/socket does not answer"));
  EXPECT_THAT(none.message(), HasSubstr("DOCKER_HOST=unix://PATH"));
  EXPECT_EQ(DockerApi::Connect("tcp://10.0.0.1:2375").status().code(), Code::kInvalidArgument);
  const auto with = [](const std::string& reply) {
    FakeHttpServer daemon([&](const ReceivedRequest&) { return reply; });
    return DockerApi::Connect("unix://" + daemon.path()).status();
  };
  const auto old = with(FakeHttpServer::Reply(200, R"({"ApiVersion":"1.39","Version":"18.09"})"));
  EXPECT_EQ(old.code(), Code::kFailedPrecondition);
  EXPECT_THAT(old.message(), HasSubstr("speaks API version 1.39, at least 1.40"));
  const auto later =
      with(FakeHttpServer::Reply(200, R"({"ApiVersion":"1.90","MinAPIVersion":"1.80"})"));
  EXPECT_EQ(later.code(), Code::kFailedPrecondition);
  EXPECT_THAT(later.message(), HasSubstr("no API version before 1.80"));
  EXPECT_EQ(with("").code(), Code::kUnavailable);
  EXPECT_EQ(with("SSH-2.0-OpenSSH_9.2\r\n").code(), Code::kDataLoss);
  EXPECT_EQ(with("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{").code(), Code::kUnavailable);
  EXPECT_EQ(with("HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')).code(), Code::kDataLoss);
  EXPECT_FALSE(with(FakeHttpServer::Reply(200, "{}")).ok());
  EXPECT_FALSE(with(FakeHttpServer::Reply(200, R"({"ApiVersion":"1.41/../x"})")).ok());
}

TEST(DockerApi, AnAnswerWithoutEndIsCutOff) {
  FakeHttpServer daemon(
      [](const ReceivedRequest&) { return FakeHttpServer::Reply(200, std::string(1 << 20, 'x')); });
  const net::UnixHttp http(daemon.path());
  net::HttpRequest request;
  request.target = "/";
  const auto reply = http.Call(request, milliseconds(10'000), 1000);
  EXPECT_EQ(reply.status().code(), Code::kResourceExhausted);
}

TEST(DockerApi, APullThatFailsSaysWhy) {
  FakeHttpServer daemon([](const ReceivedRequest& asked) {
    if (asked.target == "/version") return FakeHttpServer::Reply(200, kVersion);
    return FakeHttpServer::Reply(
        200,
        "{\"status\":\"Pulling\"}\r\n{\"errorDetail\":{\"message\":\"manifest "
        "unknown\"},\"error\":\"manifest unknown\"}\r\n");
  });
  const auto api = DockerApi::Connect("unix://" + daemon.path());
  ASSERT_TRUE(api.ok());
  const Status pulled = (*api)->Pull("a:1", "", [](const std::string&) { return Status::Ok(); });
  EXPECT_EQ(pulled.message(), "manifest unknown");
  EXPECT_EQ(
      (*api)->Pull("a:1", "", [](const std::string&) { return Cancelled("enough"); }).message(),
      "manifest unknown");
}

TEST(ContainerSpec, SaysAllThatWasAsked) {
  const DesiredJob job = FullJob();
  const json::object body =
      MakeContainer(Options(), {&job, &job.tasks[0], 4, 2, {"GPU-1", "GPU-2"}});
  EXPECT_EQ(ToText(body.at("Entrypoint")), R"(["/.shoal/shoal","task","--incarnation","4"])");
  EXPECT_EQ(body.at("User"), "7:8");
  EXPECT_EQ(body.at("WorkingDir"), "/in/x");
  EXPECT_EQ(body.at("Labels").at("shoal.dev/job"), "job-1");
  EXPECT_EQ(body.at("Labels").at("shoal.dev/incarnation"), "4");
  const json::object& host = body.at("HostConfig").as_object();
  EXPECT_EQ(host.at("Memory"), 64 << 20);
  EXPECT_EQ(host.at("NanoCpus"), 1'500'000'000);
  EXPECT_EQ(host.at("PidsLimit"), 100);
  EXPECT_EQ(host.at("NetworkMode"), "host");
  EXPECT_EQ(ToText(host.at("DeviceRequests")),
            R"([{"Driver":"nvidia","DeviceIDs":["GPU-1","GPU-2"],"Capabilities":[["gpu"]]}])");
  EXPECT_EQ(host.at("Mounts").as_array().size(), 3u);
  EXPECT_FALSE(host.contains("ReadonlyRootfs"));
}

TEST(ContainerSpec, WithoutAnImageNothingIsWritable) {
  DesiredJob job = FullJob();
  job.image.clear();
  job.tasks[0].work_dir = "/elsewhere";
  const json::object body = MakeContainer(Options(), {&job, &job.tasks[0], 0, 0, {}});
  EXPECT_EQ(body.at("Image"), "shoal/empty:1");
  EXPECT_EQ(body.at("HostConfig").at("ReadonlyRootfs"), true);
  EXPECT_FALSE(body.contains("WorkingDir"));  // it is not there
  EXPECT_TRUE(CheckContainers(job).ok());
  job.container.programs = true;
  EXPECT_THAT(CheckContainers(job).message(), HasSubstr("add `image: NAME`"));
  job.image = "a b";
  EXPECT_EQ(CheckContainers(job).code(), Code::kInvalidArgument);
}

TEST(ContainerSpec, TheDescriptionHidesSecrets) {
  const std::string text = DescribeContainers(Options(), FullJob());
  EXPECT_EQ(text.find("hush"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("API_TOKEN=***"));
  EXPECT_THAT(text, HasSubstr("PLAIN=seen"));
  EXPECT_THAT(
      text, HasSubstr("docker ps -aq --filter label=shoal.dev/job=job-1 | xargs -r docker rm -f"));
}

}  // namespace
}  // namespace shoal::engine::docker
