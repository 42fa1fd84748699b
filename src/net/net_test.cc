// The loop, and WebSocket over real loopback sockets, hostile peers included.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <thread>
#include <vector>

#include "base/file.h"
#include "net/address.h"
#include "net/event_loop.h"
#include "net/websocket.h"

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Address, ParsesAndFormats) {
  const auto plain = ParseHostPort("10.0.0.7:4711");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "10.0.0.7");
  EXPECT_EQ(plain->port, 4711);
  const auto six = ParseHostPort("[::1]:80");
  ASSERT_TRUE(six.ok());
  EXPECT_EQ(FormatHostPort(six->host, six->port), "[::1]:80");
  for (const char* wrong : {"", ":1", "a:", "a:65536", "a:1x", "::1:80", "a", "a:-1", "[]:1"}) {
    EXPECT_FALSE(ParseHostPort(wrong).ok()) << wrong;
  }
}

TEST(Address, AdvertisesLoopbackToALoopbackCoordinator) {
  EXPECT_TRUE(IsLoopback("127.3.2.1"));
  EXPECT_TRUE(IsLoopback("::1"));
  EXPECT_FALSE(IsLoopback("10.0.0.1"));
  EXPECT_EQ(AdvertisedHost("127.0.0.1").value_or(""), "127.0.0.1");
}

TEST(Loop, TimersFireInOrderAndCanBeCancelled) {
  Loop loop;
  std::vector<int> fired;
  loop.After(milliseconds(4), [&] { fired.push_back(2); });
  const Loop::Id cancelled = loop.After(milliseconds(2), [&] { fired.push_back(9); });
  loop.After(milliseconds(1), [&] {
    fired.push_back(1);
    loop.Cancel(cancelled);
  });
  ASSERT_TRUE(loop.RunUntil([&] { return fired.size() == 2; }, seconds(5)));
  EXPECT_EQ(fired, (std::vector<int>{1, 2}));
}

TEST(Loop, PostAndStopFromAnotherThread) {
  Loop loop;
  std::vector<int> ran;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) loop.Post([&ran, i] { ran.push_back(i); });
    loop.Post([&] { loop.Stop(); });
  });
  loop.Run();
  other.join();
  ASSERT_EQ(ran.size(), 100u);
  EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
  loop.Stop();
  loop.Run();  // a Stop before Run: returns at once
}

TEST(Loop, ReadableIsLevelTriggered) {
  Loop loop;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  UniqueFd in(ends[0]), out(ends[1]);
  ASSERT_TRUE(WriteAll(out.get(), "abc").ok());
  std::string got;
  Loop::Id id = 0;
  id = loop.WatchReadable(in.get(),
                          [&] {
                            char c = 0;
                            if (::read(in.get(), &c, 1) == 1) {
                              got += c;
                            } else {
                              loop.Cancel(id);
                              got += '$';
                            }
                          })
           .value();
  ASSERT_TRUE(loop.RunUntil([&] { return got.size() == 3; }, seconds(5)));
  out.Reset();
  ASSERT_TRUE(loop.RunUntil([&] { return got == "abc$"; }, seconds(5)));
}

TEST(Loop, SignalAndChild) {
  Loop loop;
  int signals = 0;
  loop.WatchSignal(SIGUSR1, [&] { ++signals; });
  ::raise(SIGUSR1);
  ASSERT_TRUE(loop.RunUntil([&] { return signals == 1; }, seconds(5)));

  pid_t pid = 0;
  char path[] = "/bin/sh", c[] = "-c", script[] = "exit 3";
  char* argv[] = {path, c, script, nullptr};
  ASSERT_EQ(::posix_spawn(&pid, path, nullptr, nullptr, argv, environ), 0);
  bool ended = false;
  ASSERT_TRUE(loop.WatchChild(pid, [&] { ended = true; }).ok());
  ASSERT_TRUE(loop.RunUntil([&] { return ended; }, seconds(10)));
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, WNOHANG), pid);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

// A server that echoes, and what it saw.
class WebSocketTest : public ::testing::Test {
 protected:
  void Serve(ServerOptions options = {}) {
    auto server = WebSocketServer::Listen(&loop_, std::move(options), [this](auto socket) {
      const size_t i = accepted_.size();
      accepted_.push_back(std::move(socket));
      accepted_[i]->Start(
          [this, i](std::string_view bytes, bool text) {
            if (text) {
              accepted_[i]->SendText(std::string(bytes));
            } else {
              accepted_[i]->SendBinary(std::string(bytes));
            }
          },
          [this, i](const Status& status) {
            ended_.push_back(status);
            accepted_[i].reset();
          });
    });
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
  }

  std::unique_ptr<WebSocket> Dial(ConnectOptions options = {}) {
    options.host = options.host.empty() ? "127.0.0.1" : options.host;
    options.port = server_->port();
    std::unique_ptr<WebSocket> socket;
    bool done = false;
    const auto connecting = Connect(&loop_, options, [&](auto result) {
      done = true;
      if (result.ok()) {
        socket = std::move(result).value();
      } else {
        dial_error_ = result.status();
      }
    });
    EXPECT_TRUE(loop_.RunUntil([&] { return done; }, seconds(10)));
    return socket;
  }

  // A raw TCP client that says `bytes` and reads to the end.
  std::string Raw(const std::string& bytes) {
    std::string got;
    std::thread client([&, port = server_->port()] {
      UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return;
      (void)WriteAll(fd.get(), bytes);
      char block[4096];
      for (ssize_t n; (n = ::read(fd.get(), block, sizeof block)) > 0;) {
        got.append(block, static_cast<size_t>(n));
      }
      loop_.Post([this] { raw_done_ = true; });
    });
    EXPECT_TRUE(loop_.RunUntil([&] { return raw_done_; }, seconds(10)));
    raw_done_ = false;
    client.join();
    return got;
  }

  Loop loop_;
  std::unique_ptr<WebSocketServer> server_;
  std::vector<std::unique_ptr<WebSocket>> accepted_;
  std::vector<Status> ended_;
  Status dial_error_;
  bool raw_done_ = false;
};

TEST_F(WebSocketTest, EchoesTextAndBinaryAndClosesInOrder) {
  Serve();
  const auto socket = Dial();
  ASSERT_NE(socket, nullptr);
  std::vector<std::string> got;
  std::optional<Status> closed;
  socket->Start([&](std::string_view bytes,
                    bool text) { got.push_back((text ? "t:" : "b:") + std::string(bytes)); },
                [&](const Status& status) { closed = status; });
  socket->SendText("hello");
  socket->SendBinary(std::string("\0\xff", 2));
  ASSERT_TRUE(loop_.RunUntil([&] { return got.size() == 2; }, seconds(5)));
  EXPECT_EQ(got[0], "t:hello");
  EXPECT_EQ(got[1], "b:" + std::string("\0\xff", 2));
  socket->SendText("last");
  socket->Close("bye");
  ASSERT_TRUE(loop_.RunUntil([&] { return closed.has_value() && ended_.size() == 1; }, seconds(5)));
  EXPECT_TRUE(closed->ok()) << closed->ToString();
  EXPECT_TRUE(ended_[0].ok()) << ended_[0].ToString();
}

TEST_F(WebSocketTest, ThePeerLearnsTheReasonOfAClose) {
  Serve();
  const auto socket = Dial();
  ASSERT_NE(socket, nullptr);
  bool closed = false;
  socket->Start([](std::string_view, bool) {}, [&](const Status&) { closed = true; });
  ASSERT_TRUE(loop_.RunUntil([&] { return accepted_.size() == 1; }, seconds(5)));
  accepted_[0]->Close("wrong token");
  ASSERT_TRUE(loop_.RunUntil([&] { return closed; }, seconds(5)));
  EXPECT_EQ(socket->close_reason(), "wrong token");
}

TEST_F(WebSocketTest, DestroyingOneSideEndsTheOther) {
  Serve();
  auto socket = Dial();
  ASSERT_NE(socket, nullptr);
  socket->Start([](std::string_view, bool) {}, [](const Status&) { FAIL(); });
  ASSERT_TRUE(loop_.RunUntil([&] { return accepted_.size() == 1; }, seconds(5)));
  socket.reset();
  ASSERT_TRUE(loop_.RunUntil([&] { return ended_.size() == 1; }, seconds(5)));
  EXPECT_EQ(ended_[0].code(), Code::kUnavailable);
}

TEST_F(WebSocketTest, QueuedBytesFallAndDrainIsTold) {
  Serve();
  const auto socket = Dial();
  ASSERT_NE(socket, nullptr);
  size_t back = 0, drained = 0;
  socket->Start([&](std::string_view bytes, bool) { back += bytes.size(); }, [](const Status&) {});
  socket->OnDrain([&] { ++drained; });
  const auto block = std::make_shared<const std::string>(size_t{512} << 10, 'x');
  for (int i = 0; i < 40; ++i) socket->SendShared(block, false);
  EXPECT_EQ(socket->queued_bytes(), 40 * block->size());
  ASSERT_TRUE(loop_.RunUntil([&] { return back == 40 * block->size(); }, seconds(20)));
  EXPECT_EQ(socket->queued_bytes(), 0u);
  EXPECT_GE(drained, 1u);
}

TEST_F(WebSocketTest, AnOversizedMessageClosesOnlyItsConnection) {
  ServerOptions options;
  options.limits.message_bytes = 1000;
  Serve(std::move(options));
  const auto good = Dial();
  const auto bad = Dial();
  ASSERT_TRUE(good != nullptr && bad != nullptr);
  bool echoed = false, closed = false;
  good->Start([&](std::string_view, bool) { echoed = true; }, [](const Status&) {});
  bad->Start([](std::string_view, bool) {}, [&](const Status&) { closed = true; });
  bad->SendBinary(std::string(1001, 'x'));
  ASSERT_TRUE(loop_.RunUntil([&] { return closed && ended_.size() == 1; }, seconds(5)));
  EXPECT_EQ(ended_[0].code(), Code::kResourceExhausted);
  good->SendText("still here");
  EXPECT_TRUE(loop_.RunUntil([&] { return echoed; }, seconds(5)));
}

TEST_F(WebSocketTest, PlainHttpAndGarbageGetAShortAnswer) {
  Serve();
  EXPECT_NE(Raw("GET / HTTP/1.1\r\nHost: x\r\n\r\n").find("426 Upgrade Required"),
            std::string::npos);
  EXPECT_NE(Raw("\x16\x03\x01\x02 this is no HTTP\r\n\r\n").find("400 Bad Request"),
            std::string::npos);
  EXPECT_NE(Raw("GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n").find("400"),
            std::string::npos);
  EXPECT_NE(Raw("GET /elsewhere HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                "Connection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
                .find("404"),
            std::string::npos);
  EXPECT_NE(Dial(), nullptr);  // and the server is as well as before
}

TEST_F(WebSocketTest, ASilentPeerIsClosedAtTheDeadline) {
  ServerOptions options;
  options.limits.handshake = milliseconds(30);
  Serve(std::move(options));
  EXPECT_EQ(Raw(""), "");
  EXPECT_EQ(Raw("GET / HT"), "");
}

TEST_F(WebSocketTest, MoreConnectionsThanTheLimitAreClosed) {
  ServerOptions options;
  options.connections = 2;
  Serve(std::move(options));
  auto first = Dial();
  const auto second = Dial();
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(Dial(), nullptr);
  EXPECT_EQ(dial_error_.code(), Code::kUnavailable) << dial_error_.ToString();
  first.reset();
  ASSERT_TRUE(loop_.RunUntil([&] { return ended_.size() == 1; }, seconds(5)));
  EXPECT_NE(Dial(), nullptr);
}

TEST_F(WebSocketTest, DialErrorsSayWhy) {
  Serve();
  ConnectOptions elsewhere;
  elsewhere.path = "/elsewhere";
  EXPECT_EQ(Dial(elsewhere), nullptr);
  EXPECT_EQ(dial_error_.code(), Code::kFailedPrecondition) << dial_error_.ToString();

  ConnectOptions nobody;
  {
    auto other = WebSocketServer::Listen(&loop_, {}, [](auto) {});
    ASSERT_TRUE(other.ok());
    nobody.port = (*other)->port();
  }
  nobody.host = "127.0.0.1";
  Status error;
  const auto connecting = Connect(&loop_, nobody, [&](auto result) { error = result.status(); });
  ASSERT_TRUE(loop_.RunUntil([&] { return !error.ok(); }, seconds(5)));
  EXPECT_EQ(error.code(), Code::kUnavailable) << error.ToString();
}

TEST_F(WebSocketTest, ATakenPortIsNamed) {
  Serve();
  ServerOptions same;
  same.port = server_->port();
  const auto second = WebSocketServer::Listen(&loop_, std::move(same), [](auto) {});
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.status().message().find(std::to_string(server_->port())), std::string::npos);
}

TEST_F(WebSocketTest, AnInheritedSocketServes) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ServerOptions options;
  options.listener = std::move(fd);
  Serve(std::move(options));
  EXPECT_NE(Dial(), nullptr);
}

}  // namespace
}  // namespace shoal::net
