// What checkpoints cost: bytes, time, and how much slower a training thread is while one is
// written, of a sparse table of 10 million rows of 16 floats of which 1 % change in between:
//   ps_bench --benchmark_filter=Checkpoint --benchmark_counters_tabular=true
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "base/file.h"
#include "ps/client/admin.h"
#include "ps/client/client.h"
#include "ps/server/server.h"

namespace shoal::ps {
namespace {

constexpr size_t kDim = 16;
constexpr size_t kBatch = 1000;
constexpr Key kRows = 10'000'000;
constexpr Key kHot = kRows / 100;  // every hundredth row

class OneServer final : public Members {
 public:
  explicit OneServer(std::string address) { view_.servers = {std::move(address)}; }
  MemberView Current() override { return view_; }

 private:
  MemberView view_;
};

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// One server, its table filled, and one thread that may push to the hot rows meanwhile.
struct Job {
  Job(bool checkpoints, int deltas) : dir(TempDir::Create().value()) {
    ServerOptions options;
    options.token = "bench";
    options.workers = 1;
    options.listen_host = "";
    options.hub = std::make_shared<InProcessHub>();
    options.inproc_name = "bench";
    if (checkpoints) options.checkpoint_dir = dir.path() / "checkpoints";
    options.checkpoint_deltas = deltas;
    ClientOptions mine;
    mine.token = "bench";
    mine.hub = options.hub;
    server = Server::Start(std::move(options)).value();
    members = std::make_unique<OneServer>(server->address());
    client = Client::Connect(mine, members.get()).value();
    admin = Admin::Connect(mine, members.get()).value();
    TableSpec spec;
    spec.name = "t";
    spec.key_space = KeySpace::kSparse;
    spec.dim = kDim;
    table = client->CreateTable(spec).value();
    for (Key first = 0; first < kRows; first += kBatch) {
      for (size_t i = 0; i < kBatch; ++i) keys[i] = first + i;
      Push();
    }
  }
  void Push() {
    const Ticket ticket = client->Push(table, keys, ConstRows(deltas.data(), kDim)).value();
    SHOAL_CHECK(client->Wait(ticket).ok());
  }
  void PushHot(Key first) {
    for (size_t i = 0; i < kBatch; ++i) keys[i] = (first + i) % kHot * 100;
    Push();
  }
  void PushRandom() {
    for (Key& key : keys) key = random() % kHot * 100;
    Push();
    pushed += kBatch;
  }

  TempDir dir;
  std::unique_ptr<Server> server;
  std::unique_ptr<OneServer> members;
  std::unique_ptr<Client> client;
  std::unique_ptr<Admin> admin;
  TableRef table;
  std::minstd_rand random;
  std::atomic<uint64_t> pushed{0};
  std::vector<Key> keys = std::vector<Key>(kBatch);
  std::vector<float> deltas = std::vector<float>(kBatch * kDim, 0.5f);
};

// range(0): whether it may hold only what changed. range(1): whether training goes on meanwhile.
void Checkpoint(benchmark::State& state) {
  Job job(true, state.range(0) != 0 ? 1000 : 0);
  SHOAL_CHECK(job.admin->Checkpoint().ok());
  const bool trains = state.range(1) != 0;
  double bytes = 0;
  std::vector<double> alone, beside;
  for (auto _ : state) {
    for (Key first = 0; first < kHot; first += kBatch) job.PushHot(first);
    std::atomic<bool> stop{false};
    std::thread trainer;
    const auto rate = [&](TimePoint begin, uint64_t before) {
      return static_cast<double>(job.pushed - before) / Seconds(RealClock::Get()->Now() - begin);
    };
    if (trains) {
      trainer = std::thread([&] {
        while (!stop) job.PushRandom();
      });
      const TimePoint begin = RealClock::Get()->Now();
      const uint64_t before = job.pushed;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      alone.push_back(rate(begin, before));
    }
    const TimePoint begin = RealClock::Get()->Now();
    const uint64_t before = job.pushed;
    const auto info = job.admin->Checkpoint();
    SHOAL_CHECK(info.ok());
    state.SetIterationTime(Seconds(RealClock::Get()->Now() - begin));
    bytes = static_cast<double>(info->bytes);
    if (trains) beside.push_back(rate(begin, before));
    stop = true;
    if (trains) trainer.join();
  }
  state.counters["MB"] = bytes / 1e6;
  if (!trains) return;
  std::sort(alone.begin(), alone.end());
  std::sort(beside.begin(), beside.end());
  state.counters["rows/s alone"] = alone[alone.size() / 2];
  state.counters["rows/s beside"] = beside[beside.size() / 2];
}
BENCHMARK(Checkpoint)
    ->ArgNames({"changed_only", "training"})
    ->ArgsProduct({{0, 1}, {0, 1}})
    ->Iterations(3)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

// What it costs to remember which rows changed. range(0): whether it is done.
void CheckpointMarks(benchmark::State& state) {
  Job job(state.range(0) != 0, 15);
  for (auto _ : state) {
    for (Key& key : job.keys) key = job.random() % kRows;
    job.Push();
  }
  state.counters["rows/s"] = benchmark::Counter(static_cast<double>(state.iterations() * kBatch),
                                                benchmark::Counter::kIsRate);
}
BENCHMARK(CheckpointMarks)->ArgName("tracked")->Arg(0)->Arg(1)->Arg(0)->Arg(1)->UseRealTime();

}  // namespace
}  // namespace shoal::ps
