// Calls and watches against a server that says what the test wants: busy, forgetful, not knowing
// us any more. Without a cluster.
#include "engine/kubernetes/kube_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "base/file.h"
#include "engine/kubernetes/pod_informer.h"
#include "engine/testing/test_fake_http_server.h"

namespace shoal::engine::kubernetes {
namespace {

using docker::FakeHttpServer;
using docker::ReceivedRequest;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// An exec plugin that counts how often it was asked: tokens t1, t2, …
class Plugin {
 public:
  // `expires`: RFC 3339, or empty.
  explicit Plugin(const std::string& expires) {
    const std::string end = expires.empty() ? "" : ", \"expirationTimestamp\": \"" + expires + "\"";
    script_ = "echo >> " + file() + "; n=$(wc -l < " + file() +
              "); echo \"{\\\"status\\\": {\\\"token\\\": \\\"t$n\\\"" + Escaped(end) + "}}\"";
  }
  ClusterAccess Access(const std::string& url) const {
    ClusterAccess access;
    access.source = "test";
    access.server = url;
    access.exec.argv = {"/bin/sh", "-c", script_};
    return access;
  }

 private:
  std::string file() const { return (dir_.path() / "asked").string(); }
  static std::string Escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '"' ? "\\\"" : std::string(1, c);
    return out;
  }
  const TempDir dir_ = TempDir::Create("plugin").value();
  std::string script_;
};

std::string TokenOf(const ReceivedRequest& asked) {
  const std::string name = "Authorization: Bearer ";
  const size_t at = asked.head.find(name);
  if (at == std::string::npos) return "";
  return asked.head.substr(at + name.size(), asked.head.find('\r', at) - at - name.size());
}

TEST(KubeClient, ABusyServerIsAskedAgain) {
  int calls = 0;
  FakeHttpServer server(
      [&](const ReceivedRequest&) {
        ++calls;
        if (calls == 1) return FakeHttpServer::Reply(429, "{}", "Retry-After: 0");
        if (calls == 2) return FakeHttpServer::Reply(503, "{}");
        return FakeHttpServer::Reply(200, R"({"kind": "Node"})");
      },
      FakeHttpServer::Where::kLoopback);
  ClusterAccess access;
  access.server = server.url();
  const auto client = KubeClient::Make(access);
  ASSERT_TRUE(client.ok()) << client.status().message();
  const auto got = (*client)->Get("/api/v1/nodes/n");
  ASSERT_TRUE(got.ok()) << got.status().message();
  EXPECT_EQ(server.asked().size(), 3u);
  // What is given up waits no longer.
  (*client)->Shutdown();
  calls = 0;
  EXPECT_EQ((*client)->Get("/api/v1/nodes/n").status().code(), Code::kUnavailable);
  EXPECT_EQ(server.asked().size(), 4u);
}

std::string Forbidden() {
  return FakeHttpServer::Reply(403, R"({"message": "jobs.batch \"j\" is forbidden"})");
}

// It has not read its roles yet, and denies what it will allow.
TEST(KubeClient, AServerThatHasJustStartedIsAskedAgainWhenItForbids) {
  int calls = 0;
  FakeHttpServer server(
      [&](const ReceivedRequest&) {
        ++calls;
        if (calls == 1) return std::string();  // the connection ends without an answer
        return calls < 4 ? Forbidden() : FakeHttpServer::Reply(200, R"({"kind": "Job"})");
      },
      FakeHttpServer::Where::kLoopback);
  ClusterAccess access;
  access.server = server.url();
  const auto client = KubeClient::Make(access);
  ASSERT_TRUE(client.ok()) << client.status().message();
  const auto got = (*client)->Apply("/apis/batch/v1/namespaces/n/jobs/j", {});
  EXPECT_TRUE(got.ok()) << got.status().message();
}

TEST(KubeClient, AServerThatWasAlwaysThereIsBelievedWhenItForbids) {
  FakeHttpServer server([](const ReceivedRequest&) { return Forbidden(); },
                        FakeHttpServer::Where::kLoopback);
  ClusterAccess access;
  access.server = server.url();
  const auto client = KubeClient::Make(access);
  ASSERT_TRUE(client.ok()) << client.status().message();
  EXPECT_EQ((*client)->Get("/api/v1/nodes/n").status().code(), Code::kPermissionDenied);
  EXPECT_EQ(server.asked().size(), 1u);
}

TEST(KubeClient, RetryAfterIsKept) {
  const auto wait = [](const std::string& value, int attempt) {
    return WaitAfter({429, {{"retry-after", value}}, ""}, attempt, 0);
  };
  EXPECT_EQ(wait("7", 0), milliseconds(7'000));
  EXPECT_EQ(wait("600", 0), milliseconds(30'000));
  EXPECT_EQ(wait("0", 50), milliseconds(2'500));
  EXPECT_EQ(wait("-5", 50), milliseconds(2'500));
  EXPECT_EQ(wait("Sun, 22 Nov 2026 22:00:00 GMT", 50), milliseconds(2'500));
}

// A token that the cluster does not take any more, though nobody said when it expires.
TEST(KubeClient, WhatIsRefusedIsAskedForAgain) {
  FakeHttpServer server(
      [](const ReceivedRequest& asked) {
        const bool good = TokenOf(asked) != "t1";
        return good ? FakeHttpServer::Reply(200, "{}") : FakeHttpServer::Reply(401, "{}");
      },
      FakeHttpServer::Where::kLoopback);
  const Plugin plugin("");
  for (const bool watch : {false, true}) {
    const auto client = KubeClient::Make(Plugin("").Access(server.url()));
    ASSERT_TRUE(client.ok()) << client.status().message();
    const Status status = watch ? (*client)->Watch("/api/v1/pods?watch=true").status()
                                : (*client)->Get("/api/v1/pods").status();
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(KubeClient, WhoIsNotKnownEvenThenIsTold) {
  FakeHttpServer server(
      [](const ReceivedRequest&) { return FakeHttpServer::Reply(401, R"({"message": "who?"})"); },
      FakeHttpServer::Where::kLoopback);
  const Plugin plugin("");
  const auto client = KubeClient::Make(plugin.Access(server.url()));
  ASSERT_TRUE(client.ok());
  const Status status = (*client)->Get("/api/v1/pods").status();
  EXPECT_EQ(status.code(), Code::kUnauthenticated);
  EXPECT_THAT(status.message(), HasSubstr("the cluster does not know who asks: who?"));
  EXPECT_EQ(server.asked().size(), 2u);
}

TEST(KubeClient, AnExecPluginIsAskedAgainBeforeItsTokenExpires) {
  FakeHttpServer server([](const ReceivedRequest&) { return FakeHttpServer::Reply(200, "{}"); },
                        FakeHttpServer::Where::kLoopback);
  FakeClock clock;
  // East of Greenwich, as some plugins say it.
  std::string expires = FormatWall(clock.Wall() + std::chrono::hours(2));
  expires.replace(expires.size() - 1, 1, "+01:00");
  const Plugin plugin(expires);
  const auto client = KubeClient::Make(plugin.Access(server.url()), &clock);
  ASSERT_TRUE(client.ok()) << client.status().message();
  ASSERT_TRUE((*client)->Get("/a").ok());
  clock.Advance(std::chrono::minutes(59));
  ASSERT_TRUE((*client)->Get("/b").ok());
  clock.Advance(std::chrono::seconds(51));
  ASSERT_TRUE((*client)->Get("/c").ok());
  std::vector<std::string> tokens;
  for (const ReceivedRequest& asked : server.asked()) tokens.push_back(TokenOf(asked));
  EXPECT_THAT(tokens, ElementsAre("t1", "t1", "t2"));
}

// ---- Watches ----

// A server of one job's pods: lists that are told by number, watches that do not last.
class ForgetfulServer {
 public:
  explicit ForgetfulServer(std::function<std::string(const std::string& from)> watch)
      : watch_(std::move(watch)) {}

  std::string url() const { return server_.url(); }
  std::vector<std::string> targets() {
    std::vector<std::string> targets;
    for (const ReceivedRequest& asked : server_.asked()) targets.push_back(asked.target);
    return targets;
  }
  // False if that takes too long.
  bool AwaitLists(int count) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return lists_ >= count; });
  }
  bool AwaitWatches(int count) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return watches_ >= count; });
  }

 private:
  std::string Answer(const ReceivedRequest& asked) {
    std::lock_guard lock(mu_);
    changed_.notify_all();
    const std::string field = "resourceVersion=";
    if (const size_t at = asked.target.find(field); at != std::string::npos) {
      ++watches_;
      return watch_(asked.target.substr(at + field.size()));
    }
    ++lists_;
    return FakeHttpServer::Reply(200, R"({"kind": "PodList", "items": [], "metadata": )"
                                      R"({"resourceVersion": ")" +
                                          std::to_string(10 * lists_) + "\"}}");
  }

  const std::function<std::string(const std::string&)> watch_;
  std::mutex mu_;
  std::condition_variable changed_;
  int lists_ = 0;    // guarded by mu_
  int watches_ = 0;  // guarded by mu_
  FakeHttpServer server_{[this](const ReceivedRequest& asked) { return Answer(asked); },
                         FakeHttpServer::Where::kLoopback};
};

class Watches : public testing::Test {
 protected:
  void Follow(const std::string& url) {
    ClusterAccess access;
    access.server = url;
    client_ = KubeClient::Make(access).value();
    follower_ = std::make_unique<PodInformer>(
        PodInformer::Options{"text-0a1b2c", "team", client_.get(), &clock_, {}},
        [](std::vector<TaskEvent>) {});
    follower_->Start();
  }
  void End() {
    client_->Shutdown();
    follower_->End();
  }

  FakeClock clock_;
  std::unique_ptr<KubeClient> client_;
  std::unique_ptr<PodInformer> follower_;
};

// 410, as the whole answer and as a line of it: from a list again, and on from there.
TEST_F(Watches, WhatTheServerHasForgottenIsListedAgain) {
  ForgetfulServer server([](const std::string& from) {
    if (from == "10")
      return FakeHttpServer::Reply(410, R"({"kind": "Status", "message": "too old"})");
    return FakeHttpServer::Reply(
        200, R"({"type": "ERROR", "object": {"code": 410, "message": "too old"}})"
             "\n");
  });
  Follow(server.url());
  ASSERT_TRUE(server.AwaitLists(3));
  End();
  const std::vector<std::string> targets = server.targets();
  ASSERT_GE(targets.size(), 5u);
  EXPECT_THAT(targets[0], Not(HasSubstr("watch=true")));
  EXPECT_THAT(targets[1], AllOf(HasSubstr("watch=true"), HasSubstr("resourceVersion=10")));
  EXPECT_THAT(targets[2], Not(HasSubstr("watch=true")));
  EXPECT_THAT(targets[3], HasSubstr("resourceVersion=20"));
  EXPECT_THAT(targets[4], Not(HasSubstr("watch=true")));
}

// A watch that ends goes on from where it was, by bookmarks too.
TEST_F(Watches, AWatchThatEndsGoesOnFromItsBookmark) {
  ForgetfulServer server([](const std::string& from) {
    if (from != "10") return FakeHttpServer::Reply(200, "");
    return FakeHttpServer::Reply(
        200, R"({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "17"}}})"
             "\n");
  });
  Follow(server.url());
  ASSERT_TRUE(server.AwaitWatches(3));
  End();
  const std::vector<std::string> targets = server.targets();
  EXPECT_THAT(targets[2], HasSubstr("resourceVersion=17"));
  EXPECT_THAT(targets[3], HasSubstr("resourceVersion=17"));
}

}  // namespace
}  // namespace shoal::engine::kubernetes
