// Checkpoints: the cut is exact while training goes on, damaged files are refused, restore works
// with any number of servers, and servers that die come back.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/fault_injection.h"
#include "ps/checkpoint/checkpoint_dir.h"
#include "ps/checkpoint/checkpoint_file.h"
#include "ps/testing/test_checkpoint.h"
#include "ps/testing/test_cluster.h"

namespace shoal::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Param {
  TransportKind transport;
  int threads;
  KeySpace space;
  OptimizerKind optimizer;
  Key trained = 5000;  // keys that are pushed to; few: checkpoints hold only what changed
};

class PsCheckpoint : public ::testing::TestWithParam<Param> {
 protected:
  ClusterOptions Options() const {
    ClusterOptions options;
    options.transport = GetParam().transport;
    options.threads = GetParam().threads;
    options.checkpoints = true;
    return options;
  }
  TableSpec Spec() const {
    TableSpec spec =
        GetParam().space == KeySpace::kDense ? DenseSpec("t", kKeys, kDim) : SparseSpec("t", kDim);
    spec.optimizer.kind = GetParam().optimizer;
    return spec;
  }
  static constexpr size_t kKeys = 5000, kDim = 6;
};

// Pushes integers to random keys and tells after each push how many there were.
struct Training {
  uint64_t seed;
  Key keys;
};
void Train(Client* client, const TableRef& table, Training training, const std::atomic<bool>* stop,
           std::atomic<int>* rounds) {
  uint64_t seed = training.seed;
  constexpr size_t kBatch = 50;
  std::vector<Key> keys(kBatch);
  const std::vector<float> ones(kBatch * table.dim, 1.0f);
  uint64_t pushed = 0;
  while (!*stop) {
    for (Key& key : keys) key = (seed = seed * 6364136223846793005u + 1442695040888963407u) >> 33;
    for (Key& key : keys) key %= training.keys;
    Ticket ticket;
    {
      Client::IssueScope scope(*client);
      // Two requests that belong together: a marker must not fall between them.
      const auto first =
          client->Push(table, std::span(keys).first(20), ConstRows(ones.data(), table.dim));
      const auto second = client->Push(table, std::span(keys).subspan(20),
                                       ConstRows(ones.data(), table.dim), [](const Status&) {});
      ASSERT_OK(first);
      ASSERT_OK(second);
      ticket = *first;
      pushed += kBatch;
      ASSERT_OK(client->SetProgress(std::to_string(pushed * table.dim)));
    }
    ASSERT_OK(client->Wait(ticket));
    ASSERT_OK(client->Flush());  // keys are used again
    ++*rounds;
  }
}

TEST_P(PsCheckpoint, EveryCutHoldsExactlyWhatItsProgressSays) {
  Cluster cluster(Options());
  std::atomic<bool> stop{false};
  std::atomic<int> rounds[3] = {0, 0, 0};
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w) {
    workers.emplace_back([&, w] {
      auto client = cluster.Connect(w);
      const auto table = client->CreateTable(Spec());
      ASSERT_OK(table);
      Train(client.get(), *table, {static_cast<uint64_t>(w) + 1, GetParam().trained}, &stop,
            &rounds[w]);
    });
  }
  auto admin = cluster.ConnectAdmin();
  bool chained = false;
  for (int taken = 0; taken < 6; ++taken) {
    for (const auto& done : rounds) {
      const int before = done;
      EXPECT_TRUE(Eventually([&] { return done > before + 10; }));
    }
    const auto info = admin->Checkpoint(seconds(60));
    ASSERT_OK(info);
    EXPECT_EQ(info->workers.size(), 3u);
    const CheckpointSum sum = SumCheckpoint(cluster.checkpoint_dir(), info->id);
    // Each push adds 1 to a value (kAdd), or 1 to AdaGrad's state.
    const bool adagrad = GetParam().optimizer == OptimizerKind::kAdagrad;
    EXPECT_EQ(adagrad ? sum.state : sum.values, sum.progress) << "checkpoint " << info->id;
    EXPECT_GT(sum.progress, 0);
    chained = chained || sum.chained;
  }
  stop = true;
  for (auto& worker : workers) worker.join();
  EXPECT_EQ(chained, GetParam().trained < kKeys);
  if (!chained) {
    EXPECT_EQ(ListCheckpoints(cluster.checkpoint_dir()).value().size(), 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Doors, PsCheckpoint,
    ::testing::Values(
        Param{TransportKind::kInProcess, 1, KeySpace::kDense, OptimizerKind::kAdd},
        Param{TransportKind::kTcp, 1, KeySpace::kDense, OptimizerKind::kAdd},
        Param{TransportKind::kInProcess, 2, KeySpace::kDense, OptimizerKind::kAdd, 60},
        Param{TransportKind::kShared, 1, KeySpace::kDense, OptimizerKind::kAdagrad, 60},
        Param{TransportKind::kTcp, 2, KeySpace::kSparse, OptimizerKind::kAdd},
        Param{TransportKind::kTcp, 1, KeySpace::kSparse, OptimizerKind::kAdagrad},
        Param{TransportKind::kInProcess, 2, KeySpace::kSparse, OptimizerKind::kAdd}));

ClusterOptions WithCheckpoints(TransportKind transport = TransportKind::kTcp) {
  ClusterOptions options;
  options.transport = transport;
  options.workers = 1;
  options.checkpoints = true;
  options.reconnect = seconds(20);
  return options;
}

void PushOnes(Client* client, const TableRef& table, size_t keys, int times = 1) {
  std::vector<Key> all(keys);
  for (size_t i = 0; i < keys; ++i) all[i] = i * (table.key_space == KeySpace::kSparse ? 977 : 1);
  const std::vector<float> ones(keys * table.dim, 1.0f);
  for (int i = 0; i < times; ++i) {
    const auto ticket = client->Push(table, all, ConstRows(ones.data(), table.dim));
    ASSERT_OK(ticket);
    ASSERT_OK(client->Wait(*ticket));
  }
}

float ValueOf(Client* client, const TableRef& table, Key key) {
  std::vector<float> row(table.dim, -1.0f);
  const auto ticket = client->Pull(table, {&key, 1}, Rows(row.data(), table.dim));
  EXPECT_TRUE(ticket.ok() && client->Wait(*ticket).ok());
  return row.back();
}

// The same pushes after the restore give the same rows to the bit as without it: state and count
// of every optimizer came along.
TEST(PsRestore, EveryOptimizerGoesOnWhereItWas) {
  Cluster cluster(WithCheckpoints());
  std::vector<TableSpec> specs;
  for (uint8_t kind = 0; kind < static_cast<uint8_t>(OptimizerKind::kFunction); ++kind) {
    auto spec = kind % 2 == 0 ? DenseSpec(std::to_string(kind), 50, 3)
                              : SparseSpec(std::to_string(kind), 3);
    spec.optimizer.kind = static_cast<OptimizerKind>(kind);
    specs.push_back(spec);
  }
  const auto rows = [&](Client* client) {
    std::vector<float> all;
    for (const TableSpec& spec : specs) {
      const auto table = client->CreateTable(spec);
      EXPECT_TRUE(table.ok());
      PushOnes(client, *table, 50, 3);
      for (Key key = 0; key < 50; ++key) {
        all.push_back(
            ValueOf(client, *table, spec.key_space == KeySpace::kSparse ? key * 977 : key));
      }
    }
    return all;
  };
  std::vector<float> want;
  {
    auto client = cluster.Connect(0);
    rows(client.get());
    ASSERT_OK(client->Flush());
    ASSERT_OK(cluster.ConnectAdmin()->Checkpoint());
    want = rows(client.get());
  }
  cluster.Resize(3);
  for (int i = 0; i < 3; ++i) cluster.StartServer(i);
  auto client = cluster.Connect(0);
  EXPECT_EQ(client->restored_checkpoint(), 0);
  EXPECT_EQ(rows(client.get()), want);
}

TEST(PsRestore, WithAnyNumberOfServersAndTheirBlobs) {
  Cluster cluster(WithCheckpoints());
  auto sparse = SparseSpec("s", 3);
  sparse.initializer = {InitializerKind::kUniform, 0, 1, 3};
  auto adagrad = DenseSpec("a", 100, 2);
  adagrad.optimizer = {OptimizerKind::kAdagrad, 0.5f, 1e-6f};
  float was = 0, untouched = 0, trained = 0;
  {
    auto client = cluster.Connect(0);
    const auto s = client->CreateTable(sparse), a = client->CreateTable(adagrad);
    ASSERT_OK(s);
    PushOnes(client.get(), *s, 500);
    PushOnes(client.get(), *a, 100, 3);
    ASSERT_OK(client->PutBlob("vocab", std::string(3 << 20, 'v')));
    ASSERT_OK(client->SetProgress("half"));
    was = ValueOf(client.get(), *s, 977);
    untouched = ValueOf(client.get(), *s, 5);
    trained = ValueOf(client.get(), *a, 99);
    auto admin = cluster.ConnectAdmin();
    ASSERT_OK(admin->Checkpoint());
    PushOnes(client.get(), *s, 500);  // after the cut
  }
  for (const int servers : {1, 3, 2}) {
    cluster.Resize(servers);
    Cluster* at = &cluster;
    for (int i = 0; i < servers; ++i) at->StartServer(i);
    at->members.Shrink(static_cast<size_t>(servers));
    EXPECT_EQ(at->server(0).restored_checkpoint(), 0);
    auto client = at->Connect(0);
    EXPECT_EQ(client->restored_checkpoint(), 0);
    const auto s = client->CreateTable(sparse), a = client->CreateTable(adagrad);
    ASSERT_OK(s);
    EXPECT_EQ(ValueOf(client.get(), *s, 977), was);
    EXPECT_EQ(ValueOf(client.get(), *s, 5), untouched);
    EXPECT_EQ(ValueOf(client.get(), *a, 99), trained);
    EXPECT_EQ(client->GetBlob("vocab").value_or("").size(), size_t{3} << 20);
    EXPECT_EQ(client->GetProgress(0).value_or(""), "half");
  }
}

TEST(PsRestore, DamagedCheckpointsAreRefusedAndThePreviousIsUsed) {
  Cluster cluster(WithCheckpoints());
  auto client = cluster.Connect(0);
  auto admin = cluster.ConnectAdmin();
  const auto table = client->CreateTable(DenseSpec("t", 2000, 8));
  ASSERT_OK(table);
  PushOnes(client.get(), *table, 2000);
  ASSERT_OK(admin->Checkpoint());
  PushOnes(client.get(), *table, 2000);
  ASSERT_OK(admin->Checkpoint());
  client.reset();
  admin.reset();
  const auto newest = CheckpointPath(cluster.checkpoint_dir(), 1) / CheckpointFileName(1);
  const auto whole = ReadFile(newest, 1 << 24);
  ASSERT_OK(whole);
  const auto damage = [&](std::string bytes, int64_t expected) {
    cluster.Resize(2);
    ASSERT_OK(WriteFileAtomically(newest, bytes));
    cluster.StartServer(0);
    cluster.StartServer(1);
    EXPECT_EQ(cluster.server(0).restored_checkpoint(), expected);
    EXPECT_EQ(cluster.server(1).restored_checkpoint(), expected);
    auto reader = cluster.Connect(0);
    const auto again = reader->CreateTable(DenseSpec("t", 2000, 8));
    ASSERT_OK(again);
    EXPECT_EQ(ValueOf(reader.get(), *again, 1999), static_cast<float>(expected + 1));
  };
  damage(*whole, 1);
  damage(whole->substr(0, whole->size() - 7), 0);
  std::string flipped = *whole;
  flipped[flipped.size() / 2] ^= 1;
  damage(flipped, 0);
  damage("", 0);
  // With none left a server does not start with an empty table as if nothing had been.
  cluster.Resize(2);
  std::filesystem::resize_file(CheckpointPath(cluster.checkpoint_dir(), 0) / CheckpointFileName(0),
                               100);
  const auto server = Server::Start(cluster.OptionsOf(0));
  EXPECT_EQ(server.status().code(), Code::kDataLoss) << server.status().message();
}

TEST(PsRestore, AFullDiskLeavesThePreviousCheckpoint) {
  Cluster cluster(WithCheckpoints());
  auto client = cluster.Connect(0);
  auto admin = cluster.ConnectAdmin();
  const auto table = client->CreateTable(DenseSpec("t", 100, 8));
  ASSERT_OK(table);
  ASSERT_OK(admin->Checkpoint());
  for (const char* fault : {"ps.checkpoint.write=ENOSPC@5", "ps.checkpoint.commit=EIO@1"}) {
    ASSERT_OK(SetFaults(fault));
    EXPECT_FALSE(admin->Checkpoint().ok());
    ASSERT_OK(SetFaults(""));
    EXPECT_EQ(ListCheckpoints(cluster.checkpoint_dir()).value(), std::vector<int64_t>{0});
  }
  PushOnes(client.get(), *table, 100);
  ASSERT_OK(admin->Checkpoint());
  const auto last = admin->Checkpoint();  // nothing changed: it stands on the one before
  ASSERT_OK(last);
  // That one and what it stands on, and the first, which shares no file with them.
  EXPECT_EQ(ListCheckpoints(cluster.checkpoint_dir()).value(),
            (std::vector<int64_t>{0, last->id - 1, last->id}));
}

TEST(PsRestore, AWorkerThatDoesNotAnswerAbortsTheCheckpoint) {
  Cluster cluster(WithCheckpoints(TransportKind::kInProcess));
  auto client = cluster.Connect(0);
  auto admin = cluster.ConnectAdmin();
  const auto table = client->CreateTable(DenseSpec("t", 100, 8));
  ASSERT_OK(table);
  {
    Client::IssueScope open(*client);
    const auto late = admin->Checkpoint(milliseconds(50));
    EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded) << late.status().message();
    EXPECT_NE(late.status().message().find("worker 0 has not sent its marker"), std::string::npos)
        << late.status().message();
  }
  EXPECT_TRUE(ListCheckpoints(cluster.checkpoint_dir()).value().empty());
  // Two at once: the second waits, the first is not disturbed.
  auto other = cluster.ConnectAdmin();
  std::thread first;
  {
    Client::IssueScope open(*client);
    first = std::thread([&] { ASSERT_OK(admin->Checkpoint(seconds(20))); });
    EXPECT_TRUE(
        Eventually([&] { return !ListCheckpoints(cluster.checkpoint_dir()).value().empty(); }));
    EXPECT_EQ(other->Checkpoint(milliseconds(20)).status().code(), Code::kDeadlineExceeded);
  }
  first.join();
  ASSERT_OK(other->Checkpoint());
}

TEST(PsRestore, AWorkerThatDiesAbortsTheCheckpoint) {
  auto options = WithCheckpoints();
  options.workers = 2;
  Cluster cluster(options);
  auto client = cluster.Connect(0), dying = cluster.Connect(1);
  auto admin = cluster.ConnectAdmin();
  Client::IssueScope open(*dying);
  std::thread reporter([&] {
    // Once the checkpoint is under way it cannot end but by this word.
    EXPECT_TRUE(
        Eventually([&] { return !ListCheckpoints(cluster.checkpoint_dir()).value().empty(); }));
    cluster.server(0).ReportDead(1);
  });
  const auto info = admin->Checkpoint(seconds(30));
  reporter.join();
  // The word may have come before the list of markers was made; then worker 1 is not in it.
  if (!info.ok()) {
    EXPECT_EQ(info.status().code(), Code::kAborted) << info.status().message();
  }
  ASSERT_OK(admin->Checkpoint());
}

TEST(PsRestore, AWorkerThatIsStartedAgainDoesNotWaitForTheMarkerOfTheDeadOne) {
  auto options = WithCheckpoints();
  options.workers = 2;
  Cluster cluster(options);
  auto client = cluster.Connect(0), dying = cluster.Connect(1);
  auto admin = cluster.ConnectAdmin();
  std::optional<Client::IssueScope> open(*dying);  // its marker cannot come
  std::thread restarted([&] {
    EXPECT_TRUE(
        Eventually([&] { return !ListCheckpoints(cluster.checkpoint_dir()).value().empty(); }));
    auto again = cluster.Connect(1);
    EXPECT_NE(again, nullptr);
  });
  // Without the newcomer's word this would take all of its time.
  const auto info = admin->Checkpoint(seconds(60));
  restarted.join();
  open.reset();
  // The newcomer may have come before the list of markers was made; then the old one is not in it.
  if (!info.ok()) {
    EXPECT_EQ(info.status().code(), Code::kAborted) << info.status().message();
  }
}

// A checkpoint that began before their requests may lack what they have pushed since; the next one
// answers all of them.
TEST(PsRestore, RequestsDuringACheckpointAreAnsweredByTheNext) {
  Cluster cluster(WithCheckpoints());
  auto client = cluster.Connect(0);
  ASSERT_OK(client->SetProgress("some"));
  auto admin = cluster.ConnectAdmin(), impatient = cluster.ConnectAdmin();
  std::optional<Client::IssueScope> open(*client);  // its marker cannot come
  std::vector<Result<CheckpointInfo>> infos(4, Status(Code::kInternal, "not taken"));
  std::vector<std::thread> threads;
  threads.emplace_back([&] { infos[0] = admin->Checkpoint(seconds(60)); });
  ASSERT_TRUE(Eventually([&] { return cluster.server(0).metrics().checkpoint.under_way; }));
  const auto late = impatient->Checkpoint(milliseconds(100));
  EXPECT_EQ(late.status().code(), Code::kDeadlineExceeded) << late.status().message();
  for (size_t i = 1; i < infos.size(); ++i) {
    threads.emplace_back([&, i] { infos[i] = cluster.ConnectAdmin()->Checkpoint(seconds(60)); });
  }
  ASSERT_TRUE(Eventually(
      [&] { return cluster.server(0).metrics().checkpoint.waiting == infos.size() - 1; }));
  open.reset();
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < infos.size(); ++i) {
    ASSERT_OK(infos[i]);
    EXPECT_EQ(infos[i]->id, i == 0 ? 0 : 1);
    EXPECT_EQ(infos[i]->workers, std::vector<int>{0});
    EXPECT_GT(infos[i]->bytes, 0u);
  }
  ASSERT_OK(impatient->Checkpoint());
}

// Whoever drives it is alive and does nothing: the server ends it by its own clock.
TEST(PsRestore, ACheckpointThatNobodyEndsIsGivenUpByTheServer) {
  FakeClock clock;
  auto options = WithCheckpoints();
  options.clock = &clock;
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  auto admin = cluster.ConnectAdmin(), other = cluster.ConnectAdmin();
  std::optional<Client::IssueScope> open(*client);  // its marker cannot come
  std::thread hands([&] {
    EXPECT_TRUE(Eventually([&] { return cluster.server(0).metrics().checkpoint.under_way; }));
    clock.Advance(std::chrono::minutes(11));
  });
  const auto info = admin->Checkpoint(seconds(60));
  hands.join();
  EXPECT_EQ(info.status().code(), Code::kDeadlineExceeded) << info.status().message();
  EXPECT_NE(info.status().message().find("server 0 gave the checkpoint up after"),
            std::string::npos)
      << info.status().message();
  open.reset();
  ASSERT_OK(other->Checkpoint());
  const ServerMetrics metrics = cluster.server(1).metrics();
  EXPECT_EQ(metrics.checkpoint.written, 1u);
  EXPECT_EQ(metrics.checkpoint.age_seconds, 0);
  EXPECT_GT(metrics.checkpoint.bytes, 0u);
  EXPECT_FALSE(metrics.checkpoint.under_way);
  EXPECT_NE(Describe(metrics).find("checkpoint"), std::string::npos) << Describe(metrics);
}

class ServerDeath : public ::testing::TestWithParam<TransportKind> {};

TEST_P(ServerDeath, ClientsGoOnFromTheCheckpoint) {
  Cluster cluster(WithCheckpoints(GetParam()));
  std::atomic<int64_t> told{-2};
  auto client_options = cluster.ClientOptionsOf(0);
  client_options.on_server_restart = [&](int, int64_t checkpoint) { told = checkpoint; };
  auto connected = Client::Connect(client_options, &cluster.members);
  ASSERT_OK(connected);
  auto client = std::move(connected).value();
  const auto table = client->CreateTable(DenseSpec("t", 1000, 4));
  ASSERT_OK(table);
  PushOnes(client.get(), *table, 1000);
  {
    auto admin = cluster.ConnectAdmin();
    ASSERT_OK(admin->Checkpoint());
  }
  PushOnes(client.get(), *table, 1000);                          // lost on the server that dies
  const auto late = client->CreateTable(SparseSpec("late", 2));  // unknown to the checkpoint
  ASSERT_OK(late);

  cluster.KillServer(1);
  std::vector<Key> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const std::vector<float> ones(4000, 1.0f);
  const auto ticket = client->Push(*table, keys, ConstRows(ones.data(), 4));
  ASSERT_OK(ticket);
  const Status waiting = client->Wait(*ticket, milliseconds(50));
  EXPECT_EQ(waiting.code(), Code::kDeadlineExceeded);
  EXPECT_NE(waiting.message().find("server 1"), std::string::npos) << waiting.message();
  cluster.StartServer(1);
  ASSERT_OK(client->Wait(*ticket));
  EXPECT_EQ(client->server_restarts(), 1);
  EXPECT_EQ(told, 0);
  // Dense rows are dealt out in turn over 64 shards, those over the two servers.
  EXPECT_EQ(ValueOf(client.get(), *table, 0), 3);  // server 0 lived
  EXPECT_EQ(ValueOf(client.get(), *table, 1), 2);  // server 1: checkpoint and the resent push
  PushOnes(client.get(), *late, 10);
  EXPECT_EQ(ValueOf(client.get(), *late, 977), 1);
}

TEST_P(ServerDeath, ForGoodEndsEveryWaitWithAnErrorThatNamesIt) {
  auto options = WithCheckpoints(GetParam());
  options.reconnect = milliseconds(100);
  Cluster cluster(options);
  auto client = cluster.Connect(0);
  const auto table = client->CreateTable(DenseSpec("t", 10, 4));
  ASSERT_OK(table);
  cluster.KillServer(1);
  const Key key = 1;
  float row[4];
  const auto ticket = client->Pull(*table, {&key, 1}, Rows(row, 4));
  ASSERT_OK(ticket);
  const Status status = client->Wait(*ticket);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("server 1"), std::string::npos) << status.message();
  EXPECT_FALSE(client->Flush().ok());
  const Key other = 0;
  const auto alive = client->Pull(*table, {&other, 1}, Rows(row, 4));
  ASSERT_OK(alive);
  ASSERT_OK(client->Wait(*alive));
}

INSTANTIATE_TEST_SUITE_P(Doors, ServerDeath,
                         ::testing::Values(TransportKind::kInProcess, TransportKind::kTcp));

}  // namespace
}  // namespace shoal::ps
