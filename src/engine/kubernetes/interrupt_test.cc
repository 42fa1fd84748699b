// Calls to an API server that takes connections and says nothing: they end when they are
// interrupted, and only those of the job that was meant.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>

#include "base/file.h"
#include "engine/kubernetes/kube_client.h"
#include "engine/kubernetes/kubernetes_engine.h"
#include "engine/kubernetes/pod_relay.h"

namespace shoal::engine::kubernetes {
namespace {

using std::chrono::seconds;

class SilentServer {
 public:
  SilentServer() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_.get(), generic, size), 0);
    EXPECT_EQ(::listen(fd_.get(), 16), 0);
    EXPECT_EQ(::getsockname(fd_.get(), generic, &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& url() const { return url_; }
  // Until somebody asks.
  void Await() {
    pollfd asked{fd_.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&asked, 1, 20'000), 1);
    taken_.push_back(UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }
  void Say(const std::string& text) { EXPECT_TRUE(WriteAll(taken_.back().get(), text).ok()); }
  void HangUp() { taken_.clear(); }

 private:
  UniqueFd fd_;
  std::vector<UniqueFd> taken_;
  std::string url_;
};

constexpr seconds kLong{20};  // less than the deadline of a request

TEST(Interrupt, EndsTheCallsUnderWayOfOneClientAlone) {
  SilentServer server;
  ClusterAccess access;
  access.server = server.url();
  const auto client = KubeClient::Make(access);
  ASSERT_TRUE(client.ok());
  const auto other = (*client)->Share();
  auto asked = std::async(std::launch::async, [&] { return (*client)->Get("/api").status(); });
  server.Await();
  auto others = std::async(std::launch::async, [&] { return other->Get("/api").status(); });
  server.Await();
  (*client)->Interrupt();
  ASSERT_EQ(asked.wait_for(kLong), std::future_status::ready);
  EXPECT_FALSE(asked.get().ok());
  EXPECT_EQ(others.wait_for(seconds(0)), std::future_status::timeout);
  // A later call is made as if nothing had been.
  auto later = std::async(std::launch::async, [&] { return (*client)->Get("/api").status(); });
  server.Await();
  EXPECT_EQ(later.wait_for(seconds(0)), std::future_status::timeout);
  (*client)->Shutdown();
  other->Shutdown();
  EXPECT_EQ(later.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(others.wait_for(kLong), std::future_status::ready);
}

TEST(Interrupt, AnApplyThatWasNeverAnsweredHasNothingToRemove) {
  SilentServer server;
  const TempDir dir = std::move(*TempDir::Create());
  const std::string config =
      "{current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, "
      "cluster: {server: \"" +
      server.url() + "\"}}]}";
  ASSERT_TRUE(WriteFileAtomically(dir.path() / "config", config).ok());
  KubernetesEngineOptions options;
  options.launcher_image = "launcher:1";
  options.place = {};
  options.place.kubeconfig = (dir.path() / "config").string();
  const auto engine = MakeKubernetesEngine(options);
  ASSERT_TRUE(engine.ok());
  DesiredJob job;
  job.job_id = "far-1";
  job.job_dir = dir.path();
  job.image = "none:1";
  DesiredTask task;
  task.role = "coordinator";
  task.argv = {"true"};
  job.tasks = {task};
  auto applied = std::async(std::launch::async, [&] { return (*engine)->Apply(job); });
  server.Await();
  (*engine)->Interrupt("far-1");
  ASSERT_EQ(applied.wait_for(kLong), std::future_status::ready);
  EXPECT_FALSE(applied.get().ok());
  auto stopped =
      std::async(std::launch::async, [&] { return (*engine)->Stop("far-1", seconds(0)); });
  ASSERT_EQ(stopped.wait_for(kLong), std::future_status::ready);
  EXPECT_TRUE(stopped.get().ok());
}

TEST(Interrupt, ARelayEndsThoughTheServerIsSilent) {
  SilentServer server;
  ClusterAccess access;
  access.server = server.url();
  const auto client = KubeClient::Make(access);
  ASSERT_TRUE(client.ok());
  auto relay = PodRelay::Start(client->get(), [] { return Result<std::string>("/proxy"); });
  ASSERT_TRUE(relay.ok());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons((*relay)->endpoint().port);
  UniqueFd asker(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(asker.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_TRUE(WriteAll(asker.get(), "GET /shoal HTTP/1.1\r\nHost: x\r\n\r\n").ok());
  server.Await();
  // The connection stands, and its asker goes: the server is told, and says nothing to it.
  server.Say("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  char byte = 0;
  ASSERT_EQ(::read(asker.get(), &byte, 1), 1);
  asker.Reset();
  auto ended = std::async(std::launch::async, [&] { relay->reset(); });
  EXPECT_EQ(ended.wait_for(kLong), std::future_status::ready);
  server.HangUp();  // so that the test ends where the relay does not
}

}  // namespace
}  // namespace shoal::engine::kubernetes
