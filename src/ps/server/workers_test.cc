// Workers that join, leave and die at any time, under ASP and SSP: those that stay are never
// further apart than allowed, wait for nobody who is gone, and no push is lost or applied twice.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "ps/testing/test_cluster.h"

namespace shoal::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Key kKeys = 100;
constexpr uint32_t kDim = 2;
constexpr uint64_t kFar = UINT64_MAX;

enum class End { kStays, kLeaves, kDies };

class Crew {
 public:
  Crew(ClusterOptions options, Consistency consistency)
      : cluster_(options), consistency_(consistency) {}
  ~Crew() {
    for (auto& worker : workers_) Stop(worker.get(), End::kLeaves);
  }

  // The index of one more worker, which is at work when this returns.
  size_t Join() {
    const size_t index = workers_.size();
    Worker* worker = Add();
    worker->thread = std::thread([this, worker] { Run(worker); });
    EXPECT_TRUE(Eventually([&] { return worker->rounds > 0 || worker->failed; }));
    return index;
  }
  // All that are to be there from the beginning, at once: they wait for each other.
  void Begin(size_t n) {
    for (size_t i = 0; i < n; ++i) Add();
    for (size_t i = 0; i < n; ++i) {
      workers_[i]->thread = std::thread([this, worker = workers_[i].get()] { Run(worker); });
    }
  }
  void Leave(size_t index) { Stop(workers_[index].get(), End::kLeaves); }
  void Die(size_t index) { Stop(workers_[index].get(), End::kDies); }

  // All who are there make so many rounds more.
  bool Progress(int rounds) {
    std::vector<std::pair<Worker*, int>> goals;
    for (auto& worker : workers_) {
      if (worker->end == End::kStays) goals.emplace_back(worker.get(), worker->rounds + rounds);
    }
    return Eventually([&] {
      return std::all_of(goals.begin(), goals.end(), [](const auto& goal) {
        return goal.first->rounds >= goal.second || goal.first->failed;
      });
    });
  }
  std::vector<size_t> Present() const {
    std::vector<size_t> present;
    for (size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i]->end == End::kStays) present.push_back(i);
    }
    return present;
  }

  void Check() {
    int pushed = 0;
    for (auto& worker : workers_) {
      Stop(worker.get(), End::kLeaves);
      EXPECT_FALSE(worker->failed) << "worker " << worker->index;
      pushed += worker->pushes;
    }
    ClientOptions observer = cluster_.ClientOptionsOf(kObserver);
    auto client = Client::Connect(observer, &cluster_.members);
    ASSERT_OK(client);
    const TableRef table = (*client)->CreateTable(DenseSpec("t", kKeys, kDim)).value();
    std::vector<float> rows(kKeys * kDim);
    ASSERT_OK((*client)->PullRange(table, 0, kKeys, Rows(rows.data(), kDim)));
    EXPECT_EQ(rows, std::vector<float>(kKeys * kDim, static_cast<float>(pushed)));
  }
  Cluster& cluster() { return cluster_; }

 private:
  struct Worker {
    int index = 0;
    // What it has said to have finished; kFar: it does not count.
    std::atomic<uint64_t> said{kFar};
    std::atomic<int> rounds{0};
    int pushes = 0;
    std::atomic<End> end{End::kStays};
    std::atomic<bool> failed{false};
    std::thread thread;
  };

  Worker* Add() {
    std::lock_guard lock(mu_);
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->index = static_cast<int>(workers_.size() - 1);
    return workers_.back().get();
  }

  uint64_t Slowest(const Worker* but) const {
    std::lock_guard lock(mu_);
    uint64_t least = kFar;
    for (const auto& worker : workers_) {
      if (worker.get() != but) least = std::min<uint64_t>(least, worker->said);
    }
    return least;
  }

  void Run(Worker* worker) {
    auto client = cluster_.Connect(worker->index, consistency_);
    if (client == nullptr) {
      worker->failed = true;
      return;
    }
    const auto table = client->CreateTable(DenseSpec("t", kKeys, kDim));
    std::vector<Key> keys(kKeys);
    std::iota(keys.begin(), keys.end(), Key{0});
    const std::vector<float> ones(kKeys * kDim, 1.0f);
    const uint64_t others = Slowest(worker);
    uint64_t n = others == kFar ? 0 : others;
    worker->said = n;
    while (worker->end == End::kStays) {
      const auto push = client->Push(*table, keys, ConstRows(ones.data(), kDim));
      Status status = client->Wait(*push, seconds(20));
      worker->pushes += status.ok();
      worker->said = ++n;
      if (status.ok()) status = client->Clock(n, seconds(20));
      if (!status.ok()) {
        EXPECT_TRUE(status.ok()) << "worker " << worker->index << ": " << status.ToString();
        worker->failed = true;
        break;
      }
      if (consistency_.kind == Consistency::Kind::kSsp) {
        const uint64_t slowest = Slowest(worker);
        EXPECT_TRUE(slowest >= kFar - 100 || n <= slowest + consistency_.staleness)
            << n << " after " << slowest;
      }
      ++worker->rounds;
    }
    worker->said = kFar;
    // A client that goes without a word is to the servers as one that died.
    if (worker->end == End::kLeaves) {
      const Status left = client->Leave();
      EXPECT_TRUE(left.ok()) << left.ToString();
    }
  }

  void Stop(Worker* worker, End how) {
    End stays = End::kStays;
    worker->end.compare_exchange_strong(stays, how);
    if (worker->thread.joinable()) worker->thread.join();
  }

  Cluster cluster_;
  const Consistency consistency_;
  mutable std::mutex mu_;  // of adding to workers_, which only the test's own thread does
  std::deque<std::unique_ptr<Worker>> workers_;
};

class WorkersTest : public ::testing::TestWithParam<std::tuple<TransportKind, int>> {
 protected:
  static ClusterOptions Options() {
    ClusterOptions options;
    options.transport = std::get<0>(GetParam());
    options.replicas = std::get<1>(GetParam());
    options.servers = 2;
    options.workers = 2;
    options.grace = milliseconds(200);
    return options;
  }
};

TEST_P(WorkersTest, OneDiesForGoodUnderSspWhileAnotherJoins) {
  Crew crew(Options(), Consistency::Ssp(1));
  crew.Begin(2);
  ASSERT_TRUE(crew.Progress(5));
  crew.Die(1);
  crew.Join();  // as number 2: nobody is number 1 again
  ASSERT_TRUE(crew.Progress(10));
  crew.Check();
}

TEST_P(WorkersTest, TheySayGoodByeOneAfterTheOther) {
  for (const Consistency consistency :
       {Consistency::Asp(), Consistency::Ssp(0), Consistency::Ssp(3)}) {
    Crew crew(Options(), consistency);
    crew.Begin(2);
    ASSERT_TRUE(crew.Progress(3));
    crew.Join();
    ASSERT_TRUE(crew.Progress(3));
    crew.Leave(0);
    ASSERT_TRUE(crew.Progress(3));
    crew.Leave(1);
    ASSERT_TRUE(crew.Progress(3));
    crew.Check();
  }
}

TEST_P(WorkersTest, AnyPlanOfComingAndGoing) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Crew crew(Options(),
              seed % 2 == 0 ? Consistency::Asp() : Consistency::Ssp(static_cast<uint32_t>(seed)));
    crew.Begin(2);
    for (int step = 0; step < 8; ++step) {
      ASSERT_TRUE(crew.Progress(static_cast<int>(random() % 4)));
      const std::vector<size_t> present = crew.Present();
      const size_t one = present[random() % present.size()];
      if (present.size() == 1 || (present.size() < 5 && random() % 2 == 0)) {
        crew.Join();
      } else if (random() % 2 == 0) {
        crew.Leave(one);
      } else {
        crew.Die(one);
      }
    }
    ASSERT_TRUE(crew.Progress(5));
    crew.Check();
  }
}

INSTANTIATE_TEST_SUITE_P(Doors, WorkersTest,
                         ::testing::Combine(::testing::Values(TransportKind::kInProcess,
                                                              TransportKind::kTcp),
                                            ::testing::Values(1, 2)));

}  // namespace
}  // namespace shoal::ps
