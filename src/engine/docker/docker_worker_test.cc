// What the worker does with a daemon that is silent for long.
#include "engine/docker/docker_worker.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "engine/testing/test_fake_http_server.h"

namespace shoal::engine::docker {
namespace {

using std::chrono::seconds;

// A daemon whose registry does not answer: it sends no head until the test lets it go.
TEST(DockerWorker, APullWithoutAnAnswerEndsWhenItsJobIsGivenUp) {
  std::promise<void> pulling;
  std::promise<void> release;
  FakeHttpServer daemon([&](const ReceivedRequest& asked) {
    if (asked.target == "/version")
      return FakeHttpServer::Reply(200, R"({"ApiVersion":"1.41","Version":"20.10"})");
    if (asked.method == "GET") return FakeHttpServer::Reply(404, R"({"message":"No such image"})");
    pulling.set_value();
    release.get_future().wait();
    return std::string();
  });
  const auto api = DockerApi::Connect("unix://" + daemon.path());
  ASSERT_TRUE(api.ok()) << api.status().message();
  DockerWorker worker(api->get(), SpecOptions());
  DesiredJob job;
  job.job_id = "far-1";
  job.image = "registry.test/none:1";
  Action action;
  action.kind = Action::Kind::kStart;
  action.key = {"worker", 0};
  auto done = std::async(std::launch::async, [&] { return worker.Execute(action, job); });
  pulling.get_future().wait();
  worker.CancelPulls("other");
  EXPECT_EQ(done.wait_for(seconds(0)), std::future_status::timeout);
  worker.CancelPulls("far-1");
  const bool ended = done.wait_for(seconds(20)) == std::future_status::ready;
  release.set_value();
  ASSERT_TRUE(ended);
  EXPECT_EQ(done.get().status.code(), Code::kCancelled);
}

}  // namespace
}  // namespace shoal::engine::docker
