// Two servers and three workers of one job, in one program, over the public header alone. Ends with
// 0 if every number is what its formula says.
#include <shoal/ps.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace ps = shoal::ps;

namespace {

constexpr int kServers = 2;
constexpr int kWorkers = 3;
constexpr uint64_t kRows = 500;
constexpr uint32_t kDim = 8;

void Expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "app: %s\n", what);
  std::exit(1);
}

template <typename T>
T Need(ps::Result<T> result) {
  if (!result.ok()) Expect(false, result.status().message().c_str());
  return std::move(result).value();
}

void Need(const ps::Status& status) { Expect(status.ok(), status.message().c_str()); }

ps::ServerOptions OptionsOf(int index, const std::string& directory) {
  ps::ServerOptions options;
  options.index = index;
  options.servers = kServers;
  options.workers = kWorkers;
  options.token = "secret";
  options.checkpoint_dir = directory;
  options.functions["clip"] = [](const ps::FunctionBatch& batch) {
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      for (size_t d = 0; d < batch.dim; ++d)
        batch.rows[i][d] = std::fmin(batch.rows[i][d], std::strtof(batch.argument.data(), nullptr));
    }
    return ps::Status::Ok();
  };
  return options;
}

std::vector<std::unique_ptr<ps::Server>> StartServers(const std::string& directory) {
  std::vector<std::unique_ptr<ps::Server>> servers;
  for (int i = 0; i < kServers; ++i)
    servers.push_back(Need(ps::Server::Start(OptionsOf(i, directory))));
  return servers;
}

ps::ClientOptions WorkerOptions(const std::vector<std::unique_ptr<ps::Server>>& servers,
                                int index) {
  ps::ClientOptions options;
  options.index = index;
  options.token = "secret";
  options.consistency.kind = ps::Consistency::Kind::kBsp;
  for (const auto& server : servers) options.servers.push_back(server->address());
  return options;
}

ps::TableSpec Dense() {
  ps::TableSpec spec;
  spec.name = "dense";
  spec.rows = kRows;
  spec.dim = kDim;
  return spec;
}

ps::TableSpec Sparse() {
  ps::TableSpec spec;
  spec.name = "sparse";
  spec.dim = kDim;
  spec.optimizer = ps::Optimizer::Adagrad(0.5f, 1e-6f);
  spec.initializer = ps::Initializer::Uniform(1.0f, 2.0f, 7);
  return spec;
}

void RunWorker(const ps::ClientOptions& options) {
  auto client = Need(ps::Client::Connect(options));
  const ps::Table dense = Need(client->CreateTable(Dense()));
  const ps::Table sparse = Need(client->CreateTable(Sparse()));
  std::vector<ps::Key> keys(kRows);
  for (size_t i = 0; i < kRows; ++i) keys[i] = i;
  const std::vector<float> ones(kRows * kDim, 1.0f);
  std::vector<float> rows(kRows * kDim);
  for (uint64_t round = 1; round <= 20; ++round) {
    Need(client->Wait(Need(client->Push(dense, keys, ones))));
    Need(client->Clock(round));
    Need(client->Wait(Need(client->Pull(dense, keys, rows))));
    // BSP: everybody's pushes of this round are in, some may be a round ahead.
    for (const float value : rows) {
      Expect(value >= kWorkers * static_cast<float>(round) &&
                 value <= kWorkers * static_cast<float>(round + 1),
             "a dense row is not the sum of all pushes");
    }
  }
  Need(client->Barrier("dense is done"));
  const std::vector<ps::Key> far = {1ull << 60, 5};
  std::vector<float> got(2 * kDim), again(2 * kDim);
  if (options.index == 0) {
    Need(client->Wait(Need(client->Pull(sparse, far, got))));
    const std::vector<float> gradient(2 * kDim, 3.0f);
    Need(client->Wait(Need(client->PushPull(sparse, far, gradient, again))));
    for (size_t i = 0; i < got.size(); ++i) {
      Expect(got[i] >= 1 && got[i] < 2, "an initial value is out of its bounds");
      Expect(std::fabs(again[i] - (got[i] - 0.5f)) < 1e-5f, "AdaGrad's first step is lr");
    }
    Need(client->Wait(Need(client->Call(dense, "clip", keys, "10", {{}, rows}))));
    for (const float value : rows) Expect(value == 10.0f, "the server function did not clip");
    const ps::CheckpointInfo info = Need(client->Checkpoint());
    Expect(info.id >= 0 && info.bytes > kRows * kDim * sizeof(float), "an empty checkpoint");
  }
  Need(client->Barrier("all is done"));
  Need(client->Leave());
}

void CheckRefusals(const std::vector<std::unique_ptr<ps::Server>>& servers) {
  ps::ClientOptions options = WorkerOptions(servers, ps::ClientOptions::kObserver);
  auto client = Need(ps::Client::Connect(options));
  const ps::Table dense = Need(client->CreateTable(Dense()));
  std::vector<float> rows(kDim);
  Expect(client->Pull(dense, std::vector<ps::Key>{1, 2}, rows).status().code() ==
             ps::Code::kInvalidArgument,
         "one row of memory for two keys was taken");
  Expect(client->Pull(dense, std::vector<ps::Key>{kRows}, rows).status().code() ==
             ps::Code::kInvalidArgument,
         "a key beyond the table was taken");
  ps::TableSpec other = Dense();
  other.dim = 3;
  Expect(client->CreateTable(other).status().code() == ps::Code::kAlreadyExists,
         "a table was made twice, differently");
  options.token = "wrong";
  options.connect_timeout = std::chrono::seconds(2);
  Expect(ps::Client::Connect(options).status().code() == ps::Code::kUnauthenticated,
         "a wrong token was taken");
  Expect(!ps::ClientOptions::FromEnvironment().ok(), "this is no task of a job");
}

// The servers come back from the checkpoint.
void CheckRestart(const std::string& directory) {
  const auto servers = StartServers(directory);
  Expect(servers[0]->restored_checkpoint() >= 0, "nothing was restored");
  auto client = Need(ps::Client::Connect(WorkerOptions(servers, ps::ClientOptions::kObserver)));
  const ps::Table dense = Need(client->CreateTable(Dense()));
  std::vector<float> row(kDim);
  Need(client->Wait(Need(client->Pull(dense, std::vector<ps::Key>{kRows - 1}, row))));
  Expect(row[0] == 10.0f, "a restored row differs");
}

}  // namespace

int main(int argc, char** argv) {
  Expect(argc == 2, "usage: app DIRECTORY");
  {
    const auto servers = StartServers(argv[1]);
    std::vector<std::thread> workers;
    for (int i = 0; i < kWorkers; ++i) workers.emplace_back(RunWorker, WorkerOptions(servers, i));
    for (std::thread& worker : workers) worker.join();
    Expect(servers[0]->counters().rows_pushed > 0, "the server counted nothing");
    CheckRefusals(servers);
  }
  CheckRestart(argv[1]);
  std::puts("door: all is as it should be");
}
