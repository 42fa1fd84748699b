// What the network and strangers do: connections that break under way, garbage, slow readers, idle
// and lost workers.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "base/bytes.h"
#include "ps/testing/test_cluster.h"
#include "ps/testing/test_proxy.h"
#include "ps/transport/local_socket.h"
#include "ps/transport/shared_ring.h"
#include "ps/transport/socket.h"
#include "ps/wire/handshake.h"

namespace shoal::ps {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(PsConnection, BrokenOnesNeverLoseOrRepeatAPush) {
  for (const int threads : {1, 2}) {
    ClusterOptions options;
    options.servers = 1;
    options.workers = 1;
    options.threads = threads;
    Cluster cluster(options);
    TestProxy proxy(cluster.server(0).address());
    cluster.members.Set(0, proxy.address());
    auto client = cluster.Connect(0);
    constexpr size_t kKeys = 700, kDim = 50;
    const auto table = client->CreateTable(DenseSpec("t", kKeys, kDim));
    ASSERT_OK(table);
    std::vector<Key> keys(kKeys);
    for (size_t i = 0; i < kKeys; ++i) keys[i] = i;
    const std::vector<float> ones(kKeys * kDim, 1.0f);
    std::vector<float> out(kKeys * kDim);
    int cuts = 0;
    for (int round = 1; round <= 150; ++round) {
      if (round % 5 == 0 && !proxy.cutting()) {
        proxy.Cut();
        ++cuts;
      }
      const auto push = client->Push(*table, keys, ConstRows(ones.data(), kDim));
      const auto both =
          client->PushPull(*table, keys, ConstRows(ones.data(), kDim), Rows(out.data(), kDim));
      ASSERT_OK(push);
      ASSERT_OK(both);
      ASSERT_OK(client->Wait(*push));
      ASSERT_OK(client->Wait(*both));
      for (const float value : out) ASSERT_EQ(value, 2.0f * static_cast<float>(round));
    }
    EXPECT_GT(cuts, 10);
    EXPECT_EQ(client->server_restarts(), 0);
    EXPECT_EQ(cluster.server(0).counters().rows_pushed, 150 * 2 * kKeys);
  }
}

TEST(PsConnection, AClientGoesToTheAddressThatMembersNames) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 1;
  Cluster cluster(options);
  // The same server by two ways; over the first nothing comes through any more.
  TestProxy old_way(cluster.server(0).address()), new_way(cluster.server(0).address());
  cluster.members.Set(0, old_way.address());
  auto client = cluster.Connect(0);
  ASSERT_OK(client->CreateTable(DenseSpec("t", 10, 1)));
  EXPECT_EQ(new_way.accepted(), 0);
  old_way.Stall();
  cluster.members.Set(0, new_way.address());
  EXPECT_TRUE(Eventually([&] { return new_way.accepted() > 0; }));
  ASSERT_OK(client->Barrier("b"));
  EXPECT_EQ(client->server_restarts(), 0);
}

TEST(PsConnection, ABarrierThatTimedOutIsEnteredAnew) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 2;
  Cluster cluster(options);
  auto first = cluster.Connect(0), second = cluster.Connect(1);
  const Status late = first->Barrier("b", milliseconds(50));
  EXPECT_EQ(late.code(), Code::kDeadlineExceeded);
  EXPECT_NE(late.message().find("worker 1 has not entered"), std::string::npos) << late.message();
  const Status alone = second->Barrier("b", milliseconds(50));
  EXPECT_EQ(alone.code(), Code::kDeadlineExceeded);
  EXPECT_NE(alone.message().find("worker 0 has not entered"), std::string::npos) << alone.message();
  std::thread other([&] { ASSERT_OK(second->Barrier("b", seconds(20))); });
  ASSERT_OK(first->Barrier("b", seconds(20)));
  other.join();
}

TEST(PsConnection, AProgramThatIsInterruptedDoesNotWaitOn) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 2;
  Cluster cluster(options);
  std::atomic<bool> interrupted{false};
  auto client_options = cluster.ClientOptionsOf(0, Consistency::Bsp());
  client_options.interrupted = [&] { return interrupted.load(); };
  auto client = Client::Connect(client_options, &cluster.members);
  ASSERT_OK(client);
  interrupted = true;
  EXPECT_EQ((*client)->Barrier("b", Duration::max()).code(), Code::kCancelled);
  EXPECT_EQ((*client)->Clock(1, seconds(600)).code(), Code::kCancelled);
  FixedMembers nobody;
  nobody.Set(0, "127.0.0.1:1");
  EXPECT_FALSE(Client::Connect(client_options, &nobody).ok());
  interrupted = false;
  // It has not stayed in the barrier: the other one waits for it.
  auto other = cluster.Connect(1);
  EXPECT_EQ(other->Barrier("b", milliseconds(50)).code(), Code::kDeadlineExceeded);
}

// Its process lives on, and so do its connections: over a new one a server must not count it again.
TEST(PsConnection, AWorkerThatLeftIsNotWaitedForAfterItConnectedAgain) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 2;
  Cluster cluster(options);
  TestProxy proxy(cluster.server(0).address());
  cluster.members.Set(0, proxy.address());
  auto stays = cluster.Connect(0, Consistency::Bsp());
  auto leaves = cluster.Connect(1, Consistency::Bsp());
  ASSERT_OK(leaves->Leave());
  ASSERT_OK(stays->Barrier("before", seconds(20)));
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    proxy.Cut();
    if (restart) {
      cluster.KillServer(0);
      cluster.StartServer(0);
    }
    ASSERT_OK(leaves->PutBlob("b", "over the new connection"));
    ASSERT_OK(stays->Barrier("after", seconds(20)));
    ASSERT_OK(stays->Clock(restart ? 2 : 1, seconds(20)));
  }
}

TEST(PsConnection, BarriersClocksAndBlobsSurviveBrokenOnes) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 2;
  Cluster cluster(options);
  TestProxy proxy(cluster.server(0).address());
  cluster.members.Set(0, proxy.address());
  std::vector<std::thread> workers;
  for (int w = 0; w < 2; ++w) {
    workers.emplace_back([&, w] {
      auto client = cluster.Connect(w, Consistency::Bsp());
      const std::string bytes((3 << 20) + static_cast<size_t>(w), static_cast<char>('a' + w));
      for (uint64_t round = 1; round <= 15; ++round) {
        if (w == 0) proxy.Cut();
        ASSERT_OK(client->Barrier("b"));
        ASSERT_OK(client->PutBlob("blob-" + std::to_string(w), bytes));
        ASSERT_OK(client->Clock(round));
        const auto other = client->GetBlob("blob-" + std::to_string(1 - w));
        ASSERT_OK(other);
        ASSERT_EQ(other->size(), size_t{3 << 20} + static_cast<size_t>(1 - w));
      }
    });
  }
  for (auto& worker : workers) worker.join();
}

// A stranger's socket: says `bytes`, then waits for the server to close. False if it did not.
bool ClosedAfter(const std::string& address, std::string_view bytes, bool half_close) {
  auto fd = ConnectTcp(address, seconds(5));
  if (!fd.ok()) return false;
  ::send(fd->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (half_close) ::shutdown(fd->get(), SHUT_WR);
  char sink[4096];
  const TimePoint deadline = RealClock::Get()->Now() + seconds(15);
  while (WaitSocket(fd->get(), POLLIN, deadline).ok()) {
    const long got = ReceiveSome(fd->get(), sink, sizeof sink);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
  }
  return false;
}

TEST(PsConnection, GarbageClosesItselfAndHarmsNobody) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 1;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  const auto table = client->CreateTable(DenseSpec("t", 10, 4));
  ASSERT_OK(table);
  std::mt19937 random(7);
  const std::string address = cluster.server(0).address();
  std::string frame;
  FrameHeader head;
  head.type = FrameType::kProof;
  AppendControlFrame(head, std::string(200, 'x'), &frame);
  std::string too_long = frame;
  auto* oversized = reinterpret_cast<FrameHeader*>(too_long.data());
  oversized->payload = oversized->body = 1u << 31;
  SealHeader(oversized);
  std::string noise(100'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  const std::vector<std::string> strangers = {
      "GET / HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(64, ' '),
      noise,
      frame,
      too_long,
      frame.substr(0, 100),
      frame.substr(0, 10),
      ""};
  for (const std::string& bytes : strangers) EXPECT_TRUE(ClosedAfter(address, bytes, true));
  // Who never says a word is closed after a while.
  EXPECT_TRUE(ClosedAfter(address, "", false));
  EXPECT_GE(cluster.server(0).counters().refused_connections, 5u);
  const Key key = 3;
  const float row[4] = {1, 1, 1, 1};
  const auto ticket = client->Push(*table, {&key, 1}, ConstRows(row, 4));
  ASSERT_OK(ticket);
  ASSERT_OK(client->Wait(*ticket));
}

// A client that proves the token and then misbehaves.
class RawClient {
 public:
  RawClient(const std::string& address, const std::string& token, int worker) {
    fd_ = ConnectTcp(address, seconds(5)).value();
    Nonces nonces;
    nonces.client = NewNonce();
    FrameHeader head;
    const std::string challenge = ReadFrame(&head);
    EXPECT_TRUE(DecodeChallenge(challenge, &nonces.server).ok());
    Hello hello;
    hello.client = worker;
    hello.session = 4711;
    Send(FrameType::kProof, 0, EncodeProof(token, nonces, hello));
    ReadFrame(&head);
    EXPECT_EQ(head.type, FrameType::kWelcome);
  }
  void Send(FrameType type, uint64_t id, std::string_view body) {
    FrameHeader head;
    head.type = type;
    head.id = id;
    std::string bytes;
    AppendControlFrame(head, body, &bytes);
    SendRaw(bytes);
  }
  // False when the server takes no more for a moment.
  bool SendRaw(std::string_view bytes) {
    while (!bytes.empty()) {
      const long sent = SendSome(fd_.get(), bytes.data(), bytes.size());
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
      if (sent > 0) continue;
      const auto until = RealClock::Get()->Now() + milliseconds(300);
      if (errno != EAGAIN || !WaitSocket(fd_.get(), POLLOUT, until).ok()) return false;
    }
    return true;
  }
  std::string ReadFrame(FrameHeader* head) {
    char bytes[sizeof *head];
    if (!ReadFull(bytes, sizeof bytes)) return "";
    EXPECT_TRUE(ReadHeader({bytes, sizeof bytes}, kMaxPayload, head).ok());
    std::string payload(head->payload, '\0');
    ReadFull(payload.data(), payload.size());
    return payload.substr(0, head->body);
  }
  bool ReadFull(char* to, size_t size) {
    while (size > 0) {
      if (!WaitSocket(fd_.get(), POLLIN, RealClock::Get()->Now() + seconds(10)).ok()) return false;
      const long got = ReceiveSome(fd_.get(), to, size);
      if (got <= 0) return false;
      to += got;
      size -= static_cast<size_t>(got);
    }
    return true;
  }

 private:
  UniqueFd fd_;
};

TEST(PsConnection, ProvenClientsThatBreakTheRulesAreClosed) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 1;
  Cluster cluster(options);
  const std::string address = cluster.server(0).address();
  FrameHeader gap;
  gap.type = FrameType::kMarker;
  gap.id = 99;
  std::string bad;
  AppendControlFrame(gap, "", &bad);
  std::string corrupt;
  AppendControlFrame(gap, "12345678", &corrupt);
  corrupt.back() ^= 1;
  std::string unasked;
  gap.type = FrameType::kRefused;
  AppendControlFrame(gap, "", &unasked);
  for (const std::string& bytes : {bad, corrupt, unasked}) {
    RawClient client(address, Cluster::kToken, 5);
    client.SendRaw(bytes);
    char byte = 0;
    EXPECT_FALSE(client.ReadFull(&byte, 1));
  }
  // Control requests that cannot be read are answered with an error; the connection lives.
  RawClient client(address, Cluster::kToken, 6);
  for (const FrameType type :
       {FrameType::kCreateTable, FrameType::kPutBlob, FrameType::kGetBlob, FrameType::kClock,
        FrameType::kCheckpointBegin, FrameType::kCheckpointCommit, FrameType::kCheckpointStart,
        FrameType::kCheckpointWrite}) {
    client.Send(type, 3, "\x7f");
    FrameHeader head;
    const std::string body = client.ReadFrame(&head);
    EXPECT_EQ(head.type, FrameType::kError) << static_cast<int>(type);
    EXPECT_FALSE(DecodeError(body).ok());
  }
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// A pull of all 1000 rows of 4000 bytes each: 4 MB of answer.
struct BigPull {
  explicit BigPull(uint32_t table) {
    head.type = FrameType::kPull;
    head.table = table;
    head.rows = 1000;
    head.dim = 1000;
    head.key_bytes = 4;
    for (uint32_t key = 0; key < 1000; ++key) ByteWriter(&keys).Put(key);
    head.payload = static_cast<uint32_t>(keys.size());
    head.payload_crc = Crc32c(keys.data(), keys.size());
  }
  std::string Next() {
    ++head.id;
    SealHeader(&head);
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + keys;
  }
  FrameHeader head;
  std::string keys;
};

// Asks for 4 MB again and again and reads nothing, until the server takes no more or has been asked
// for 80 GB.
template <typename Slow>
void AskWithoutReading(Cluster* cluster, Client* other, const TableRef& table, Slow* slow) {
  std::vector<float> rows(1000 * 1000);
  ASSERT_OK(other->PullRange(table, 0, 1000, Rows(rows.data(), 1000)));  // memory is as it will be
  const uint64_t pulled = cluster->server(0).counters().rows_pulled;
  const uint64_t before = ResidentBytes();
  BigPull pull(table.id);
  bool taken = true;
  for (int asked = 0; taken && asked < 20'000; ++asked) taken = slow->SendRaw(pull.Next());
  EXPECT_FALSE(taken);
  EXPECT_LT(cluster->server(0).counters().rows_pulled - pulled, 1000u * 40);
  const ServerMetrics metrics = cluster->server(0).metrics();
  EXPECT_LE(metrics.longest_queue_bytes, (8u << 20) + (5u << 20));
  // What is queued, and what the requests lie in; nothing that grows with them.
  if (!kSanitized) {
    EXPECT_LT(ResidentBytes() - std::min(before, ResidentBytes()), 64u << 20);
  }
  // Others are served meanwhile.
  ASSERT_OK(other->PullRange(table, 0, 1000, Rows(rows.data(), 1000)));
}

TEST(PsConnection, WhoDoesNotReadIsNotListenedTo) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 1;
  Cluster cluster(options);
  auto other = cluster.Connect(0);
  const auto table = other->CreateTable(DenseSpec("t", 1000, 1000));
  ASSERT_OK(table);
  RawClient slow(cluster.server(0).address(), Cluster::kToken, 1);
  AskWithoutReading(&cluster, other.get(), *table, &slow);
}

// The same over shared memory.
class RawRings {
 public:
  RawRings(const std::string& address, int worker) {
    fd_ = ConnectLocal(address).value();
    Nonces nonces;
    nonces.client = NewNonce();
    EXPECT_TRUE(DecodeChallenge(ReadFrame(), &nonces.server).ok());
    Hello hello;
    hello.client = worker;
    hello.session = 4711;
    FrameHeader head;
    head.type = FrameType::kProof;
    std::string bytes;
    AppendControlFrame(head, EncodeProof(Cluster::kToken, nonces, hello), &bytes);
    EXPECT_EQ(SendSome(fd_.get(), bytes.data(), bytes.size()), static_cast<long>(bytes.size()));
    Welcome welcome;
    EXPECT_TRUE(DecodeWelcome(ReadFrame(), Cluster::kToken, nonces, &welcome).ok());
    memory_.emplace(SharedRings::Open(std::move(handed_)).value());
    writer_.emplace(*memory_, SharedRings::kToServer);
  }
  // False when the server takes no more for a moment.
  bool SendRaw(std::string_view bytes) {
    const TimePoint until = RealClock::Get()->Now() + milliseconds(300);
    while (writer_->Room(bytes.size()) < bytes.size()) {
      if (RealClock::Get()->Now() > until) return false;
      std::this_thread::yield();
    }
    std::copy(bytes.begin(), bytes.end(), writer_->At());
    writer_->Advance(bytes.size());
    if (writer_->Publish()) WakeOtherEnd(fd_.get());
    return true;
  }

 private:
  std::string ReadFrame() {
    FrameHeader head;
    std::string bytes;
    const TimePoint until = RealClock::Get()->Now() + seconds(10);
    while (bytes.size() < sizeof head || (std::memcpy(&head, bytes.data(), sizeof head),
                                          bytes.size() < sizeof head + head.payload)) {
      char some[4096];
      if (!WaitSocket(fd_.get(), POLLIN, until).ok()) return "";
      const size_t want = bytes.size() < sizeof head ? sizeof head - bytes.size()
                                                     : sizeof head + head.payload - bytes.size();
      const long got =
          ReceiveWithDescriptor(fd_.get(), some, std::min(want, sizeof some), &handed_);
      if (got <= 0) return "";
      bytes.append(some, static_cast<size_t>(got));
    }
    return bytes.substr(sizeof head, head.body);
  }

  UniqueFd fd_, handed_;
  std::optional<SharedRings> memory_;
  std::optional<RingWriter> writer_;
};

TEST(PsConnection, WhoDoesNotReadItsRingIsNotListenedTo) {
  ClusterOptions options;
  options.transport = TransportKind::kShared;
  options.servers = 1;
  options.workers = 1;
  Cluster cluster(options);
  auto other = cluster.Connect(0);
  const auto table = other->CreateTable(DenseSpec("t", 1000, 1000));
  ASSERT_OK(table);
  RawRings slow(cluster.server(0).address(), 1);
  AskWithoutReading(&cluster, other.get(), *table, &slow);
}

// A server that is there and says nothing: every wait ends when its caller says, and names it.
TEST(PsConnection, EveryWaitForASilentServerEndsAndNamesIt) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 2;
  options.reconnect = milliseconds(100);
  Cluster cluster(options);
  TestProxy proxy(cluster.server(0).address());
  cluster.members.Set(0, proxy.address());
  auto client = cluster.Connect(0);
  auto admin = cluster.ConnectAdmin();
  const auto table = client->CreateTable(DenseSpec("t", 10, 4));
  ASSERT_OK(table);
  proxy.Stall();
  constexpr auto kShort = milliseconds(20);
  std::vector<float> rows(40);
  const Key key = 1;
  const auto ticket = client->Pull(*table, {&key, 1}, Rows(rows.data(), 4));
  ASSERT_OK(ticket);
  const std::vector<std::pair<const char*, Status>> waits = {
      {"wait", client->Wait(*ticket, kShort)},
      {"flush", client->Flush(kShort)},
      {"table", client->CreateTable(DenseSpec("u", 10, 4), kShort).status()},
      {"clock", client->Clock(1, kShort)},
      {"put", client->PutBlob("b", std::string(9 << 20, 'b'), kShort)},
      {"get", client->GetBlob("b", kShort).status()},
      {"list", client->ListBlobs("", kShort).status()},
      {"delete", client->DeleteBlob("b", kShort)},
      {"progress", client->GetProgress(0, kShort).status()},
      {"leave", client->Leave(kShort)},
      {"dead", admin->ReportDead(1, kShort)},
      // The last one: it gives the server up, lest it write to `rows` later.
      {"range", client->PullRange(*table, 0, 10, Rows(rows.data(), 4), kShort)},
  };
  for (const auto& [what, status] : waits) {
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << what << ": " << status.message();
    EXPECT_NE(status.message().find("server 0"), std::string::npos)
        << what << ": " << status.message();
  }
  EXPECT_EQ(client->Flush().code(), Code::kUnavailable);
  // Neither does a handshake last longer than the caller waits for it.
  auto late = cluster.ClientOptionsOf(1);
  late.connect_timeout = milliseconds(100);
  const TimePoint begin = RealClock::Get()->Now();
  const auto connected = Client::Connect(late, &cluster.members);
  EXPECT_LT(RealClock::Get()->Now() - begin, seconds(2));
  EXPECT_EQ(connected.status().code(), Code::kUnavailable);
  EXPECT_NE(connected.status().message().find("server 0"), std::string::npos)
      << connected.status().message();
}

TEST(PsConnection, WaitsForWorkersNameThem) {
  ClusterOptions options;
  options.servers = 1;
  options.workers = 3;
  Cluster cluster(options);
  auto client = cluster.Connect(0, Consistency::Bsp()), other = cluster.Connect(1);
  ASSERT_OK(other->Clock(5));
  const Status clock = client->Clock(1, milliseconds(30));
  EXPECT_EQ(clock.code(), Code::kDeadlineExceeded);
  EXPECT_NE(clock.message().find("worker 2 has not come so far"), std::string::npos)
      << clock.message();
  EXPECT_EQ(clock.message().find("worker 1 has"), std::string::npos) << clock.message();
  const Status barrier = client->Barrier("b", milliseconds(30));
  EXPECT_EQ(barrier.code(), Code::kDeadlineExceeded);
  EXPECT_NE(barrier.message().find("worker 1 has not entered, worker 2 has not entered"),
            std::string::npos)
      << barrier.message();
}

TEST(PsConnection, AWorkerLostForTheGraceCountsAsDead) {
  FakeClock clock;
  ClusterOptions options;
  options.servers = 1;
  options.workers = 2;
  options.clock = &clock;
  options.grace = seconds(60);
  Cluster cluster(options);
  auto alive = cluster.Connect(0, Consistency::Bsp()), dying = cluster.Connect(1);
  dying.reset();
  EXPECT_FALSE(alive->Clock(1, milliseconds(50)).ok());
  // The loss may be noticed only after the first turns of the hands.
  EXPECT_TRUE(Eventually([&] {
    clock.Advance(seconds(2));
    return alive->Clock(1, milliseconds(20)).ok();
  }));
}

}  // namespace
}  // namespace shoal::ps
