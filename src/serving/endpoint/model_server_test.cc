#include "serving/endpoint/model_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "data/objects/object_stores.h"
#include "net/http/test_raw_peer.h"
#include "serving/endpoint/version_follower.h"
#include "serving/inference/test_models.h"
#include "serving/registry/model_registry.h"

namespace shoal::serving {
namespace {

using testing::HasSubstr;

class ModelServerTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (directory_.path() / name).string(); }

  // A model of one weight, whose answer for "1:1" is its version.
  std::shared_ptr<const ServedModel> Version(uint64_t version) {
    const std::string path = Path("v" + std::to_string(version));
    model::FactorModel model;
    model.linear.weights = model::ZeroedFloats(2);
    model.linear.weights[1] = static_cast<float>(version);
    json::object metadata = TestMetadata("squared", "libsvm");
    learn::sparse::Target target;
    target.loss.kind = learn::sparse::LossKind::kSquared;
    metadata["target"] = learn::sparse::ToJson(target);
    EXPECT_TRUE(model::SaveFactorModel(path, model, metadata, false).ok());
    return LoadedModel(path, "m", version);
  }
  void Start(ModelServerOptions options = {}) {
    auto started = ModelServer::Start(std::move(options), {Version(1)});
    ASSERT_TRUE(started.ok()) << started.status().message();
    server_ = std::move(*started);
  }
  // The reply to one request.
  std::string Ask(const std::string& method, const std::string& target, const std::string& body,
                  const std::string& headers = "") const {
    net::RawPeer peer(server_->port());
    peer.Send(method + " " + target + " HTTP/1.1\r\nHost: a\r\n" + headers +
              (method == "POST" ? "Content-Length: " + std::to_string(body.size()) + "\r\n" : "") +
              "Connection: close\r\n\r\n" + body);
    return peer.ReadToEnd();
  }
  std::string Predict(const std::string& headers = "") const {
    return Ask("POST", "/v1/models/m:predict", R"({"instances": ["1:1"]})", headers);
  }

  const TempDir directory_ = TempDir::Create().value();
  std::unique_ptr<ModelServer> server_;
};

TEST_F(ModelServerTest, AnswersBothProtocols) {
  Start();
  EXPECT_THAT(Predict(), HasSubstr("{\"predictions\":[1]}"));
  EXPECT_THAT(Ask("POST", "/v1/models/m/versions/1:predict", R"({"instances": ["1:2"]})"),
              HasSubstr("{\"predictions\":[2]}"));
  const std::string v2 =
      R"({"inputs": [{"name": "examples", "shape": [1], "datatype": "BYTES", "data": ["1:3"]}]})";
  EXPECT_THAT(Ask("POST", "/v2/models/m/infer", v2), HasSubstr("\"data\":[3]"));
  EXPECT_THAT(Ask("POST", "/v2/models/m/versions/1/infer", v2), HasSubstr("\"data\":[3]"));
  EXPECT_THAT(Ask("GET", "/v2/health/live", ""), HasSubstr("200"));
  EXPECT_THAT(Ask("GET", "/v2/health/ready", ""), HasSubstr("{\"ready\":true}"));
  EXPECT_THAT(Ask("GET", "/v2/models/m", ""), HasSubstr("\"versions\":[\"1\"]"));
  EXPECT_THAT(Ask("GET", "/v2/models/m/ready", ""), HasSubstr("\"ready\":true"));
  EXPECT_THAT(Ask("GET", "/v1/models/m", ""), HasSubstr("\"state\":\"AVAILABLE\""));
  EXPECT_THAT(Ask("POST", "/v2/repository/index", ""), HasSubstr("\"name\":\"m\""));
  const std::string metrics = Ask("GET", "/metrics", "");
  EXPECT_THAT(metrics,
              HasSubstr("shoal_serving_requests_total{model=\"m\",version=\"1\",code=\"200\"} 4"));
  EXPECT_THAT(metrics,
              HasSubstr("shoal_serving_request_seconds_count{model=\"m\",version=\"1\"} 4"));
  EXPECT_THAT(metrics, HasSubstr("shoal_serving_instances_total{model=\"m\",version=\"1\"} 4"));
}

TEST_F(ModelServerTest, SaysWhatThereIsNot) {
  Start();
  const auto status = [&](const std::string& method, const std::string& target) {
    return net::StatusOf(Ask(method, target, "{}"));
  };
  EXPECT_EQ(status("GET", "/"), "404");
  EXPECT_EQ(status("GET", "/v2/models/other"), "404");
  EXPECT_EQ(status("GET", "/v2/models/m/versions/2"), "404");
  EXPECT_EQ(status("GET", "/v2/models/m/versions/x"), "400");
  EXPECT_EQ(status("POST", "/v1/models/m:explain"), "404");
  EXPECT_EQ(status("GET", "/v1/models/m:predict"), "405");
  EXPECT_EQ(status("POST", "/v1/models/m:predict"), "400");
  EXPECT_THAT(Ask("GET", "/v2/models/m/versions/2", ""), HasSubstr("version 1 is"));
}

TEST_F(ModelServerTest, ARequestOfAGibibyteIsRefusedUnread) {
  Start();
  net::RawPeer peer(server_->port());
  peer.Send("POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\nContent-Length: 1073741824\r\n\r\n{");
  EXPECT_EQ(net::StatusOf(peer.ReadUntil("\r\n\r\n")), "413");
  EXPECT_THAT(Predict(), HasSubstr("[1]"));
}

TEST_F(ModelServerTest, ATokenIsNeededWhereThereIsOne) {
  Start({.tokens = {{"m", "secret of m 0123456"}, {"", "secret of others 01"}}});
  EXPECT_EQ(net::StatusOf(Predict()), "401");
  EXPECT_EQ(net::StatusOf(Predict("Authorization: Bearer secret of others 01\r\n")), "401");
  EXPECT_EQ(net::StatusOf(Predict("Authorization: Bearer secret of m 0123456\r\n")), "200");
  EXPECT_EQ(net::StatusOf(Ask("GET", "/v2/health/ready", "")), "200");
  EXPECT_EQ(net::StatusOf(Ask("GET", "/metrics", "")), "401");
  // Refused before the body comes.
  net::RawPeer peer(server_->port());
  peer.Send("POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(net::StatusOf(peer.ReadUntil("\r\n\r\n")), "401");
}

TEST_F(ModelServerTest, ManySwapsFailNoRequest) {
  Start();
  std::vector<std::shared_ptr<const ServedModel>> versions;
  for (uint64_t i = 1; i <= 8; ++i) versions.push_back(Version(i));
  constexpr int kPeers = 3;
  constexpr int kEach = 2000;
  std::atomic<int> wrong{0};
  std::atomic<int> right{0};
  std::vector<std::thread> peers;
  for (int p = 0; p < kPeers; ++p) {
    peers.emplace_back([&] {
      net::RawPeer peer(server_->port());
      const std::string body = R"({"instances": ["1:1", "1:1"]})";
      const std::string request =
          "POST /v1/models/m:predict HTTP/1.1\r\nHost: a\r\nContent-Length: " +
          std::to_string(body.size()) + "\r\n\r\n" + body;
      for (int i = 0; i < kEach; ++i) {
        peer.Send(request);
        const std::string reply = peer.ReadUntil("]}\n");
        // Both instances of a request are answered by one version.
        const size_t at = reply.find("{\"predictions\":[");
        const bool whole = net::StatusOf(reply) == "200" && at != std::string::npos &&
                           reply.size() > at + 18 && reply[at + 16] == reply[at + 18];
        ++(whole ? right : wrong);
      }
    });
  }
  uint64_t swaps = 0;
  while (right + wrong < kPeers * kEach) {
    ASSERT_TRUE(server_->Swap(versions[swaps++ % versions.size()]).ok());
    std::this_thread::yield();
  }
  for (std::thread& peer : peers) peer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(right, kPeers * kEach);
  EXPECT_GT(swaps, 8u);
}

TEST_F(ModelServerTest, LongRequestsAreAnsweredByWorkersAndRefusedWhenTooManyWait) {
  Start({.workers = 1, .max_waiting = 0});
  std::string rows = "\"1:1\"";
  for (int i = 0; i < 4000; ++i) rows += ", \"1:1 2:0.000000000\"";
  const std::string reply = Ask("POST", "/v1/models/m:predict", "{\"instances\": [" + rows + "]}");
  EXPECT_EQ(net::StatusOf(reply), "503");
  EXPECT_THAT(reply, HasSubstr("Retry-After: 1"));
  Start({.workers = 1});
  EXPECT_EQ(net::StatusOf(Ask("POST", "/v1/models/m:predict", "{\"instances\": [" + rows + "]}")),
            "200");
}

TEST_F(ModelServerTest, FollowsWhatIsPromoted) {
  data::ObjectStores stores;
  const auto registry = ModelRegistry::Open(&stores, Path("registry")).value();
  for (uint64_t i = 1; i <= 3; ++i) {
    (void)Version(i);
    ASSERT_TRUE(registry->Add("m", Path("v" + std::to_string(i)), {}).ok());
  }
  ASSERT_TRUE(registry->Tag("m", "promoted", 2, "").ok());
  VersionFollower follower(registry.get(), {"m", ""}, Path("scratch"));
  VersionFollower pinned(registry.get(), {"m", "1"}, Path("scratch"));
  const auto first = follower.Load();
  ASSERT_TRUE(first.ok()) << first.status().message();
  server_ = ModelServer::Start({}, {*first}).value();
  EXPECT_THAT(Predict(), HasSubstr("[2]"));
  EXPECT_EQ(*follower.Poll(server_.get()), 0u);
  ASSERT_TRUE(registry->Tag("m", "promoted", 3, "").ok());
  EXPECT_EQ(*pinned.Poll(server_.get()), 0u);
  EXPECT_EQ(*follower.Poll(server_.get()), 3u);
  EXPECT_THAT(Predict(), HasSubstr("[3]"));
  ASSERT_TRUE(registry->Rollback("m", "").ok());
  EXPECT_EQ(*follower.Poll(server_.get()), 2u);
  EXPECT_THAT(Predict(), HasSubstr("[2]"));
  // A version that cannot be loaded leaves the old one in service.
  const auto broken = *registry->Find({"m", "1"});
  ASSERT_TRUE(
      WriteFileAtomically(Path("registry") + "/m/files/" + broken.folder + "/weights.bin", "junk")
          .ok());
  ASSERT_TRUE(registry->Tag("m", "promoted", 1, "").ok());
  EXPECT_EQ(follower.Poll(server_.get()).status().code(), Code::kDataLoss);
  EXPECT_EQ(follower.Poll(server_.get()).status().code(), Code::kDataLoss);
  EXPECT_THAT(Predict(), HasSubstr("[2]"));
}

}  // namespace
}  // namespace shoal::serving
