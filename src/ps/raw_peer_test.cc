// Peers that die in the middle of a frame, over sockets and over shared memory, on both sides; and
// what happens where there is no memory to share.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/bytes.h"
#include "ps/handshake.h"
#include "ps/local_socket.h"
#include "ps/shared_ring.h"
#include "ps/socket.h"
#include "ps/test_cluster.h"

namespace shoal::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// One end of a connection, by hand.
struct RawEnd {
  UniqueFd fd;
  UniqueFd memory;

  void Send(FrameType type, std::string_view body) const {
    FrameHeader head;
    head.type = type;
    std::string bytes;
    AppendControlFrame(head, body, &bytes);
    ASSERT_EQ(SendSome(fd.get(), bytes.data(), bytes.size()), static_cast<long>(bytes.size()));
  }
  std::string Read(FrameHeader* head) {
    std::string bytes;
    char some[4096];
    for (;;) {
      if (bytes.size() >= sizeof *head) {
        EXPECT_TRUE(ReadHeader({bytes.data(), sizeof *head}, kMaxPayload, head).ok());
        if (bytes.size() >= sizeof *head + head->payload) break;
      }
      const bool more = WaitSocket(fd.get(), POLLIN, RealClock::Get()->Now() + seconds(10)).ok();
      const long got = more ? ReceiveWithDescriptor(fd.get(), some, sizeof some, &memory) : 0;
      if (got <= 0) return bytes;
      bytes.append(some, static_cast<size_t>(got));
    }
    return bytes.substr(sizeof *head, head->body);
  }
};

// A client that has said hello.
RawEnd Join(const std::string& address, bool local, uint64_t session) {
  RawEnd end;
  auto fd = local ? ConnectLocal(address) : ConnectTcp(address, seconds(5));
  EXPECT_TRUE(fd.ok()) << fd.status().ToString();
  end.fd = std::move(fd).value();
  FrameHeader head;
  Nonces nonces;
  EXPECT_TRUE(DecodeChallenge(end.Read(&head), &nonces.server).ok());
  nonces.client = NewNonce();
  Hello hello;
  hello.client = 3;
  hello.session = session;
  end.Send(FrameType::kProof, EncodeProof(Cluster::kToken, nonces, hello));
  end.Read(&head);
  EXPECT_EQ(head.type, FrameType::kWelcome);
  EXPECT_EQ(end.memory.valid(), local);
  return end;
}

// One row of `dim` ones to key 0, as a frame.
std::string PushOfOnes(const TableRef& table) {
  FrameHeader head;
  head.type = FrameType::kPush;
  head.table = table.id;
  head.id = 1;
  head.rows = 1;
  head.dim = table.dim;
  head.key_bytes = 4;
  std::string payload(8, '\0');
  for (uint32_t i = 0; i < table.dim; ++i) ByteWriter(&payload).Put(1.0f);
  head.payload = static_cast<uint32_t>(payload.size());
  head.payload_crc = Crc32c(payload.data(), payload.size());
  SealHeader(&head);
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) + payload;
}

class RawPeers : public ::testing::TestWithParam<Door> {
 protected:
  bool local() const { return GetParam() == Door::kShared; }
};

TEST_P(RawPeers, AClientThatDiesInsideAFrameHasPushedNothing) {
  ClusterOptions options;
  options.door = GetParam();
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
        Knock(dying.fd.get());
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
  welcome.incarnation = 1;
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
  ASSERT_TRUE(Eventually([&] { return reader.Look(); }));
  RingWriter writer(rings, SharedRings::kToClient);
  std::memcpy(writer.At(), answer.data(), cut);
  writer.Advance(cut);
  writer.Publish();
  Knock(end.fd.get());
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

INSTANTIATE_TEST_SUITE_P(Doors, RawPeers, ::testing::Values(Door::kTcp, Door::kShared),
                         [](const auto& param_info) {
                           return param_info.param == Door::kShared ? "Shared" : "Tcp";
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
  options.door = Door::kShared;
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

TEST(RawPeersFallback, AServerWithoutADoorForItsHostIsReachedOverTcp) {
  ClusterOptions options;
  options.door = Door::kTcp;
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
