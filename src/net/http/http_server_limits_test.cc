// Times, numbers and ends: the server's limits, with a clock that the tests turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "net/http/http_server.h"
#include "net/http/server_core.h"
#include "net/http/test_http_server.h"

namespace shoal::net {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kGet[] = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";

bool HasConnections(const TestHttpServer& test, size_t count) {
  return Eventually([&] { return test.server->stats().connections == count; });
}

TEST(HttpServerLimits, EndsSlowHeaders) {
  TestHttpServer test;
  RawPeer peer(test.server->port());
  peer.Send("GET / HTTP/1.1\r\nHost: a\r\nX: ");
  ASSERT_TRUE(HasConnections(test, 1));
  // What comes meanwhile does not begin the time again.
  EXPECT_EQ(peer.ReadUntil("408", std::chrono::milliseconds(250)), "");
  test.clock.Advance(seconds(9));
  peer.Send("y");
  EXPECT_EQ(peer.ReadUntil("408", std::chrono::milliseconds(250)), "");
  test.clock.Advance(seconds(2));
  EXPECT_EQ(StatusOf(peer.ReadToEnd()), "408");
}

TEST(HttpServerLimits, EndsSlowBodies) {
  TestHttpServer test;
  RawPeer peer(test.server->port());
  peer.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" +
            std::string(100'000, 'b'));
  ASSERT_TRUE(HasConnections(test, 1));
  EXPECT_EQ(peer.ReadUntil("408", std::chrono::milliseconds(250)), "");
  test.clock.Advance(seconds(40));  // 20 s, and 24 s for what has come
  EXPECT_EQ(peer.ReadUntil("408", std::chrono::milliseconds(250)), "");
  test.clock.Advance(seconds(5));
  EXPECT_EQ(StatusOf(peer.ReadToEnd()), "408");
}

TEST(HttpServerLimits, ClosesIdleConnections) {
  TestHttpServer test;
  RawPeer silent(test.server->port());
  RawPeer idle(test.server->port());
  RawPeer busy(test.server->port());
  busy.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto held = test.Held();
  idle.Send(kGet);
  idle.ReadUntil("GET /x ");
  ASSERT_TRUE(HasConnections(test, 3));
  test.clock.Advance(seconds(76));
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_TRUE(silent.ended());
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_TRUE(idle.ended());
  EXPECT_TRUE(HasConnections(test, 1));
  held->Reply({.status = 200, .headers = {}, .body = "late"});
  EXPECT_EQ(StatusOf(busy.ReadUntil("late")), "200");
}

TEST(HttpServerLimits, ClosesAPeerThatDoesNotRead) {
  TestHttpServer test;
  RawPeer peer(test.server->port(), 4096);
  peer.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto stream = test.Held()->Stream(200, {});
  std::atomic<bool> closed{false};
  stream->OnClosed([&] { closed = true; });
  stream->Write(std::string(20 << 20, 'b'));
  // Until the kernel's buffers are full.
  size_t before = 0;
  EXPECT_TRUE(Eventually([&] { return stream->queued_bytes() < (20u << 20); }));
  while (before != stream->queued_bytes()) {
    before = stream->queued_bytes();
    peer.ReadUntil("none", std::chrono::milliseconds(1));
  }
  test.clock.Advance(seconds(61));
  EXPECT_TRUE(Eventually([&] {
    test.clock.Advance(seconds(1));
    return closed.load();
  }));
}

TEST(HttpServerLimits, TellsPeersThatItIsFull) {
  HttpServerOptions options;
  options.limits.connections = 2;
  TestHttpServer test(std::move(options));
  RawPeer first(test.server->port());
  auto second = std::make_unique<RawPeer>(test.server->port());
  ASSERT_TRUE(HasConnections(test, 2));
  RawPeer third(test.server->port());
  third.Send(kGet);
  const std::string reply = third.ReadToEnd();
  EXPECT_EQ(StatusOf(reply), "503");
  EXPECT_THAT(reply, HasSubstr("Retry-After: "));
  EXPECT_TRUE(third.ended());
  third.EndWriting();  // the server waits for it, so that the reply is not lost
  EXPECT_EQ(test.server->stats().refused_connections, 1u);
  first.Send(kGet);
  EXPECT_EQ(StatusOf(first.ReadUntil("GET /x ")), "200");
  second.reset();
  ASSERT_TRUE(HasConnections(test, 1));
  RawPeer fourth(test.server->port());
  fourth.Send(kGet);
  EXPECT_EQ(StatusOf(fourth.ReadUntil("GET /x ")), "200");
}

TEST(HttpServerLimits, CountsByPeer) {
  EXPECT_EQ(PeerKey("127.0.0.1"), "");
  EXPECT_EQ(PeerKey("::1"), "");
  EXPECT_EQ(PeerKey("::ffff:127.0.0.1"), "");
  EXPECT_EQ(PeerKey("10.0.0.1"), PeerKey("::ffff:10.0.0.1"));
  EXPECT_EQ(PeerKey("2001:db8:0:1::1"), PeerKey("2001:db8:0:1:ffff::2"));
  EXPECT_NE(PeerKey("2001:db8:0:1::1"), PeerKey("2001:db8:0:2::1"));
  PeerCounts counts;
  EXPECT_TRUE(counts.Add("a", 2));
  EXPECT_TRUE(counts.Add("a", 2));
  EXPECT_FALSE(counts.Add("a", 2));
  EXPECT_TRUE(counts.Add("b", 2));
  counts.Remove("a");
  EXPECT_TRUE(counts.Add("a", 2));
}

TEST(HttpServerLimits, BoundsTheBodiesOfAllPeers) {
  HttpServerOptions options;
  options.limits.body_memory = 1000;
  TestHttpServer test(std::move(options));
  const std::string post =
      "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n" + std::string(600, 'b');
  RawPeer first(test.server->port());
  first.Send(post);
  auto held = test.Held();
  RawPeer second(test.server->port());
  second.Send(post);
  EXPECT_EQ(StatusOf(second.ReadToEnd()), "503");
  held->Reply({});
  held.reset();
  first.ReadUntil("\r\n\r\n");
  RawPeer third(test.server->port());
  third.Send(post);
  held = test.Held();
  ASSERT_NE(held, nullptr) << "the first one's bytes count no more";
}

TEST(HttpServerLimits, ServesWithoutDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  // -fsanitize=vptr opens a pipe to see whether an address can be read, and reports "invalid vptr"
  // when it cannot.
  GTEST_SKIP() << "the sanitizers need descriptors themselves";
#endif
  TestHttpServer test;
  RawPeer first(test.server->port());
  first.Send(kGet);
  first.ReadUntil("GET /x ");
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 4; ++i) peers.push_back(std::make_unique<RawPeer>(test.server->port()));
  ASSERT_TRUE(HasConnections(test, 5));
  test.clock.Advance(seconds(1));
  peers.back()->Send(kGet);
  peers.back()->ReadUntil("GET /x ");
  // One more descriptor: that of the peer; the server's side has none.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = ::dup(0);
  ASSERT_GT(lowest, 0);
  ::close(lowest);
  const rlimit less{static_cast<rlim_t>(lowest) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &less), 0);
  RawPeer late(test.server->port());
  const bool connected = late.connected();
  late.Send(kGet);
  const std::string reply = late.ReadUntil("GET /x ");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(connected);
  EXPECT_EQ(StatusOf(reply), "200") << "connections that were idle for longest made room";
  EXPECT_GE(test.server->stats().accept_errors, 1u);
  EXPECT_LT(test.server->stats().accept_errors, 100u);
}

TEST(HttpServerLimits, ShutsDownInOrder) {
  TestHttpServer test;
  RawPeer idle(test.server->port());
  RawPeer busy(test.server->port());
  busy.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto held = test.Held();
  ASSERT_TRUE(HasConnections(test, 2));
  std::thread shutdown([&] { test.server->Shutdown(seconds(30)); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  EXPECT_TRUE(idle.ended());
  EXPECT_TRUE(Eventually([&] { return !RawPeer(test.server->port()).connected(); }));
  held->Reply({.status = 200, .headers = {}, .body = "done"});
  const std::string reply = busy.ReadToEnd();
  EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(reply, testing::EndsWith("done"));
  busy.EndWriting();
  shutdown.join();
  EXPECT_EQ(test.server->stats().connections, 0u);
}

TEST(HttpServerLimits, ShutsDownAtTheDeadline) {
  TestHttpServer test;
  RawPeer busy(test.server->port());
  busy.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto stream = test.Held()->Stream(200, {});
  std::atomic<bool> closed{false};
  stream->OnClosed([&] { closed = true; });
  test.server->Shutdown(std::chrono::milliseconds(1));
  EXPECT_TRUE(Eventually([&] { return closed.load(); }));
  EXPECT_FALSE(stream->Write("x"));
}

TEST(HttpServerLimits, OutlivedByExchangesAndStreams) {
  auto test = std::make_unique<TestHttpServer>();
  RawPeer one(test->server->port());
  one.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto exchange = test->Held();
  RawPeer other(test->server->port());
  other.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  auto stream = test->Held()->Stream(200, {});
  test.reset();
  EXPECT_TRUE(exchange->closed());
  EXPECT_TRUE(exchange->Reply({}));
  EXPECT_FALSE(stream->Write("x"));
  bool closed = false;
  stream->OnClosed([&] { closed = true; });
  EXPECT_TRUE(closed);
  EXPECT_TRUE(one.ReadToEnd().empty());
}

}  // namespace
}  // namespace shoal::net
