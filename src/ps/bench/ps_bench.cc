// How fast rows go between a worker and a server, in process and over loopback TCP, beside what the
// machine's memcpy does with the same bytes: `ps_bench --benchmark_counters_tabular=true`.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "ps/client/client.h"
#include "ps/server/server.h"
#include "ps/storage/optimizer_kernels.h"

namespace shoal::ps {
namespace {

constexpr size_t kDim = 100;
constexpr size_t kBatch = 1000;
constexpr size_t kTableRows = 70'000;

class OneServer final : public Members {
 public:
  explicit OneServer(std::string address) { view_.servers = {std::move(address)}; }
  MemberView Current() override { return view_; }

 private:
  MemberView view_;
};

struct Job {
  explicit Job(bool tcp) {
    ServerOptions options;
    options.token = "bench";
    options.workers = 1;
    options.listen_host = tcp ? "127.0.0.1" : "";
    options.hub = std::make_shared<InProcessHub>();
    options.inproc_name = "bench";
    auto hub = options.hub;
    server = Server::Start(std::move(options)).value();
    members = std::make_unique<OneServer>(server->address());
    ClientOptions mine;
    mine.token = "bench";
    mine.hub = hub;
    client = Client::Connect(std::move(mine), members.get()).value();
  }
  std::unique_ptr<Server> server;
  std::unique_ptr<OneServer> members;
  std::unique_ptr<Client> client;
};

void Count(benchmark::State& state, size_t ways) {
  const auto rows = static_cast<double>(state.iterations() * kBatch);
  state.counters["rows/s"] = benchmark::Counter(rows, benchmark::Counter::kIsRate);
  state.counters["GB/s"] = benchmark::Counter(
      rows * kDim * sizeof(float) * static_cast<double>(ways) / 1e9, benchmark::Counter::kIsRate);
}

enum What { kPush, kPull, kPushPull };

// Args: over TCP, what, sparse, requests under way.
void BM_Rows(benchmark::State& state) {
  Job job(state.range(0) != 0);
  const auto what = static_cast<What>(state.range(1));
  TableSpec spec;
  spec.name = "t";
  spec.rows = kTableRows;
  spec.dim = kDim;
  if (state.range(2) != 0) spec.key_space = KeySpace::kSparse;
  const TableRef table = job.client->CreateTable(spec).value();
  const auto depth = static_cast<size_t>(state.range(3));
  std::mt19937 random(1);
  std::vector<std::vector<Key>> keys(64, std::vector<Key>(kBatch));
  for (auto& batch : keys) {
    for (Key& key : batch) key = random() % kTableRows;
  }
  const std::vector<float> deltas(kBatch * kDim, 1e-3f);
  std::vector<std::vector<float>> out(depth, std::vector<float>(kBatch * kDim));
  std::vector<Ticket> tickets(depth);
  size_t n = 0;
  for (auto _ : state) {
    const size_t slot = n % depth;
    if (n >= depth && !job.client->Wait(tickets[slot]).ok()) state.SkipWithError("wait");
    const auto& batch = keys[n++ % keys.size()];
    const ConstRows in(deltas.data(), kDim);
    const Rows to(out[slot].data(), kDim);
    tickets[slot] = what == kPush   ? job.client->Push(table, batch, in).value()
                    : what == kPull ? job.client->Pull(table, batch, to).value()
                                    : job.client->PushPull(table, batch, in, to).value();
  }
  if (!job.client->Flush().ok()) state.SkipWithError("flush");
  Count(state, what == kPushPull ? 2 : 1);
}
BENCHMARK(BM_Rows)
    ->ArgNames({"tcp", "what", "sparse", "depth"})
    ->ArgsProduct({{0, 1}, {kPush, kPull, kPushPull}, {0}, {1, 8}})
    ->ArgsProduct({{0, 1}, {kPushPull}, {1}, {8}})
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// The ceiling: the same rows copied once, from and to random places of a table.
void BM_Memcpy(benchmark::State& state) {
  std::vector<float> table(kTableRows * 112), out(kBatch * kDim);
  std::mt19937 random(1);
  std::vector<size_t> at(64 * kBatch);
  for (auto& row : at) row = random() % kTableRows;
  size_t n = 0;
  for (auto _ : state) {
    for (size_t i = 0; i < kBatch; ++i) {
      std::memcpy(out.data() + i * kDim, table.data() + at[n++ % at.size()] * 112,
                  kDim * sizeof(float));
    }
    benchmark::ClobberMemory();
  }
  Count(state, 1);
}
BENCHMARK(BM_Memcpy);

void BM_Optimizer(benchmark::State& state) {
  OptimizerSpec optimizer;
  optimizer.kind = static_cast<OptimizerKind>(state.range(0));
  const RowLayout layout = RowLayout::Of(kDim, optimizer);
  std::vector<float> table(kBatchRows * layout.floats, 0.5f), deltas(kBatchRows * kDim, 1e-3f);
  std::vector<float*> rows(kBatchRows);
  std::vector<const float*> in(kBatchRows);
  for (size_t i = 0; i < kBatchRows; ++i) {
    rows[i] = table.data() + i * layout.floats;
    in[i] = deltas.data() + i * kDim;
  }
  const RowBatch batch{rows.data(), in.data(), nullptr, kBatchRows, layout, &optimizer};
  for (auto _ : state) ApplyBatch(batch);
  state.counters["rows/s"] = benchmark::Counter(
      static_cast<double>(state.iterations() * kBatchRows), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Optimizer)->DenseRange(0, kOptimizerKinds - 1);

void BM_Crc32c(benchmark::State& state) {
  const std::vector<char> bytes(100'000, 'x');
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(bytes.data(), bytes.size()));
  state.SetBytesProcessed(state.iterations() * 100'000);
}
BENCHMARK(BM_Crc32c);

}  // namespace
}  // namespace shoal::ps
