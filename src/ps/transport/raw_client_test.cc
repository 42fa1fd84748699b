// Peers that die in the middle of a frame, over sockets and over shared memory, on both sides; and
// what happens where there is no memory to share.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "ps/testing/test_cluster.h"
#include "ps/testing/test_raw_client.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/socket.h"

namespace shoal::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RawPeers : public ::testing::TestWithParam<TransportKind> {
 protected:
  bool local() const { return GetParam() == TransportKind::kShared; }
};

TEST_P(RawPeers, AClientThatDiesInsideAFrameHasPushedNothing) {
  ClusterOptions options;
  options.transport = GetParam();
  options.servers = 1;
  options.workers = 1;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  // More than goes through a ring in one piece, so that it is gathered.
  for (const uint32_t dim : {100u, 50'000u}) {
    const auto table = client->CreateTable(DenseSpec(std::to_string(dim), 10, dim));
    ASSERT_OK(table);
    const std::string frame = PushOfOnes(*table);
    uint64_t session = dim;
    for (const size_t cut : {size_t{0}, size_t{13}, sizeof(FrameHeader), frame.size() / 2,
                             frame.size() - 1, frame.size()}) {
      RawEnd dying = Join(cluster.server(0).address(), local(), ++session);
      if (local()) {
        const SharedRings rings = SharedRings::Open(std::move(dying.memory)).value();
        RingWriter writer(rings, SharedRings::kToServer);
        ASSERT_GE(writer.Room(cut), cut);
        std::memcpy(writer.At(), frame.data(), cut);
        writer.Advance(cut);
        writer.Publish();
        WakeOtherEnd(dying.fd.get());
      } else {
        ASSERT_EQ(SendSome(dying.fd.get(), frame.data(), cut), static_cast<long>(cut));
      }
      dying.fd.Reset();
      const uint64_t expected = cut == frame.size() ? 1 : 0;
      std::vector<float> row(dim);
      const std::vector<Key> keys = {0};
      EXPECT_TRUE(Eventually([&] {
        const auto pull = client->Pull(*table, keys, Rows(row.data(), dim));
        return pull.ok() && client->Wait(*pull).ok() && row[dim - 1] == float(expected);
      })) << cut;
      EXPECT_EQ(row[0], static_cast<float>(expected)) << cut;
    }
  }
}

// A server by hand: proves the token, then answers the first request with half a frame and dies.
void AnswerHalf(int listener, bool local, size_t cut) {
  ASSERT_TRUE(WaitSocket(listener, POLLIN, RealClock::Get()->Now() + seconds(10)).ok());
  RawEnd end;
  end.fd.Reset(::accept(listener, nullptr, nullptr));
  Nonces nonces;
  nonces.server = NewNonce();
  end.Send(FrameType::kChallenge, EncodeChallenge(nonces.server));
  FrameHeader head;
  Hello hello;
  ASSERT_TRUE(DecodeProof(end.Read(&head), Cluster::kToken, &nonces, &hello).ok());
  Welcome welcome;
  welcome.instance = 1;
  welcome.servers = 1;
  welcome.shards = 64;
  const std::string body = EncodeWelcome(Cluster::kToken, nonces, welcome);
  FrameHeader reply;
  reply.type = FrameType::kReply;
  reply.id = 1;  // to CreateTable
  std::string answer;
  AppendControlFrame(reply, std::string(300, 'x'), &answer);
  if (!local) {
    end.Send(FrameType::kWelcome, body);
    end.Read(&head);
    SendSome(end.fd.get(), answer.data(), cut);
    return;
  }
  FrameHeader hand;
  hand.type = FrameType::kWelcome;
  std::string frame;
  AppendControlFrame(hand, body, &frame);
  const SharedRings rings = SharedRings::Create(kMinRingBytes).value();
  ASSERT_TRUE(SendWithDescriptor(end.fd.get(), frame, rings.fd()).ok());
  RingReader reader(rings, SharedRings::kToServer);
  ASSERT_TRUE(Eventually([&] { return reader.CheckForData(); }));
  RingWriter writer(rings, SharedRings::kToClient);
  std::memcpy(writer.At(), answer.data(), cut);
  writer.Advance(cut);
  writer.Publish();
  WakeOtherEnd(end.fd.get());
}

TEST_P(RawPeers, AServerThatDiesInsideAFrameIsNamedWhenItStaysAway) {
  for (const size_t cut : {size_t{0}, size_t{40}, size_t{64}, size_t{200}}) {
    uint16_t port = 0;
    UniqueFd tcp = ListenTcp("127.0.0.1", 0, &port).value(), beside;
    if (local()) beside = ListenLocal(tcp.get()).value();
    FixedMembers members;
    members.Set(0, "127.0.0.1:" + std::to_string(port));
    std::thread server([&] {
      AnswerHalf(local() ? beside.get() : tcp.get(), local(), cut);
      tcp.Reset();
      beside.Reset();
    });
    ClientOptions options;
    options.token = Cluster::kToken;
    options.reconnect_timeout = milliseconds(100);
    options.shared_memory = local();
    auto client = Client::Connect(std::move(options), &members);
    ASSERT_OK(client);
    const auto table = (*client)->CreateTable(DenseSpec("t", 10, 10));
    EXPECT_EQ(table.status().code(), Code::kUnavailable) << table.status().ToString();
    EXPECT_NE(table.status().message().find("server 0"), std::string::npos);
    server.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Doors, RawPeers,
                         ::testing::Values(TransportKind::kTcp, TransportKind::kShared),
                         [](const auto& param_info) {
                           return param_info.param == TransportKind::kShared ? "Shared" : "Tcp";
                         });

bool SharesMemory() {
  std::ifstream maps("/proc/self/maps");
  const std::string all((std::istreambuf_iterator<char>(maps)), {});
  return all.find("shoal-ps") != std::string::npos;
}

void PushAndPull(Client* client, const std::string& name) {
  const auto table = client->CreateTable(DenseSpec(name, 100, 2000));
  ASSERT_OK(table);
  std::vector<Key> keys(100);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const std::vector<float> ones(keys.size() * 2000, 1.0f);
  std::vector<float> out(ones.size());
  const auto both =
      client->PushPull(*table, keys, ConstRows(ones.data(), 2000), Rows(out.data(), 2000));
  ASSERT_OK(both);
  ASSERT_OK(client->Wait(*both));
  EXPECT_TRUE(out == ones);
}

TEST(RawPeersFallback, WithoutMemoryToShareFramesGoOverTheSocket) {
  ClusterOptions options;
  options.transport = TransportKind::kShared;
  options.servers = 1;
  options.workers = 1;
  Cluster cluster(options);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1u << 20;  // less than two rings
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto client = cluster.Connect(0);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old);
  ASSERT_NE(client, nullptr);
  EXPECT_FALSE(SharesMemory());
  PushAndPull(client.get(), "socket");
  client.reset();
  client = cluster.Connect(0);
  EXPECT_TRUE(SharesMemory());
  PushAndPull(client.get(), "memory");
}

// The kernel drops it then, and the server would write into memory that the client does not have.
TEST(RawPeersFallback, ADescriptorForWhichThereIsNoNumberIsAnError) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd from(ends[0]), to(ends[1]);
  ASSERT_OK(SendWithDescriptor(from.get(), "welcome", from.get()));
  ASSERT_OK(SendWithDescriptor(from.get(), "again", from.get()));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  char bytes[100];
  UniqueFd descriptor;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  errno = 0;
  const long got = ReceiveWithDescriptor(to.get(), bytes, sizeof bytes, &descriptor);
  const int error = errno;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(got, -1);
  EXPECT_EQ(error, EMFILE);
  EXPECT_EQ(ReceiveWithDescriptor(to.get(), bytes, sizeof bytes, &descriptor), 5);
  EXPECT_TRUE(descriptor.valid());
}

TEST(RawPeersFallback, AServerWithoutADoorForItsHostIsReachedOverTcp) {
  ClusterOptions options;
  options.transport = TransportKind::kTcp;
  options.servers = 1;
  options.workers = 1;
  Cluster cluster(options);
  auto wanting = cluster.ClientOptionsOf(0);
  wanting.shared_memory = true;
  auto client = Client::Connect(std::move(wanting), &cluster.members);
  ASSERT_OK(client);
  EXPECT_FALSE(SharesMemory());
  PushAndPull(client->get(), "tcp");
}

TEST(RawPeersFallback, RingsOfAnImpossibleSizeAreRefusedAtTheStart) {
  for (const size_t bytes : {size_t{0}, size_t{300'000}, kMinRingBytes / 2, kMaxRingBytes * 2}) {
    ServerOptions options;
    options.token = Cluster::kToken;
    options.ring_bytes = bytes;
    const auto server = Server::Start(std::move(options));
    EXPECT_EQ(server.status().code(), Code::kInvalidArgument) << bytes;
    EXPECT_NE(server.status().message().find("ring_bytes"), std::string::npos);
  }
}

}  // namespace
}  // namespace shoal::ps
