#include "net/http/http_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "net/http/proxy_environment.h"
#include "net/http/sse_reader.h"
#include "net/http/test_http_server.h"

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kLong{20'000};

HttpRequest Request(const std::string& method, const std::string& target) {
  HttpRequest request;
  request.method = method;
  request.target = target;
  return request;
}

std::string BodyOf(const Result<HttpReply>& reply) {
  return reply.ok() ? std::to_string(reply->status) + " " + reply->body : reply.status().message();
}

std::string Describe(const HttpServerRequest& request) {
  return request.method + " " + request.target + " " + request.body + " [" +
         std::string(request.Header("authorization")) + "]";
}

// Redirects "/to?STATUS=LOCATION"; answers the rest with what it was asked.
HttpServerOptions Redirecting() {
  HttpServerOptions options;
  options.handler = [](const std::shared_ptr<HttpExchange>& exchange) {
    const HttpServerRequest& request = exchange->request();
    HttpServerReply reply;
    if (request.path == std::vector<std::string>{"to"}) {
      reply.status = std::stoi(request.query[0].first);
      reply.headers.emplace_back("Location", request.query[0].second);
    }
    reply.body = Describe(request);
    exchange->Reply(std::move(reply));
  };
  return options;
}

TEST(HttpSession, UsesAConnectionAgain) {
  TestHttpServer test;
  const auto session = *HttpSession::Make(test.server->url() + "/prefix");
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(BodyOf(session->Call(Request("GET", "/x"), kLong)), "200 GET /prefix/x ");
  EXPECT_EQ(BodyOf(session->Call(Request("HEAD", "/x"), kLong)), "200 ");
  EXPECT_EQ(BodyOf(session->Call(Request("GET", "/x"), kLong)), "200 GET /prefix/x ");
  EXPECT_EQ(session->connections_made(), 1u);
  EXPECT_EQ(test.server->stats().accepted, 1u);
}

TEST(HttpSession, ReplacesAConnectionThatTheServerHasClosed) {
  TestHttpServer test;
  const auto session = *HttpSession::Make(test.server->url());
  EXPECT_TRUE(session->Call(Request("GET", "/x"), kLong).ok());
  test.clock.Advance(std::chrono::seconds(76));
  EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
  EXPECT_EQ(BodyOf(session->Call(Request("POST", "/x"), kLong)), "200 POST /x ");
  EXPECT_EQ(session->connections_made(), 2u);
}

TEST(HttpSession, ServesSeveralThreads) {
  TestHttpServer test;
  const auto session = *HttpSession::Make(test.server->url());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&session, i] {
      const std::string path = "/" + std::to_string(i);
      for (int n = 0; n < 50; ++n)
        EXPECT_EQ(BodyOf(session->Call(Request("GET", path), kLong)), "200 GET " + path + " ");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(session->connections_made(), 40u);
}

TEST(HttpSession, FollowsRedirectsOfItsServer) {
  TestHttpServer test(Redirecting());
  const auto session = *HttpSession::Make(test.server->url());
  HttpRequest post = Request("POST", "/to?303=/x");
  post.body = "hello";
  post.headers.emplace_back("Authorization", "secret");
  EXPECT_EQ(BodyOf(session->Call(post, kLong)), "200 GET /x  [secret]");
  post.target = "/to?307=/y?z%3D1";
  EXPECT_EQ(BodyOf(session->Call(post, kLong)), "200 POST /y?z=1 hello [secret]");
  EXPECT_EQ(BodyOf(session->Call(Request("GET", "/to?302=relative"), kLong)),
            "200 GET /relative  []");
  EXPECT_EQ(BodyOf(session->Call(Request("GET", "/to?301=" + test.server->url() + "/x"), kLong)),
            "200 GET /x  []");
  EXPECT_EQ(session->connections_made(), 1u);
  EXPECT_THAT(BodyOf(session->Call(Request("GET", "/to?302=/to?302%3D/x"), kLong)),
              testing::StartsWith("200 "));
}

TEST(HttpSession, DoesNotFollowRedirectsElsewhere) {
  TestHttpServer test(Redirecting());
  TestHttpServer other(Redirecting());
  const std::string elsewhere = "/to?302=" + other.server->url() + "/x";
  HttpRequest request = Request("GET", elsewhere);
  request.headers.emplace_back("AUTHORIZATION", "secret");
  const auto session = *HttpSession::Make(test.server->url());
  const auto refused = session->Call(request, kLong);
  EXPECT_EQ(refused.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.status().message(), HasSubstr("leads to another server"));
  EXPECT_EQ(other.server->stats().accepted, 0u);
  HttpSessionOptions options;
  options.redirect_hosts = {"127.0.0.1:" + std::to_string(other.server->port())};
  const auto allowed = *HttpSession::Make(test.server->url(), options);
  EXPECT_EQ(BodyOf(allowed->Call(request, kLong)), "200 GET /x  []") << "without the token";
  for (const char* location : {"ftp://a/", "http://a b/", "http://me@127.0.0.1/"}) {
    const auto bad =
        session->Call(Request("GET", std::string("/to?302=") + PercentEncode(location)), kLong);
    EXPECT_EQ(bad.status().code(), Code::kDataLoss) << location;
  }
}

TEST(HttpSession, EndsARedirectLoop) {
  HttpServerOptions options;
  options.handler = [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Reply({.status = 302, .headers = {{"Location", "/again"}}, .body = ""});
  };
  TestHttpServer test(std::move(options));
  const auto session = *HttpSession::Make(test.server->url());
  EXPECT_EQ(session->Call(Request("GET", "/"), kLong).status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(test.server->stats().requests, 6u);
}

TEST(HttpSession, PinsACertificate) {
  auto directory = TempDir::Create();
  HttpServerOptions options;
  options.tls.self_signed_directory = directory->path();
  TestHttpServer test(std::move(options));
  HttpSessionOptions pinned;
  pinned.tls.pinned_sha256 = test.server->fingerprint();
  const auto session = *HttpSession::Make(test.server->url(), pinned);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(BodyOf(session->Call(Request("GET", "/x"), kLong)), "200 GET /x ");
  EXPECT_EQ(session->connections_made(), 1u);
  pinned.tls.pinned_sha256[0] = pinned.tls.pinned_sha256[0] == 'a' ? 'b' : 'a';
  const auto wrong = *HttpSession::Make(test.server->url(), pinned);
  const Status refused = wrong->Call(Request("GET", "/x"), kLong).status();
  EXPECT_EQ(refused.code(), Code::kUnauthenticated);
  EXPECT_THAT(refused.message(), HasSubstr(test.server->fingerprint()));
  const auto unpinned = *HttpSession::Make(test.server->url());
  EXPECT_EQ(unpinned->Call(Request("GET", "/x"), kLong).status().code(), Code::kUnauthenticated);
  pinned.tls.pinned_sha256 = "abc";
  EXPECT_EQ(HttpSession::Make(test.server->url(), pinned).status().code(), Code::kInvalidArgument);
}

TEST(HttpSession, ReadsServerSentEvents) {
  TestHttpServer test;
  const auto session = *HttpSession::Make(test.server->url());
  Result<std::unique_ptr<HttpStream>> opened = Unavailable("not yet");
  std::thread opener([&] { opened = session->Open(Request("GET", "/hold"), kLong); });
  const auto stream = test.Held()->Stream(200, {{"Content-Type", "text/event-stream"}});
  opener.join();
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  SseReader reader;
  std::vector<SseEvent> events;
  stream->Write("id: 1\ndata: one\n\nid: 2\nda");
  while (events.empty()) ASSERT_TRUE(reader.Feed(*(*opened)->Next(kLong), &events).ok());
  stream->Write("ta: two\n\n");
  while (events.size() < 2) ASSERT_TRUE(reader.Feed(*(*opened)->Next(kLong), &events).ok());
  EXPECT_EQ(events[1].data, "two");
  EXPECT_EQ(reader.last_id(), "2");
  EXPECT_EQ((*opened)->Next(milliseconds(1)).status().code(), Code::kDeadlineExceeded);
  stream->Finish();
  EXPECT_EQ(*(*opened)->Next(kLong), "");
}

TEST(HttpSession, PassesOverInterimReplies) {
  // The server says 100 and then 201 in two packets or one; a client must take the second.
  TestHttpServer test;
  const auto session = *HttpSession::Make(test.server->url());
  HttpRequest request = Request("POST", "/x");
  request.headers.emplace_back("Expect", "100-continue");
  request.body = std::string(100'000, 'b');
  EXPECT_EQ(BodyOf(session->Call(request, kLong)), "200 POST /x " + request.body);
  EXPECT_EQ(BodyOf(session->Call(Request("GET", "/x"), kLong)), "200 GET /x ");
}

TEST(ProxyEnvironment, ChoosesByScheme) {
  std::map<std::string, std::string> variables = {
      {"https_proxy", "http://p:1"}, {"HTTP_PROXY", "http://q:2"}, {"no_proxy", ".inside"}};
  const auto get = [&](const char* name) { return variables[name]; };
  EXPECT_EQ(ProxyFromEnvironment("https://a.example/x", get), "http://p:1");
  EXPECT_EQ(ProxyFromEnvironment("http://a.example", get), "http://q:2");
  EXPECT_EQ(ProxyFromEnvironment("https://a.inside", get), "");
  EXPECT_EQ(ProxyFromEnvironment("https://127.0.0.1:7117", get), "");
  EXPECT_EQ(ProxyFromEnvironment("no url", get), "");
}

}  // namespace
}  // namespace shoal::net
