// What a client may rely on, over every transport and number of server threads: two servers and
// three workers in one process.
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "base/id.h"
#include "ps/testing/test_cluster.h"

namespace shoal::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Param {
  TransportKind transport;
  int threads;
};

class PsContract : public ::testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    if (IsUcx(GetParam().transport) && !CheckUcxAvailable().ok())
      GTEST_SKIP() << CheckUcxAvailable().message();
  }
  ClusterOptions Options() const {
    ClusterOptions options;
    options.transport = GetParam().transport;
    options.threads = GetParam().threads;
    return options;
  }
};

TEST_P(PsContract, PushesOfThreeWorkersAddUp) {
  Cluster cluster(Options());
  constexpr size_t kRows = 1000, kDim = 7, kRounds = 20;
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w) {
    workers.emplace_back([&, w] {
      auto client = cluster.Connect(w);
      const auto table = client->CreateTable(DenseSpec("t", kRows, kDim));
      ASSERT_OK(table);
      std::vector<Key> keys(kRows);
      std::iota(keys.begin(), keys.end(), 0);
      std::vector<float> deltas(kRows * kDim, static_cast<float>(w + 1));
      for (size_t round = 0; round < kRounds; ++round) {
        const auto ticket = client->Push(*table, keys, ConstRows(deltas.data(), kDim));
        ASSERT_OK(ticket);
        ASSERT_OK(client->Wait(*ticket));
      }
      ASSERT_OK(client->Barrier("pushed"));
      std::vector<float> all(kRows * kDim);
      ASSERT_OK(client->PullRange(*table, 0, kRows, Rows(all.data(), kDim)));
      for (const float value : all) ASSERT_EQ(value, kRounds * 6.0f);
      ASSERT_OK(client->Leave());
    });
  }
  for (auto& worker : workers) worker.join();
  const Counters a = cluster.server(0).counters(), b = cluster.server(1).counters();
  EXPECT_EQ(a.rows_pushed + b.rows_pushed, 3 * kRounds * kRows);
  EXPECT_EQ(a.bytes_pulled + b.bytes_pulled, 3 * kRows * kDim * sizeof(float));
  EXPECT_EQ(a.duplicates + b.duplicates, 0u);
}

TEST_P(PsContract, PushPullAnswersWithTheNewRowsWhereverTheyLie) {
  Cluster cluster(Options());
  auto client = cluster.Connect(0);
  auto spec = SparseSpec("s", 5);
  spec.initializer = {InitializerKind::kUniform, -1, 1, 42};
  const auto table = client->CreateTable(spec);
  ASSERT_OK(table);
  const std::vector<Key> keys = {7, UINT64_MAX, 0, 7, 123456789012345ull};
  std::vector<float> before(25), deltas(25, 1.0f);
  auto ticket = client->Pull(*table, keys, Rows(before.data(), 5));
  ASSERT_OK(ticket);
  ASSERT_OK(client->Wait(*ticket));
  EXPECT_EQ(std::vector(before.begin(), before.begin() + 5),
            std::vector(before.begin() + 15, before.begin() + 20));

  // Strided in, scattered out.
  std::vector<float> wide(5 * 9, 1.0f), out(25);
  std::vector<float*> places;
  for (size_t i = 5; i-- > 0;) places.push_back(out.data() + i * 5);
  ticket = client->PushPull(*table, keys, ConstRows(wide.data(), 9), Rows(places.data()));
  ASSERT_OK(ticket);
  ASSERT_OK(client->Wait(*ticket));
  for (size_t i = 0; i < 5; ++i) {
    // Key 7 comes twice; what the first of them shows depends on nothing but the order.
    const float added = i == 3 ? 2 : 1;
    for (size_t d = 0; d < 5; ++d) EXPECT_EQ(places[i][d], before[i * 5 + d] + added) << i;
  }
}

TEST_P(PsContract, RowsOfTheSameSeedAreTheSameWithAnyNumberOfServers) {
  std::vector<std::vector<float>> seen;
  for (const int servers : {1, 2, 3}) {
    auto options = Options();
    options.servers = servers;
    Cluster cluster(options);
    auto client = cluster.Connect(0);
    auto spec = DenseSpec("t", 300, 10);
    spec.initializer = {InitializerKind::kUniform, -0.5f, 0.5f, 7};
    const auto table = client->CreateTable(spec);
    ASSERT_OK(table);
    std::vector<float> rows(3000);
    ASSERT_OK(client->PullRange(*table, 0, 300, Rows(rows.data(), 10)));
    seen.push_back(rows);
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  const auto [low, high] = std::minmax_element(seen[0].begin(), seen[0].end());
  EXPECT_GE(*low, -0.5f);
  EXPECT_LT(*high, 0.5f);
  EXPECT_GT(*high - *low, 0.9f);
}

TEST_P(PsContract, ManyRequestsUnderWayPushBackAndKeepOrder) {
  auto options = Options();
  options.window = 64u << 10;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  constexpr size_t kDim = 100, kKeys = 3000, kRequests = 60;
  const auto table = client->CreateTable(DenseSpec("t", kKeys, kDim));
  ASSERT_OK(table);
  std::vector<Key> keys(kKeys);
  for (size_t i = 0; i < kKeys; ++i) keys[i] = (i * 7919) % kKeys;
  const std::vector<float> ones(kKeys * kDim, 1.0f);
  std::vector<std::vector<float>> out(kRequests, std::vector<float>(kKeys * kDim));
  std::vector<Ticket> tickets;
  std::atomic<int> callbacks{0};
  for (size_t r = 0; r < kRequests; ++r) {
    const auto ticket =
        client->PushPull(*table, keys, ConstRows(ones.data(), kDim), Rows(out[r].data(), kDim));
    ASSERT_OK(ticket);
    tickets.push_back(*ticket);
    ASSERT_OK(client->Push(*table, keys, ConstRows(ones.data(), kDim),
                           [&](const Status& status) { callbacks += status.ok(); }));
  }
  for (size_t r = 0; r < kRequests; ++r) {
    ASSERT_OK(client->Wait(tickets[r]));
    EXPECT_FALSE(client->Wait(tickets[r]).ok());
    for (const float value : out[r]) ASSERT_EQ(value, static_cast<float>(2 * r + 1));
  }
  ASSERT_OK(client->Flush());
  EXPECT_TRUE(Eventually([&] { return callbacks == kRequests; }));
}

TEST_P(PsContract, ThreadsOfOneClientShareIt) {
  Cluster cluster(Options());
  auto client = cluster.Connect(0);
  const auto table = client->CreateTable(SparseSpec("s", 3));
  ASSERT_OK(table);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const std::vector<Key> keys = {1, 2, 3, 4, 5};
      const std::vector<float> ones(15, 1.0f);
      for (int i = 0; i < 200; ++i) {
        const auto ticket = client->Push(*table, keys, ConstRows(ones.data(), 3));
        ASSERT_OK(ticket);
        if (i % 3 == 0) ASSERT_OK(client->Wait(*ticket));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_OK(client->Flush());
  float row[3];
  const Key key = 4;
  const auto ticket = client->Pull(*table, {&key, 1}, Rows(row, 3));
  ASSERT_OK(ticket);
  ASSERT_OK(client->Wait(*ticket));
  EXPECT_EQ(row[1], 800.0f);
}

TEST_P(PsContract, TablesAreFoundAgainAndWrongOnesRefused) {
  Cluster cluster(Options());
  auto a = cluster.Connect(0), b = cluster.Connect(1);
  ASSERT_OK(a->CreateTable(DenseSpec("t", 10, 4)));
  ASSERT_OK(b->CreateTable(DenseSpec("t", 10, 4)));
  EXPECT_EQ(b->CreateTable(DenseSpec("t", 11, 4)).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(b->CreateTable(DenseSpec("u", 10, 0)).status().code(), Code::kInvalidArgument);
  const TableRef unknown{99, 4, KeySpace::kDense, 10};
  const Key key = 3;
  float row[4] = {};
  auto ticket = b->Pull(unknown, {&key, 1}, Rows(row, 4));
  ASSERT_OK(ticket);
  const Status status = b->Wait(*ticket);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("server"), std::string::npos) << status.message();
  const auto table = a->CreateTable(DenseSpec("t", 10, 4));
  const Key beyond = 10;
  EXPECT_EQ(a->Pull(*table, {&beyond, 1}, Rows(row, 4)).status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(a->PullRange(*table, 5, 6, Rows(row, 4)).ok());
  // Refusals leave the stream intact.
  ticket = b->Pull(*table, {&key, 1}, Rows(row, 4));
  ASSERT_OK(ticket);
  ASSERT_OK(b->Wait(*ticket));
}

TEST_P(PsContract, BspHoldsTheFastOnesBack) {
  Cluster cluster(Options());
  std::atomic<int> finished[3] = {0, 0, 0};
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w) {
    workers.emplace_back([&, w] {
      auto client = cluster.Connect(w, Consistency::Bsp());
      const auto table = client->CreateTable(DenseSpec("t", 1, 1));
      ASSERT_OK(table);
      const Key key = 0;
      const float one = 1;
      for (int round = 1; round <= 50; ++round) {
        const auto push = client->Push(*table, {&key, 1}, ConstRows(&one, 1));
        ASSERT_OK(push);
        finished[w] = round;
        ASSERT_OK(client->Clock(static_cast<uint64_t>(round)));
        for (const auto& other : finished) ASSERT_GE(other, round);
        float value = 0;
        const auto pull = client->Pull(*table, {&key, 1}, Rows(&value, 1));
        ASSERT_OK(pull);
        ASSERT_OK(client->Wait(*pull));
        ASSERT_GE(value, 3.0f * static_cast<float>(round));
      }
      ASSERT_OK(client->Leave());
    });
  }
  for (auto& worker : workers) worker.join();
}

TEST_P(PsContract, SspLetsAheadByTheStalenessAndLeaversDoNotCount) {
  Cluster cluster(Options());
  auto fast = cluster.Connect(0, Consistency::Ssp(2));
  auto slow = cluster.Connect(1, Consistency::Ssp(2)), gone = cluster.Connect(2);
  ASSERT_OK(fast->Clock(1));
  ASSERT_OK(fast->Clock(2));
  const Status early = fast->Clock(3, milliseconds(30));
  EXPECT_EQ(early.code(), Code::kDeadlineExceeded);
  EXPECT_NE(early.message().find("server 0"), std::string::npos) << early.message();
  ASSERT_OK(slow->Clock(1));
  EXPECT_FALSE(fast->Clock(3, milliseconds(30)).ok());  // the third has not moved yet
  ASSERT_OK(gone->Leave());
  ASSERT_OK(fast->Clock(3));
  cluster.server(0).ReportDead(1);
  ASSERT_OK(fast->Clock(100));
}

TEST_P(PsContract, BarriersWaitForAllAndMayBeUsedAgain) {
  Cluster cluster(Options());
  std::atomic<int> inside{0};
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w) {
    workers.emplace_back([&, w] {
      auto client = cluster.Connect(w);
      for (int round = 1; round <= 20; ++round) {
        ++inside;
        ASSERT_OK(client->Barrier("again"));
        ASSERT_GE(inside, 3 * round);
      }
    });
  }
  for (auto& worker : workers) worker.join();
  auto alone = cluster.Connect(0);
  EXPECT_EQ(alone->Barrier("lonely", milliseconds(20)).code(), Code::kDeadlineExceeded);
}

TEST_P(PsContract, BlobsOfEverySizeComeBackWhole) {
  Cluster cluster(Options());
  auto a = cluster.Connect(0), b = cluster.Connect(1);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{5} << 20) + 13}) {
    std::string bytes(size, '\0');
    uint64_t state = size + 1;
    for (char& byte : bytes)
      byte = static_cast<char>((state = state * 6364136223846793005u + 1) >> 56);
    const std::string name = "vocab/" + std::to_string(size);
    ASSERT_OK(a->PutBlob(name, bytes));
    const auto back = b->GetBlob(name);
    ASSERT_OK(back);
    EXPECT_TRUE(*back == bytes) << size;
  }
  ASSERT_OK(b->PutBlob("vocab/1", "new"));
  EXPECT_EQ(a->GetBlob("vocab/1").value_or(""), "new");
  ASSERT_OK(b->PutBlob("other", "x"));
  const auto names = a->ListBlobs("vocab/");
  ASSERT_OK(names);
  EXPECT_EQ(names->size(), 4u);
  ASSERT_OK(a->DeleteBlob("vocab/0"));
  EXPECT_EQ(b->GetBlob("vocab/0").status().code(), Code::kNotFound);
  EXPECT_EQ(a->ListBlobs("vocab/")->size(), 3u);
}

TEST_P(PsContract, ProgressIsKeptForANewcomer) {
  Cluster cluster(Options());
  {
    auto client = cluster.Connect(1);
    ASSERT_OK(client->SetProgress("at 17"));
    ASSERT_OK(client->Flush());
    EXPECT_EQ(client->GetProgress(1).value_or(""), "at 17");
  }
  auto other = cluster.Connect(0);
  EXPECT_EQ(other->GetProgress(1).value_or(""), "at 17");
  EXPECT_EQ(other->GetProgress(2).status().code(), Code::kNotFound);
}

TEST_P(PsContract, WrongTokenIsRefused) {
  Cluster cluster(Options());
  auto options = cluster.ClientOptionsOf(0);
  options.token = "not it";
  const auto client = Client::Connect(options, &cluster.members);
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.status().code(), Code::kUnauthenticated) << client.status().message();
  EXPECT_TRUE(Eventually([&] { return cluster.server(0).counters().refused_connections == 1; }));
  EXPECT_NE(cluster.Connect(0), nullptr);
}

TEST_P(PsContract, ANewcomerReplacesTheOldWorker) {
  auto options = Options();
  options.reconnect = milliseconds(200);
  Cluster cluster(options);
  auto old = cluster.Connect(0);
  const auto table = old->CreateTable(DenseSpec("t", 4, 4));
  ASSERT_OK(table);
  auto fresh = cluster.Connect(0);
  ASSERT_OK(fresh->CreateTable(DenseSpec("t", 4, 4)));
  // The old one finds out by its next request.
  EXPECT_TRUE(Eventually([&] {
    const Key key = 1;
    const float row[4] = {};
    const auto ticket = old->Push(*table, {&key, 1}, ConstRows(row, 4));
    return !ticket.ok() || !old->Wait(*ticket, seconds(5)).ok();
  }));
}

std::string NameOf(const ::testing::TestParamInfo<Param>& info) {
  return NameOfTransport(info.param.transport) + std::to_string(info.param.threads);
}

INSTANTIATE_TEST_SUITE_P(
    Doors, PsContract,
    ::testing::Values(Param{TransportKind::kInProcess, 1}, Param{TransportKind::kInProcess, 3},
                      Param{TransportKind::kTcp, 1}, Param{TransportKind::kTcp, 3},
                      Param{TransportKind::kShared, 1}, Param{TransportKind::kShared, 3},
                      Param{TransportKind::kUcxTcp, 1}, Param{TransportKind::kUcxTcp, 3},
                      Param{TransportKind::kUcxShared, 1}, Param{TransportKind::kUcxShared, 3}),
    NameOf);

}  // namespace
}  // namespace shoal::ps
