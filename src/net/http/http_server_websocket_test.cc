#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/event_loop.h"
#include "net/http/test_http_server.h"
#include "net/websocket.h"

namespace shoal::net {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

const std::string kUpgrade =
    "GET /hold HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

// A frame of a client, masked with zeros.
std::string Frame(int first_byte, const std::string& payload) {
  std::string frame(1, static_cast<char>(first_byte));
  if (payload.size() < 126) {
    frame += static_cast<char>(0x80 | payload.size());
  } else {
    frame += static_cast<char>(0x80 | 126);
    frame += static_cast<char>(payload.size() >> 8);
    frame += static_cast<char>(payload.size() & 255);
  }
  return frame + std::string(4, '\0') + payload;
}

struct Ended {
  std::mutex mu;
  int count = 0;
  uint16_t code = 0;
  std::string reason;
  bool Wait() {
    return Eventually([this] {
      const std::lock_guard lock(mu);
      return count > 0;
    });
  }
};

void Watch(HttpWebSocket* socket, Ended* ended) {
  socket->OnClosed([ended](uint16_t code, const std::string& reason) {
    const std::lock_guard lock(ended->mu);
    ++ended->count;
    ended->code = code;
    ended->reason = reason;
  });
}

class HttpServerWebSocket : public testing::Test {
 protected:
  std::shared_ptr<HttpWebSocket> Accept(TestHttpServer* on, RawPeer* peer,
                                        const std::string& headers = "",
                                        const std::string& protocol = "") {
    peer->Send(kUpgrade + headers + "\r\n");
    auto socket = on->Held()->AcceptWebSocket(protocol);
    EXPECT_TRUE(socket.ok()) << socket.status().message();
    head = peer->ReadUntil("\r\n\r\n");
    return socket.ok() ? *socket : nullptr;
  }
  Ended ended;  // outlives the server
  std::mutex mu;
  std::vector<std::string> messages;
  TestHttpServer test;
  std::string head;

  void Collect(HttpWebSocket* socket) {
    socket->OnMessage([this](std::string_view bytes, bool text) {
      const std::lock_guard lock(mu);
      messages.push_back((text ? "t:" : "b:") + std::string(bytes));
    });
  }
  bool Has(size_t count) {
    return Eventually([&] {
      const std::lock_guard lock(mu);
      return messages.size() >= count;
    });
  }
};

TEST_F(HttpServerWebSocket, TalksWithTheClientOfThisRoom) {
  HttpServerOptions served;
  std::shared_ptr<HttpWebSocket> server;
  served.handler = [&](const std::shared_ptr<HttpExchange>& exchange) {
    server = *exchange->AcceptWebSocket("");
    server->OnMessage(
        [&](std::string_view bytes, bool) { server->Send("echo " + std::string(bytes)); });
    Watch(server.get(), &ended);
  };
  TestHttpServer accepting(std::move(served));
  Loop loop;
  ConnectOptions options;
  options.host = "127.0.0.1";
  options.port = accepting.server->port();
  options.path = "/any";
  std::unique_ptr<WebSocket> client;
  const auto connecting = Connect(&loop, options, [&](Result<std::unique_ptr<WebSocket>> done) {
    ASSERT_TRUE(done.ok()) << done.status().message();
    client = std::move(*done);
  });
  ASSERT_TRUE(loop.RunUntil([&] { return client != nullptr; }, seconds(10)));
  std::vector<std::string> got;
  Status end = Internal("it did not end");
  client->Start([&](std::string_view bytes, bool) { got.emplace_back(bytes); },
                [&](const Status& status) { end = status; });
  for (int i = 0; i < 100; ++i) client->SendText(std::to_string(i));
  ASSERT_TRUE(loop.RunUntil([&] { return got.size() == 100; }, seconds(10)));
  EXPECT_EQ(got[99], "echo 99");
  server->Close(4001, "enough");
  ASSERT_TRUE(loop.RunUntil([&] { return end.ok(); }, seconds(10)));
  EXPECT_EQ(client->close_reason(), "enough");
  EXPECT_TRUE(ended.Wait());
  EXPECT_FALSE(server->Send("late"));
}

TEST_F(HttpServerWebSocket, ReadsRawFrames) {
  RawPeer peer(test.server->port());
  const auto socket = Accept(&test, &peer, "Sec-WebSocket-Protocol: one, two\r\n", "two");
  EXPECT_EQ(StatusOf(head), "101");
  EXPECT_THAT(head, HasSubstr("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
  EXPECT_THAT(head, HasSubstr("Sec-WebSocket-Protocol: two\r\n"));
  Collect(socket.get());
  Watch(socket.get(), &ended);
  peer.Send(Frame(0x81, "text") + Frame(0x82, "bytes") + Frame(0x01, "in ") + Frame(0x89, "ping") +
            Frame(0x80, "parts"));
  ASSERT_TRUE(Has(3));
  EXPECT_EQ(messages, (std::vector<std::string>{"t:text", "b:bytes", "t:in parts"}));
  EXPECT_EQ(peer.ReadUntil("ping"), std::string("\x8a\x04ping"));
  peer.Send(Frame(0x88, std::string("\x0f\xa0", 2) + "bye"));
  ASSERT_TRUE(ended.Wait());
  EXPECT_EQ(ended.code, 4000);
  EXPECT_EQ(ended.reason, "bye");
  EXPECT_TRUE(Eventually([&] { return test.server->stats().connections == 0; }));
}

TEST_F(HttpServerWebSocket, RefusesWhatItMustNotAccept) {
  const auto code = [&](const std::string& headers, const std::string& protocol) {
    RawPeer peer(test.server->port());
    peer.Send(kUpgrade + headers + "\r\n");
    const auto exchange = test.Held();
    const Status status = exchange->AcceptWebSocket(protocol).status();
    exchange->Reply({.status = 403, .headers = {}, .body = "no"});
    EXPECT_EQ(StatusOf(peer.ReadUntil("no")), "403") << "it can be answered in another way";
    return status.code();
  };
  EXPECT_EQ(code("Origin: http://evil\r\n", ""), Code::kPermissionDenied);
  EXPECT_EQ(code("Sec-WebSocket-Protocol: one\r\n", "two"), Code::kInvalidArgument);
  RawPeer peer(test.server->port());
  peer.Send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(test.Held()->AcceptWebSocket("").status().code(), Code::kFailedPrecondition);
}

TEST_F(HttpServerWebSocket, ClosesPeersThatBreakTheRules) {
  const struct {
    std::string frames;
    int code;  // that the peer is told; 0: any
  } cases[] = {
      {std::string("\x81\x04text", 6), 1002},      // not masked
      {Frame(0x83, "x"), 1002},                    // unknown
      {Frame(0xc1, "x"), 1002},                    // a reserved bit
      {Frame(0x81, "\xff\xfe"), 1007},             // no UTF-8
      {Frame(0x80, "x"), 1002},                    // nothing to go on with
      {Frame(0x09, "x"), 1002},                    // a ping in parts
      {Frame(0x89, std::string(126, 'p')), 1002},  // a long ping
      {std::string("\x81\xff\0\0\0\0\x40\0\0\0\0\0\0\0", 14), 1009},
      {std::string("\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14), 0},
  };
  for (const auto& one : cases) {
    RawPeer peer(test.server->port());
    const auto socket = Accept(&test, &peer);
    Ended closed;
    Collect(socket.get());
    Watch(socket.get(), &closed);
    peer.Send(one.frames);
    const std::string reply = peer.ReadToEnd();
    EXPECT_TRUE(peer.ended()) << one.code;
    EXPECT_TRUE(closed.Wait()) << one.code;
    if (one.code == 0) continue;
    ASSERT_GE(reply.size(), 4u) << one.code;
    const int code =
        static_cast<unsigned char>(reply[2]) * 256 + static_cast<unsigned char>(reply[3]);
    EXPECT_EQ(code, one.code);
  }
  EXPECT_TRUE(messages.empty());
}

TEST_F(HttpServerWebSocket, PingsAndEndsHalfOpenPeers) {
  RawPeer peer(test.server->port());
  const auto socket = Accept(&test, &peer);
  Collect(socket.get());
  Watch(socket.get(), &ended);
  ASSERT_TRUE(socket->Send("x"));
  EXPECT_TRUE(Eventually([&] { return socket->queued_bytes() == 0; }));
  test.clock.Advance(seconds(21));
  peer.ReadUntil(std::string("\x89\x00", 2));
  peer.Send(Frame(0x8a, ""));
  peer.Send(Frame(0x81, "sign"));
  ASSERT_TRUE(Has(1));
  test.clock.Advance(seconds(21));
  peer.ReadUntil(std::string("\x89\x00", 2));
  EXPECT_EQ(ended.count, 0);
  test.clock.Advance(seconds(21));
  ASSERT_TRUE(ended.Wait());
  EXPECT_EQ(ended.code, 1006);
  peer.ReadToEnd();
  EXPECT_TRUE(peer.ended());
}

TEST_F(HttpServerWebSocket, GivesUpAClose) {
  RawPeer peer(test.server->port());
  const auto socket = Accept(&test, &peer);
  Collect(socket.get());
  Watch(socket.get(), &ended);
  socket->Close(1000, "done");
  peer.ReadUntil("done");
  test.clock.Advance(seconds(3));
  ASSERT_TRUE(ended.Wait());
}

TEST_F(HttpServerWebSocket, ClosesADroppedSocketAndALongQueue) {
  {
    RawPeer peer(test.server->port());
    auto socket = Accept(&test, &peer);
    socket.reset();
    const std::string reply = peer.ReadUntil(std::string("\x88\x02\x03\xe9", 4));
    EXPECT_THAT(reply, testing::EndsWith(std::string("\x88\x02\x03\xe9", 4)));
  }
  RawPeer slow(test.server->port(), 4096);
  const auto socket = Accept(&test, &slow);
  Watch(socket.get(), &ended);
  const std::string block(1 << 20, 'b');
  int sent = 0;
  while (socket->Send(block)) ASSERT_LT(++sent, 1000);
  EXPECT_TRUE(ended.Wait());
  EXPECT_GT(sent, 50);
}

TEST_F(HttpServerWebSocket, CompressesIfAsked) {
  HttpServerOptions options;
  options.websocket_deflate = true;
  TestHttpServer deflating(std::move(options));
  RawPeer peer(deflating.server->port());
  const auto socket = Accept(&deflating, &peer, "Sec-WebSocket-Extensions: permessage-deflate\r\n");
  EXPECT_THAT(head, HasSubstr("permessage-deflate"));
  Collect(socket.get());
  Watch(socket.get(), &ended);
  socket->Send(std::string(10'000, 'a') + "Q");
  const std::string got = peer.ReadUntil("Q", std::chrono::milliseconds(300));
  EXPECT_GT(got.size(), 10u);
  EXPECT_LT(got.size(), 200u);
  // A bomb: 64 KiB of one letter in each of 40 equal blocks of 84 bytes, over the limit of 1 MiB.
  const std::string block =
      std::string("\xec\xc1\x81\0\0\0\0\x80\x20\xd6\xfd\x25\x16\xa9\x0a", 15) +
      std::string(63, '\0') + std::string("\x6a\0\0\0\xff\xff", 6);
  std::string bomb;
  for (int i = 0; i < 40; ++i) bomb += block;
  peer.Send(Frame(0xc1, bomb));
  ASSERT_TRUE(ended.Wait());
  EXPECT_EQ(ended.code, 1009);
  EXPECT_TRUE(messages.empty());
  RawPeer other(deflating.server->port());
  other.Send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(StatusOf(other.ReadUntil("GET /x ")), "200");
}

}  // namespace
}  // namespace shoal::net
