// A history checker: servers die, join and leave at random moments while clients push, and in every
// other run shards move from server to server besides, or are balanced; in the end every
// acknowledged push is in the tables exactly once, and every other one at most once.
//
// SHOAL_HISTORY_RUNS and SHOAL_HISTORY_SEED say how many runs, from which seed; the slow lane takes
// 500. A run's moments and choices come from its seed; what threads make of it does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "ps/testing/test_cluster.h"

namespace shoal::ps {
namespace {

constexpr int kClients = 3;
constexpr uint32_t kDim = 3;
constexpr Key kShared = 200;
constexpr size_t kKeysAPush = 6;

// What one client knows of its pushes.
struct Ledger {
  std::vector<bool> acknowledged;                                   // by number
  std::vector<uint64_t> sure = std::vector<uint64_t>(kShared);      // of a shared row
  std::vector<uint64_t> possible = std::vector<uint64_t>(kShared);  // likewise
  Duration longest{0};
  Status error;
};

Key OwnKey(int client, size_t number) {
  return uint64_t{1 + static_cast<unsigned>(client)} << 32 | number;
}

// One push to the shared rows and one to a row of its own.
struct Work {
  std::vector<Key> shared;
  Key own = 0;
  std::vector<float> ones = std::vector<float>(kKeysAPush * kDim, 1.0f);
  std::vector<float> fresh = std::vector<float>(kKeysAPush * kDim);
  Ticket tickets[2];
};

class Player {
 public:
  Player(Cluster* cluster, int index, uint64_t seed, std::atomic<uint64_t>* done)
      : index_(index), random_(seed), done_(done), client_(cluster->Connect(index)) {}

  void Play(const std::atomic<bool>& stop) {
    shared_ = client_->CreateTable(DenseSpec("shared", kShared, kDim)).value();
    own_ = client_->CreateTable(SparseSpec("own", kDim)).value();
    std::vector<std::unique_ptr<Work>> under_way;
    while (!stop && ledger.error.ok()) {
      under_way.push_back(Begin());
      if (under_way.size() < 1 + random_() % 4) continue;
      for (auto& work : under_way) Finish(work.get());
      under_way.clear();
    }
    for (auto& work : under_way) Finish(work.get());
    // The last ones are never heard of again.
    for (int i = 0; i < 3; ++i) abandoned_.push_back(Begin());
    client_.reset();
  }

  Ledger ledger;

 private:
  std::unique_ptr<Work> Begin() {
    auto work = std::make_unique<Work>();
    for (size_t i = 0; i < kKeysAPush; ++i) {
      work->shared.push_back(random_() % kShared);
      ++ledger.possible[work->shared.back()];
    }
    work->own = OwnKey(index_, ledger.acknowledged.size());
    ledger.acknowledged.push_back(false);
    const ConstRows ones(work->ones.data(), kDim);
    const bool pulls = random_() % 3 == 0;
    auto first =
        pulls ? client_->PushPull(shared_, work->shared, ones, Rows(work->fresh.data(), kDim))
              : client_->Push(shared_, work->shared, ones);
    auto second = client_->Push(own_, {&work->own, 1}, ones);
    work->tickets[0] = first.value();
    work->tickets[1] = second.value();
    return work;
  }

  void Finish(Work* work) {
    const TimePoint begin = RealClock::Get()->Now();
    for (const Ticket ticket : work->tickets) {
      const Status status = client_->Wait(ticket, std::chrono::seconds(30));
      if (!status.ok() && ledger.error.ok()) ledger.error = status;
    }
    ledger.longest = std::max(ledger.longest, RealClock::Get()->Now() - begin);
    if (!ledger.error.ok()) return;
    for (const Key key : work->shared) ++ledger.sure[key];
    ledger.acknowledged[work->own & UINT32_MAX] = true;
    ++*done_;
  }

  const int index_;
  std::mt19937_64 random_;
  std::atomic<uint64_t>* const done_;
  std::unique_ptr<Client> client_;
  TableRef shared_, own_;
  std::vector<std::unique_ptr<Work>> abandoned_;
};

class Game {
 public:
  explicit Game(uint64_t seed)
      : random_(seed), options_(Draw(&random_)), servers_(options_.servers), cluster_(options_) {}

  uint64_t moves() const { return moves_; }
  uint64_t joins() const { return joins_; }
  uint64_t leaves() const { return leaves_; }
  // The longest that a push took.
  Duration Go() {
    std::vector<std::unique_ptr<Player>> players;
    for (int i = 0; i < kClients; ++i) {
      players.push_back(std::make_unique<Player>(&cluster_, i, random_(), &done_));
    }
    std::vector<std::thread> threads;
    for (auto& player : players) threads.emplace_back([&] { player->Play(stop_); });
    if (random_() % 2 == 0) threads.emplace_back([this, seed = random_()] { MoveShards(seed); });
    const uint64_t steps = 1 + random_() % 4;
    bool fine = true;
    for (uint64_t step = 0; step < steps && fine; ++step) fine = Step();
    fine = fine && Progress(20);
    stop_ = true;
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(fine) << "no progress after a step";
    Duration longest{0};
    for (auto& player : players) {
      EXPECT_OK_STATUS(player->ledger.error);
      longest = std::max(longest, player->ledger.longest);
    }
    Check(players);
    return longest;
  }

 private:
  static ClusterOptions Draw(std::mt19937_64* random) {
    ClusterOptions options;
    options.transport = std::array{TransportKind::kInProcess, TransportKind::kTcp,
                                   TransportKind::kShared}[(*random)() % 3];
    options.servers = 2 + static_cast<int>((*random)() % 2);
    options.threads = 1 + static_cast<int>((*random)() % 2);
    options.workers = kClients;
    options.replicas = 2;
    if ((*random)() % 2 == 0) options.balance = std::chrono::milliseconds(5);
    return options;
  }
  static void EXPECT_OK_STATUS(const Status& status) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  // Waits until so many more pushes are acknowledged.
  bool Progress(uint64_t pushes) {
    const uint64_t until = done_ + pushes;
    return Eventually([&] { return done_ >= until; });
  }

  // Shards go from server to server all the while. What dies with a server is given up.
  void MoveShards(uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto admin = cluster_.ConnectAdmin();
    while (!stop_) {
      const auto to = static_cast<int>(random() % static_cast<uint64_t>(servers_.load()));
      const auto lane = static_cast<uint32_t>(random() % static_cast<uint64_t>(options_.threads));
      const auto moved =
          admin->MoveShard(static_cast<uint32_t>(random() % 64), to, lane, std::chrono::seconds(2));
      moves_ += moved.ok();
    }
  }

  // Not two of a pair: that is what checkpoints are for.
  bool Step() {
    if (!AllReplicated(&cluster_, servers_) || !Progress(random_() % 60)) return false;
    switch (random_() % 4) {
      case 0:
        if (servers_ == 4) return KillOne();
        cluster_.AddServer();
        ++servers_;
        ++joins_;
        return true;
      case 1: {
        // Its own rows may be served by another since it died; then they stay there.
        if (servers_ == 2) return KillOne();
        const int last = servers_ - 1;
        const auto serves = cluster_.server(last).primary_of();
        if (std::find(serves.begin(), serves.end(), last) == serves.end()) return KillOne();
        --servers_;
        const Status left = cluster_.server(last).Leave(std::chrono::seconds(15));
        EXPECT_OK_STATUS(left);
        cluster_.RemoveServer(last);
        ++leaves_;
        return left.ok();
      }
      default:
        return KillOne();
    }
  }

  bool KillOne() {
    const int victim = static_cast<int>(random_() % static_cast<uint64_t>(servers_.load()));
    // Known by its successor's claim, or because Members says so.
    const bool announced = random_() % 2 == 0;
    cluster_.KillServer(victim);
    if (announced) {
      cluster_.members.Set(static_cast<size_t>(victim), "");
      if (!Progress(random_() % 40)) return false;
    }
    cluster_.StartServer(victim);
    return true;
  }

  void Check(const std::vector<std::unique_ptr<Player>>& players) {
    ClientOptions as_observer = cluster_.ClientOptionsOf(kObserver);
    auto client = Client::Connect(as_observer, &cluster_.members);
    ASSERT_OK(client);
    const TableRef shared = (*client)->CreateTable(DenseSpec("shared", kShared, kDim)).value();
    const TableRef own = (*client)->CreateTable(SparseSpec("own", kDim)).value();
    std::vector<float> rows(kShared * kDim);
    ASSERT_OK((*client)->PullRange(shared, 0, kShared, Rows(rows.data(), kDim)));
    for (Key key = 0; key < kShared; ++key) {
      uint64_t sure = 0, possible = 0;
      for (const auto& player : players) {
        sure += player->ledger.sure[key];
        possible += player->ledger.possible[key];
      }
      EXPECT_GE(rows[key * kDim], static_cast<float>(sure)) << "lost, row " << key;
      EXPECT_LE(rows[key * kDim], static_cast<float>(possible)) << "twice, row " << key;
      EXPECT_EQ(rows[key * kDim], rows[key * kDim + 2]);
    }
    for (int i = 0; i < kClients; ++i)
      CheckOwn(client->get(), own, i, players[static_cast<size_t>(i)]->ledger);
  }

  void CheckOwn(Client* client, const TableRef& own, int index, const Ledger& ledger) {
    std::vector<Key> keys;
    for (size_t n = 0; n < ledger.acknowledged.size(); ++n) keys.push_back(OwnKey(index, n));
    std::vector<float> rows(keys.size() * kDim);
    ASSERT_OK(client->Wait(client->Pull(own, keys, Rows(rows.data(), kDim)).value()));
    for (size_t n = 0; n < keys.size(); ++n) {
      const float value = rows[n * kDim];
      EXPECT_TRUE(value == 1 || (value == 0 && !ledger.acknowledged[n]))
          << "push " << n << " of client " << index << " is there " << value << " times, "
          << (ledger.acknowledged[n] ? "acknowledged" : "not acknowledged");
    }
  }

  std::mt19937_64 random_;
  const ClusterOptions options_;
  std::atomic<int> servers_;
  uint64_t joins_ = 0, leaves_ = 0;
  Cluster cluster_;
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> moves_{0};
};

uint64_t NumberOf(const char* variable, uint64_t other) {
  const char* text = std::getenv(variable);
  return text == nullptr ? other : std::strtoull(text, nullptr, 10);
}

TEST(HistoryTest, NothingAcknowledgedIsLostAndNothingIsAppliedTwice) {
  const uint64_t runs = NumberOf("SHOAL_HISTORY_RUNS", 20);
  const uint64_t first = NumberOf("SHOAL_HISTORY_SEED", 1);
  Duration longest{0};
  uint64_t moves = 0, joins = 0, leaves = 0;
  for (uint64_t seed = first; seed < first + runs && !HasFailure(); ++seed) {
    SCOPED_TRACE("SHOAL_HISTORY_SEED=" + std::to_string(seed));
    Game game(seed);
    longest = std::max(longest, game.Go());
    moves += game.moves();
    joins += game.joins();
    leaves += game.leaves();
  }
  EXPECT_LT(longest, std::chrono::seconds(2));
  EXPECT_GT(moves, 0u);
  std::printf("%d runs, %d joins, %d leaves, %d moves by hand, longest push %s\n",
              static_cast<int>(runs), static_cast<int>(joins), static_cast<int>(leaves),
              static_cast<int>(moves), FormatDuration(longest).c_str());
}

}  // namespace
}  // namespace shoal::ps
