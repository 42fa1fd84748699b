// What a second copy of every row costs: pushes and pulls to two servers of this process, through
// shared memory or TCP, with one copy and with two. And what shards cost that move meanwhile.
//   ps_bench --benchmark_filter='BM_Copies|BM_Moves' --benchmark_counters_tabular=true
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "ps/client/admin.h"
#include "ps/client/client.h"
#include "ps/server/server.h"

namespace shoal::ps {
namespace {

constexpr int kServers = 2;
constexpr uint32_t kDim = 100;
constexpr uint64_t kTableRows = 70'000;

class Two final : public Members {
 public:
  MemberView Current() override {
    const MutexLock lock(mu_);
    return view_;
  }
  void Set(int copies, const std::vector<std::string>& servers) {
    const MutexLock lock(mu_);
    view_ = {view_.generation + 1, servers, 1, copies};
  }

 private:
  Mutex mu_;
  MemberView view_ GUARDED_BY(mu_);
};

struct Job {
  Job(int copies, bool shared) {
    std::vector<std::string> addresses;
    for (int i = 0; i < kServers; ++i) {
      ServerOptions options;
      options.token = "bench";
      options.workers = 1;
      options.index = i;
      options.servers = kServers;
      options.replicas = copies;
      options.members = &members;
      options.incarnation = 1;
      options.shared_memory = shared;
      servers[static_cast<size_t>(i)] = Server::Start(std::move(options)).value();
      addresses.push_back(servers[static_cast<size_t>(i)]->address());
    }
    members.Set(copies, addresses);
    ClientOptions mine;
    mine.token = "bench";
    mine.shared_memory = shared;
    client = Client::Connect(std::move(mine), &members).value();
  }
  ~Job() { client.reset(); }
  Two members;
  std::array<std::unique_ptr<Server>, kServers> servers;
  std::unique_ptr<Client> client;
};

// Args: copies, through shared memory, rows a request, requests under way, pulls.
void BM_Copies(benchmark::State& state) {
  Job job(static_cast<int>(state.range(0)), state.range(1) != 0);
  TableSpec spec;
  spec.name = "t";
  spec.rows = kTableRows;
  spec.dim = kDim;
  const TableRef table = job.client->CreateTable(spec).value();
  const auto batch = static_cast<size_t>(state.range(2));
  const auto depth = static_cast<size_t>(state.range(3));
  std::mt19937 random(1);
  std::vector<std::vector<Key>> keys(64, std::vector<Key>(batch));
  for (auto& one : keys) {
    for (Key& key : one) key = random() % kTableRows;
  }
  const std::vector<float> deltas(batch * kDim, 1e-3f);
  std::vector<std::vector<float>> out(depth, std::vector<float>(batch * kDim));
  std::vector<Ticket> tickets(depth);
  size_t n = 0;
  for (auto _ : state) {
    const size_t slot = n % depth;
    if (n >= depth && !job.client->Wait(tickets[slot]).ok()) state.SkipWithError("wait");
    const auto& one = keys[n++ % keys.size()];
    tickets[slot] = state.range(4) != 0
                        ? job.client->Pull(table, one, Rows(out[slot].data(), kDim)).value()
                        : job.client->Push(table, one, ConstRows(deltas.data(), kDim)).value();
  }
  if (!job.client->Flush().ok()) state.SkipWithError("flush");
  const auto requests = static_cast<double>(state.iterations());
  state.counters["requests/s"] = benchmark::Counter(requests, benchmark::Counter::kIsRate);
  state.counters["rows/s"] =
      benchmark::Counter(requests * static_cast<double>(batch), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Copies)
    ->ArgNames({"copies", "shared", "rows", "depth", "pull"})
    ->ArgsProduct({{1, 2}, {0, 1}, {10, 1000}, {1, 16}, {0}})
    ->ArgsProduct({{1, 2}, {0, 1}, {1000}, {16}, {1}})
    ->MinTime(0.2)
    ->UseRealTime();

// Gives one shard after the other to the other server and back, without pause.
struct Moving {
  explicit Moving(Two* members) {
    ClientOptions mine;
    mine.token = "bench";
    thread = std::thread([this, mine, members] {
      const auto admin = Admin::Connect(mine, members).value();
      for (uint32_t n = 0; !stop; ++n) {
        const auto moved = admin->MoveShard(n % 256, static_cast<int>((n + n / 256 + 1) % 2), 0);
        if (!moved.ok()) continue;
        moves += moved->moves;
        stall = std::max(stall, moved->longest_stall);
      }
    });
  }
  ~Moving() {
    stop = true;
    thread.join();
  }
  std::atomic<bool> stop{false};
  std::atomic<int> moves{0};
  Duration stall{0};
  std::thread thread;
};

// Args: shards move, copies, through shared memory, rows a request. One request at a time.
void BM_Moves(benchmark::State& state) {
  Job job(static_cast<int>(state.range(1)), state.range(2) != 0);
  TableSpec spec;
  spec.name = "t";
  spec.rows = kTableRows;
  spec.dim = kDim;
  const TableRef table = job.client->CreateTable(spec).value();
  const auto batch = static_cast<size_t>(state.range(3));
  std::mt19937 random(1);
  std::vector<Key> keys(batch);
  const std::vector<float> deltas(batch * kDim, 1e-3f);
  std::unique_ptr<Moving> moving;
  if (state.range(0) != 0) moving = std::make_unique<Moving>(&job.members);
  std::vector<double> took;
  for (auto _ : state) {
    for (Key& key : keys) key = random() % kTableRows;
    const TimePoint begin = RealClock::Get()->Now();
    const Ticket ticket = job.client->Push(table, keys, ConstRows(deltas.data(), kDim)).value();
    if (!job.client->Wait(ticket).ok()) state.SkipWithError("wait");
    took.push_back(
        std::chrono::duration<double, std::milli>(RealClock::Get()->Now() - begin).count());
  }
  std::sort(took.begin(), took.end());
  state.counters["pushes/s"] =
      benchmark::Counter(static_cast<double>(took.size()), benchmark::Counter::kIsRate);
  state.counters["median ms"] = took[took.size() / 2];
  state.counters["p99 ms"] = took[took.size() * 99 / 100];
  state.counters["longest ms"] = took.back();
  if (moving == nullptr) return;
  moving->stop = true;
  moving->thread.join();
  moving->thread = std::thread([] {});
  state.counters["moves"] = moving->moves.load();
  state.counters["stall ms"] = std::chrono::duration<double, std::milli>(moving->stall).count();
}
BENCHMARK(BM_Moves)
    ->ArgNames({"moving", "copies", "shared", "rows"})
    ->ArgsProduct({{0, 1}, {1, 2}, {0, 1}, {10, 1000}})
    ->MinTime(1)
    ->UseRealTime();

}  // namespace
}  // namespace shoal::ps
