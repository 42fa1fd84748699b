// What the server does with good and bad requests, over real sockets.
#include "net/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http/test_http_server.h"
#include "net/http_client.h"

namespace shoal::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr char kGet[] = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(HttpServer, AnswersTheClientOfThisRoom) {
  TestHttpServer test;
  auto client = HttpClient::Make(test.server->url(), {});
  ASSERT_TRUE(client.ok());
  HttpRequest request;
  request.method = "POST";
  request.target = "/a/b?c=d";
  request.body = "hello";
  const auto reply = (*client)->Call(request, std::chrono::seconds(5));
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "POST /a/b?c=d hello");
  EXPECT_EQ(reply->Header("content-type"), "text/plain");
  EXPECT_THAT(reply->Header("date"), EndsWith(" GMT"));
}

TEST(HttpServer, KeepsTheConnection) {
  TestHttpServer test;
  RawPeer peer(test.server->port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(peer.Send(kGet));
    EXPECT_EQ(StatusOf(peer.ReadUntil("GET /x ")), "200");
  }
  EXPECT_EQ(test.server->stats().accepted, 1u);
  EXPECT_EQ(test.server->stats().requests, 3u);
  ASSERT_TRUE(peer.Send("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(peer.ReadToEnd(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(peer.ended());
}

TEST(HttpServer, AnswersPipelinedRequestsInTheirOrder) {
  TestHttpServer test;
  RawPeer peer(test.server->port());
  std::string requests = "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n";
  for (int i = 0; i < 500; ++i)
    requests += "POST /" + std::to_string(i) +
                " HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\n" + std::string(200, 'b');
  std::thread sender([&] { peer.Send(requests); });
  const auto held = test.Held();
  ASSERT_NE(held, nullptr);
  EXPECT_EQ(test.server->stats().requests, 1u) << "the others wait for the first answer";
  held->Reply({.status = 200, .headers = {}, .body = "first"});
  EXPECT_THAT(peer.ReadUntil("first"), HasSubstr("200 OK"));
  for (int i = 0; i < 500; ++i) {
    const std::string got = peer.ReadUntil("POST /" + std::to_string(i) + " ");
    ASSERT_THAT(got, HasSubstr("200 OK")) << i;
  }
  sender.join();
}

TEST(HttpServer, AnswersHeadWithoutABody) {
  TestHttpServer test;
  RawPeer peer(test.server->port());
  ASSERT_TRUE(peer.Send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_THAT(peer.ReadUntil("\r\n\r\n"), HasSubstr("Content-Length: 8\r\n"));
  ASSERT_TRUE(peer.Send(kGet));
  EXPECT_EQ(StatusOf(peer.ReadUntil("GET /x ")), "200") << "nothing came between the two";
}

TEST(HttpServer, ReadsBodies) {
  TestHttpServer test;
  EXPECT_THAT(test.Ask("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: x\r\n\r\n"),
              EndsWith("POST /x hello world"));
  EXPECT_THAT(test.Ask("GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"),
              EndsWith("GET /x abc"));
  EXPECT_THAT(test.Ask("POST /x HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"),
              EndsWith("POST /x abc"));
}

TEST(HttpServer, SaysWhenTheBodyMayCome) {
  TestHttpServer test;
  RawPeer peer(test.server->port());
  ASSERT_TRUE(
      peer.Send("PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"));
  EXPECT_EQ(peer.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(peer.Send("abc"));
  EXPECT_EQ(StatusOf(peer.ReadUntil("PUT /x abc")), "200");
}

TEST(HttpServer, AsksForTheLimitBeforeTheBody) {
  HttpServerOptions options;
  options.max_body = [](const HttpServerRequest& head) -> HttpBodyLimit {
    if (head.Header("authorization").empty()) return ProblemReply(401, "no token");
    return head.path.empty() ? size_t{3} : size_t{10};
  };
  TestHttpServer test(std::move(options));
  const auto ask = [&](const std::string& path, const std::string& rest) {
    RawPeer peer(test.server->port());
    peer.Send("POST " + path + " HTTP/1.1\r\nHost: a\r\n" + rest);
    return StatusOf(peer.ReadToEnd());
  };
  const std::string authorized = "Connection: close\r\nAuthorization: Bearer x\r\n";
  EXPECT_EQ(ask("/", "Content-Length: 1000000000\r\n\r\n"), "401");
  EXPECT_EQ(ask("/", "Content-Length: 4\r\nExpect: 100-continue\r\n" + authorized + "\r\n"), "413");
  EXPECT_EQ(ask("/", "Content-Length: 3\r\n" + authorized + "\r\nabc"), "200");
  EXPECT_EQ(ask("/x", "Content-Length: 4\r\n" + authorized + "\r\nabcd"), "200");
  EXPECT_EQ(ask("/", "Transfer-Encoding: chunked\r\n" + authorized + "\r\n4\r\n"), "413");
  EXPECT_EQ(ask("/", "Transfer-Encoding: chunked\r\n" + authorized + "\r\n3\r\nabc\r\n1\r\n"),
            "413");
}

TEST(HttpServer, RefusesAndCloses) {
  TestHttpServer test;
  const std::string smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
  const struct {
    std::string bytes;
    const char* status;
  } cases[] = {
      {"GET / HTTP/1.1\nHost: a\n\n", "400"},
      {"\x16\x03\x01\x02\x00\x01", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n" +
           smuggled,
       "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + smuggled, "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n" +
           smuggled,
       "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + smuggled,
       "400"},
      {"GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled, "400"},
      {"GET /" + std::string(10'000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", "414"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n", "431"},
      {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n" + smuggled, "413"},
  };
  uint64_t refused = 0;
  for (const auto& one : cases) {
    RawPeer peer(test.server->port());
    peer.Send(one.bytes);
    const std::string reply = peer.ReadToEnd();
    EXPECT_EQ(StatusOf(reply), one.status) << one.bytes.substr(0, 80);
    EXPECT_TRUE(peer.ended());
    EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(reply, HasSubstr("application/problem+json"));
    EXPECT_THAT(reply, Not(HasSubstr("smuggled")));
    EXPECT_EQ(test.server->stats().bad_requests, ++refused);
  }
  EXPECT_EQ(test.server->stats().requests, 0u);
}

TEST(HttpServer, TellsPathsOriginsAndPeers) {
  TestHttpServer test;
  const auto ask = [&](const std::string& headers) {
    RawPeer peer(test.server->port());
    peer.Send("GET /hold/caf%C3%A9?q=%2F HTTP/1.1\r\nHost: a:1\r\n" + headers + "\r\n");
    auto exchange = test.Held();
    HttpServerRequest request = exchange->request();
    exchange->Reply({});
    return request;
  };
  const HttpServerRequest request = ask("");
  EXPECT_EQ(request.path, (std::vector<std::string>{"hold", "café"}));
  EXPECT_EQ(request.Query("q"), "/");
  EXPECT_EQ(request.peer, "127.0.0.1");
  EXPECT_GT(request.peer_port, 0);
  EXPECT_FALSE(request.tls);
  EXPECT_TRUE(request.origin_allowed);
  EXPECT_TRUE(ask("Origin: http://a:1\r\n").origin_allowed);
  EXPECT_FALSE(ask("Origin: http://evil:1\r\n").origin_allowed);
  EXPECT_FALSE(ask("Origin: null\r\n").origin_allowed);
}

TEST(HttpServer, AnswersDroppedExchangesAndBadHeaders) {
  HttpServerOptions options;
  options.handler = [](const std::shared_ptr<HttpExchange>& exchange) {
    if (exchange->request().target == "/drop") return;
    HttpServerReply reply;
    reply.headers.emplace_back("X", "a\r\nInjected: yes");
    EXPECT_TRUE(exchange->Reply(reply));
    EXPECT_FALSE(exchange->Reply(reply)) << "it is answered";
    EXPECT_EQ(exchange->Stream(200, {}), nullptr);
    EXPECT_FALSE(exchange->AcceptWebSocket("").ok());
  };
  TestHttpServer test(std::move(options));
  EXPECT_EQ(StatusOf(test.Ask("GET /drop HTTP/1.1\r\nHost: a\r\n\r\n")), "500");
  const std::string reply = test.Ask(kGet);
  EXPECT_EQ(StatusOf(reply), "500");
  EXPECT_THAT(reply, Not(HasSubstr("Injected: yes")));
}

TEST(HttpServer, AnswersFromAnotherThread) {
  TestHttpServer test;
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 20; ++i) {
    peers.push_back(std::make_unique<RawPeer>(test.server->port()));
    peers.back()->Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  std::thread answers([&] {
    for (int i = 0; i < 20; ++i) test.Held()->Reply({.status = 201, .headers = {}, .body = "done"});
  });
  for (const auto& peer : peers) EXPECT_EQ(StatusOf(peer->ReadUntil("done")), "201");
  answers.join();
}

TEST(HttpServer, RepliesToPeersThatEndTheirSide) {
  TestHttpServer test;
  RawPeer peer(test.server->port());
  peer.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  peer.EndWriting();
  const auto held = test.Held();
  EXPECT_TRUE(Eventually([&] { return held->closed(); }));
  held->Reply({.status = 200, .headers = {}, .body = std::string(1 << 20, 'b')});
  EXPECT_GT(peer.ReadToEnd().size(), size_t{1} << 20);
  EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
}

TEST(HttpServer, StreamsWithBackPressure) {
  TestHttpServer test;
  RawPeer peer(test.server->port(), 64 << 10);
  peer.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto stream = test.Held()->Stream(200, {{"Content-Type", "text/event-stream"}});
  ASSERT_NE(stream, nullptr);
  std::atomic<int> drained{0};
  stream->OnDrained([&] { ++drained; });
  const std::string block(1 << 20, 'b');
  size_t written = 0;
  while (stream->queued_bytes() < (8u << 20)) {
    ASSERT_TRUE(stream->Write(block));
    written += block.size();
  }
  EXPECT_THAT(peer.ReadUntil("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  stream->Write("end");
  peer.ReadUntil("end");
  EXPECT_TRUE(Eventually([&] { return drained > 0 && stream->queued_bytes() == 0; }));
  stream->Write("more");
  stream->Finish();
  EXPECT_FALSE(stream->Write("too late"));
  EXPECT_EQ(peer.ReadUntil("0\r\n\r\n"), "\r\n4\r\nmore\r\n0\r\n\r\n");
  ASSERT_TRUE(peer.Send(kGet));
  EXPECT_EQ(StatusOf(peer.ReadUntil("GET /x ")), "200") << "the connection goes on";
}

TEST(HttpServer, StreamsKnowTheirLength) {
  TestHttpServer test;
  const auto ask = [&](const std::string& method, const std::string& body) {
    RawPeer peer(test.server->port());
    peer.Send(method + " /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const auto stream = test.Held()->Stream(200, {{"Content-Length", "5"}});
    stream->Write(body);
    stream->Finish();
    return peer.ReadToEnd();
  };
  EXPECT_THAT(ask("GET", "hello"),
              testing::AllOf(EndsWith("\r\n\r\nhello"), HasSubstr("Length: 5")));
  EXPECT_THAT(ask("HEAD", "hello"), testing::AllOf(EndsWith("\r\n\r\n"), HasSubstr("Length: 5")));
  EXPECT_THAT(ask("GET", "hello world"), EndsWith("\r\n\r\n")) << "it would be the next reply's";
  const struct {
    const char* request;
    const char* end;
  } old[] = {{"GET /hold HTTP/1.0\r\n\r\n", "\r\n\r\nhello"}};
  for (const auto& one : old) {
    RawPeer peer(test.server->port());
    peer.Send(one.request);
    const auto stream = test.Held()->Stream(200, {});
    stream->Write("hello");
    stream->Finish();
    EXPECT_THAT(peer.ReadToEnd(), EndsWith(one.end)) << "HTTP/1.0 has no chunks";
  }
}

TEST(HttpServer, TellsStreamsThatThePeerIsGone) {
  TestHttpServer test;
  std::atomic<int> closed{0};
  std::shared_ptr<HttpReplyStream> stream;
  {
    RawPeer peer(test.server->port());
    peer.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    stream = test.Held()->Stream(200, {});
    stream->OnClosed([&] { ++closed; });
    stream->Write("one");
    peer.ReadUntil("one");
  }
  EXPECT_TRUE(Eventually([&] { return closed == 1; }));
  EXPECT_FALSE(stream->Write("two"));
  stream->OnClosed([&] { ++closed; });
  EXPECT_TRUE(Eventually([&] { return closed == 2; })) << "also when it is asked afterwards";
  EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
}

TEST(HttpServer, ClosesADroppedStream) {
  TestHttpServer test;
  RawPeer peer(test.server->port());
  peer.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  auto stream = test.Held()->Stream(200, {});
  stream->Write("one");
  peer.ReadUntil("one");
  stream.reset();
  EXPECT_THAT(peer.ReadToEnd(), Not(HasSubstr("0\r\n\r\n")));
  EXPECT_TRUE(peer.ended());
}

TEST(HttpServer, ClosesAStreamWhoseQueueGrowsOverTheLimit) {
  HttpServerOptions options;
  options.limits.queued_bytes = 1 << 20;
  TestHttpServer test(std::move(options));
  RawPeer peer(test.server->port(), 4096);
  peer.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto stream = test.Held()->Stream(200, {});
  std::atomic<bool> closed{false};
  stream->OnClosed([&] { closed = true; });
  const std::string block(64 << 10, 'b');
  int blocks = 0;
  while (stream->Write(block)) ASSERT_LT(++blocks, 1000);
  EXPECT_TRUE(Eventually([&] { return closed.load(); }));
}

TEST(HttpServer, NamesAPortThatIsTaken) {
  TestHttpServer test;
  HttpServerOptions options;
  options.port = test.server->port();
  options.handler = [](const std::shared_ptr<HttpExchange>&) {};
  const auto second = HttpServer::Start(options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(second.status().message(), HasSubstr(std::to_string(options.port)));
  options.address = "localhost";
  EXPECT_EQ(HttpServer::Start(options).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace shoal::net
