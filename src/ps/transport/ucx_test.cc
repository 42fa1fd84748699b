// Connections over UCX: pipes by themselves, and servers and clients over them when something is
// not as it should be. What any transport promises is in client_contract_test.cc.
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "base/bytes.h"
#include "ps/testing/test_cluster.h"
#include "ps/testing/test_raw_client.h"
#include "ps/transport/ucx_library.h"
#include "ps/transport/ucx_pipe.h"

namespace shoal::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Ucx : public ::testing::TestWithParam<TransportKind> {
 protected:
  void SetUp() override {
    if (!CheckUcxAvailable().ok()) GTEST_SKIP() << CheckUcxAvailable().message();
    SelectUcxTransport(GetParam());
  }
  ClusterOptions OneServer() const {
    ClusterOptions options;
    options.transport = GetParam();
    options.servers = options.workers = 1;
    return options;
  }
};

std::unique_ptr<UcxPipe> MakePipe(uint64_t tag) {
  auto pipe = UcxPipe::Make();
  EXPECT_TRUE(pipe.ok()) << pipe.status().ToString();
  EXPECT_TRUE(((*pipe)->Expect(tag)).ok());
  return std::move(pipe).value();
}

// Two ends that are connected.
struct Pipes {
  Pipes() {
    EXPECT_TRUE((a->Connect(b->address())).ok());
    EXPECT_TRUE((b->Connect(a->address())).ok());
  }
  std::unique_ptr<UcxPipe> a = MakePipe(0x1234567890abcdef);
  std::unique_ptr<UcxPipe> b = MakePipe(0x1234567890abcdef);
};

size_t Send(UcxPipe* pipe, std::string_view bytes) {
  const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
  return pipe->Send({&piece, 1});
}

// Adds what has come; true if that was something.
bool Receive(UcxPipe* pipe, std::string* to, size_t most = 1u << 20) {
  std::string some(most, '\0');
  some.resize(pipe->Receive(some.data(), most));
  to->append(some);
  return !some.empty();
}

std::string RandomBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST_P(Ucx, BytesComeInOrderBothWays) {
  Pipes pipes;
  const std::string there = RandomBytes(5'000'001, 1), back = RandomBytes(3'000'000, 2);
  std::string got_there, got_back;
  std::mt19937_64 random(3);
  size_t sent_there = 0, sent_back = 0;
  const bool done = Eventually([&] {
    const auto some = [&](const std::string& all, size_t sent) {
      return std::string_view(all).substr(sent, 1 + random() % 200'000);
    };
    sent_there += Send(pipes.a.get(), some(there, sent_there));
    sent_back += Send(pipes.b.get(), some(back, sent_back));
    while (Receive(pipes.b.get(), &got_there, 1 + random() % 100'000)) {
    }
    while (Receive(pipes.a.get(), &got_back, 1 + random() % 100'000)) {
    }
    return got_there.size() == there.size() && got_back.size() == back.size();
  });
  ASSERT_TRUE(done) << got_there.size() << " " << got_back.size() << " "
                    << pipes.a->status().ToString() << pipes.b->status().ToString();
  EXPECT_TRUE(got_there == there);
  EXPECT_TRUE(got_back == back);
}

TEST_P(Ucx, PiecesGoTogetherAndNoMoreThanHasRoom) {
  Pipes pipes;
  std::string bytes = RandomBytes(100'000, 4);
  const std::array<iovec, 4> pieces = {
      {{bytes.data(), 10}, {bytes.data() + 10, 0}, {bytes.data() + 10, 70'000}, {nullptr, 0}}};
  EXPECT_EQ(pipes.a->Send(pieces), 70'010u);
  std::string got;
  ASSERT_TRUE(Eventually([&] {
    (void)pipes.a->Receive(nullptr, 0);  // the connection is made by both
    Receive(pipes.b.get(), &got);
    return got.size() == 70'010;
  }));
  EXPECT_TRUE(got == bytes.substr(0, 70'010));
  // The other end does not read: only so much is taken.
  size_t taken = 0;
  for (int turn = 0; turn < 1000; ++turn) {
    taken += Send(pipes.a.get(), bytes);
    (void)pipes.a->Receive(nullptr, 0);
    (void)pipes.b->Receive(nullptr, 0);
  }
  EXPECT_LE(taken, (kUcxMessages + 2) * kUcxMessage);
  EXPECT_GE(taken, (kUcxMessages - 2) * kUcxMessage / 2);
  EXPECT_EQ(Send(pipes.a.get(), bytes), 0u);
  // It reads: there is room again.
  ASSERT_TRUE(Eventually([&] {
    while (Receive(pipes.b.get(), &got)) {
    }
    (void)pipes.a->Receive(nullptr, 0);
    return Send(pipes.a.get(), bytes) > 0;
  }));
}

TEST_P(Ucx, WhoSleepsIsWoken) {
  Pipes pipes;
  std::string got;
  for (int turn = 0; turn < 50; ++turn) {
    while (pipes.b->Sleep(false) != UcxSleep::kAsleep) Receive(pipes.b.get(), &got);
    std::atomic<bool> arrived{false};
    std::thread other([&] {
      (void)pipes.a->Receive(nullptr, 0);  // hears how much was read
      EXPECT_EQ(Send(pipes.a.get(), "0123456789"), 10u);
      // The first of all waits for the connection to be made, by both ends.
      while (turn == 0 && !arrived) (void)pipes.a->Receive(nullptr, 0);
    });
    pollfd wait{pipes.b->event_fd(), POLLIN, 0};
    const size_t before = got.size();
    while (got.size() == before) {
      ASSERT_EQ(::poll(&wait, 1, 10'000), 1) << turn;
      while (!Receive(pipes.b.get(), &got) && pipes.b->Sleep(false) != UcxSleep::kAsleep) {
      }
    }
    arrived = true;
    other.join();
  }
}

TEST_P(Ucx, AnAddressIsLookedAtBeforeItIsBelieved) {
  auto a = MakePipe(2), b = MakePipe(2);
  const std::string good = b->address();
  EXPECT_EQ(a->Connect("").code(), Code::kInvalidArgument);
  EXPECT_EQ(a->Connect(good.substr(0, 8)).code(), Code::kInvalidArgument);
  EXPECT_EQ(a->Connect(RandomBytes(kMaxUcxAddress + 1, 1)).code(), Code::kInvalidArgument);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    const Status status = a->Connect(bad);
    ASSERT_FALSE(status.ok()) << i;
    ASSERT_NE(status.message().find("transport ucx"), std::string::npos) << status.message();
    ASSERT_EQ(status.message().find("install the same") != std::string::npos, i < 4) << i;
  }
  for (size_t size = 0; size < good.size(); ++size)
    ASSERT_FALSE(a->Connect(good.substr(0, size)).ok()) << size;
  EXPECT_TRUE((a->Connect(good)).ok());
}

TEST_P(Ucx, AMessageThatNobodyAskedForBreaksThePipe) {
  Pipes pipes;
  auto stranger = MakePipe(99);
  EXPECT_TRUE((stranger->Connect(pipes.b->address())).ok());
  std::string got;
  ASSERT_TRUE(Eventually([&] {
    (void)Send(stranger.get(), "surprise");
    (void)stranger->Receive(nullptr, 0);
    EXPECT_FALSE(Receive(pipes.b.get(), &got));
    return !pipes.b->status().ok();
  }));
  EXPECT_NE(pipes.b->status().message().find("unexpected message"), std::string::npos);
  // It takes what it is given, and gives nothing.
  EXPECT_EQ(Send(pipes.b.get(), "lost"), 4u);
  EXPECT_FALSE(Receive(pipes.b.get(), &got));
}

TEST_P(Ucx, EndsGoInAnyOrderWithBytesUnderWay) {
  for (int turn = 0; turn < 8; ++turn) {
    auto pipes = std::make_unique<Pipes>();
    const std::string bytes = RandomBytes(1u << 20, 5);
    std::string got;
    (void)Send(pipes->a.get(), bytes);
    (void)Send(pipes->b.get(), bytes);
    if (turn % 2 == 0) Receive(pipes->b.get(), &got);
    if (turn % 4 < 2) pipes->a.reset();
    if (turn < 4) {
      (void)Receive(pipes->b.get(), &got);
      (void)Send(pipes->b.get(), bytes);
      (void)Receive(pipes->b.get(), &got);
    }
  }
}

// Messages that the receiver does not take are checked now and then: they neither keep
// a processor busy nor are forgotten.
TEST_P(Ucx, WhatDoesNotGoIsNotForgotten) {
  Pipes pipes;
  const std::string bytes = RandomBytes(4u << 20, 6);
  size_t sent = 0;
  for (int turn = 0; turn < 200; ++turn) {
    sent += Send(pipes.a.get(), std::string_view(bytes).substr(sent));
    (void)pipes.a->Receive(nullptr, 0);
  }
  EXPECT_LE(sent, kUcxMessages * kUcxMessage);
  EXPECT_NE(pipes.a->Sleep(false), UcxSleep::kDataPending);
  std::string got;
  ASSERT_TRUE(Eventually([&] {
    Receive(pipes.b.get(), &got);
    if (pipes.a->Sleep(false) != UcxSleep::kAsleep) (void)pipes.a->Receive(nullptr, 0);
    return got.size() == sent;
  }));
  EXPECT_TRUE(got == bytes.substr(0, sent));
}

TEST_P(Ucx, AServersDeathIsSeenAndItsNextLifeFound) {
  ClusterOptions options = OneServer();
  options.reconnect = milliseconds(300);
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  const auto table = client->CreateTable(DenseSpec("t", 100, 8));
  ASSERT_OK(table);
  const std::vector<Key> keys = {1, 2, 3};
  const std::vector<float> rows(24, 1.0f);
  cluster.KillServer(0);
  const auto lost = client->Push(*table, keys, ConstRows(rows.data(), 8));
  const Status status = lost.ok() ? client->Wait(*lost, seconds(20)) : lost.status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("server 0"), std::string::npos) << status.message();
  client.reset();
  cluster.StartServer(0);
  client = cluster.Connect(0);
  ASSERT_OK(client->CreateTable(DenseSpec("t", 100, 8)));
  const auto kept = client->Push(*table, keys, ConstRows(rows.data(), 8));
  ASSERT_OK(kept);
  EXPECT_TRUE((client->Wait(*kept, seconds(20))).ok());
}

TEST_P(Ucx, AServerThatWasNotToldToRefuses) {
  ClusterOptions options = OneServer();
  options.transport = TransportKind::kTcp;
  Cluster cluster(options);
  auto wanting = cluster.ClientOptionsOf(0);
  wanting.ucx = true;
  const auto client = Client::Connect(std::move(wanting), &cluster.members);
  EXPECT_EQ(client.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(client.status().message().find("over UCX"), std::string::npos)
      << client.status().message();
}

// Who has the token and lies about where it is harms nobody else.
TEST_P(Ucx, AHelloWithGarbageInPlaceOfAnAddressIsRefused) {
  Cluster cluster(OneServer());
  auto client = cluster.Connect(0);
  const auto table = client->CreateTable(DenseSpec("t", 100, 8));
  ASSERT_OK(table);
  for (const size_t size : {size_t{1}, size_t{8}, size_t{9}, size_t{100}, kMaxUcxAddress}) {
    Hello hello = RawHello(size + 1);
    hello.ucx = RandomBytes(size, size);
    Nonces nonces;
    RawEnd end = SayHello(cluster.server(0).address(), false, hello, &nonces);
    FrameHeader head;
    const std::string body = end.Read(&head);
    ASSERT_EQ(head.type, FrameType::kError) << size;
    EXPECT_NE(DecodeError(body).message().find("transport ucx"), std::string::npos);
  }
  // Longer than any hello: the connection ends.
  Hello hello = RawHello(7);
  hello.ucx = RandomBytes(kMaxUcxAddress + 1, 7);
  Nonces nonces;
  RawEnd end = SayHello(cluster.server(0).address(), false, hello, &nonces);
  FrameHeader head;
  EXPECT_FALSE(DecodeError(end.Read(&head)).ok());
  const std::vector<Key> keys = {1, 2, 3};
  const std::vector<float> rows(24, 1.0f);
  const auto ticket = client->Push(*table, keys, ConstRows(rows.data(), 8));
  ASSERT_OK(ticket);
  EXPECT_TRUE((client->Wait(*ticket, seconds(20))).ok());
}

// A client whose socket stays while nothing of it comes over the pipe, and then goes.
TEST_P(Ucx, AClientThatNeverConnectsItsPipeIsLetGoWithItsSocket) {
  Cluster cluster(OneServer());
  auto pipe = UcxPipe::Make();
  ASSERT_OK(pipe);
  Hello hello = RawHello(9);
  hello.ucx = (*pipe)->address();
  Nonces nonces;
  RawEnd end = SayHello(cluster.server(0).address(), false, hello, &nonces);
  FrameHeader head;
  Welcome welcome;
  ASSERT_OK(DecodeWelcome(end.Read(&head), Cluster::kToken, nonces, &welcome));
  EXPECT_FALSE(welcome.ucx.empty());
  end.fd.Reset();
  auto client = cluster.Connect(0);
  EXPECT_TRUE((client->CreateTable(DenseSpec("t", 4, 4))).ok());
}

INSTANTIATE_TEST_SUITE_P(Doors, Ucx,
                         ::testing::Values(TransportKind::kUcxTcp, TransportKind::kUcxShared),
                         [](const auto& param_info) { return NameOfTransport(param_info.param); });

TEST(UcxLibrary, WhatIsMissingIsSaid) {
#if SHOAL_HAS_UCX
  const auto none = OpenUcx("libshoal-has-no-such.so.0");
  EXPECT_EQ(none.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(none.status().message().find("libucx0"), std::string::npos) << none.status().message();
  // A library, but another one.
  const auto other = OpenUcx("libm.so.6");
  EXPECT_EQ(other.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(other.status().message().find("without ucp_get_version"), std::string::npos)
      << other.status().message();
#else
  EXPECT_NE(CheckUcxAvailable().message().find("libucx-dev"), std::string::npos);
  EXPECT_FALSE(UcxPipe::Make().ok());
#endif
}

TEST(UcxTag, IsTheConnectionsOwn) {
  const Nonces one{std::string(64, 'a'), std::string(64, 'b')};
  const Nonces two{std::string(64, 'a'), std::string(64, 'c')};
  EXPECT_EQ(UcxTag("token", one), UcxTag("token", one));
  EXPECT_NE(UcxTag("token", one), UcxTag("token", two));
  EXPECT_NE(UcxTag("token", one), UcxTag("other", one));
}

}  // namespace
}  // namespace shoal::ps
