// A whole word2vec job in one process, for the tests of this folder: servers, workers with their
// own clients, and a text with a known structure.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/file.h"
#include "learn/task/parameter_server.h"
#include "learn/word2vec/worker.h"
#include "ps/client/admin.h"
#include "ps/server/server.h"

namespace shoal::learn::word2vec {

class FixedMembers final : public ps::Members {
 public:
  ps::MemberView Current() override {
    const std::lock_guard lock(mu_);
    return view_;
  }
  void Set(int server, std::string address) {
    const std::lock_guard lock(mu_);
    view_.servers.resize(std::max(view_.servers.size(), static_cast<size_t>(server) + 1));
    view_.servers[static_cast<size_t>(server)] = std::move(address);
    ++view_.generation;
  }
  void SetWorkers(int workers) { view_.workers = workers; }

 private:
  std::mutex mu_;
  ps::MemberView view_;
};

// Servers, and workers that run to completion.
class TestJob {
 public:
  TestJob(int servers, int workers, bool tcp)
      : servers_(servers),
        workers_(workers),
        tcp_(tcp),
        reporter_(pipe2(reports_, O_CLOEXEC | O_NONBLOCK) == 0 ? reports_[1] : -1) {
    members_.SetWorkers(workers);
    stops_ = std::vector<std::atomic<bool>>(static_cast<size_t>(workers));
    restarts_ = std::vector<std::atomic<uint64_t>>(static_cast<size_t>(workers));
    running_.resize(static_cast<size_t>(servers));
    for (int server = 0; server < servers; ++server) StartServer(server);
  }

  ~TestJob() {
    running_.clear();
    for (const int end : reports_) close(end);
  }

  // Waits until a worker has reported trained words; false after 30 s.
  bool AwaitTraining() {
    const TimePoint deadline = RealClock::Get()->Now() + std::chrono::seconds(30);
    std::string told;
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - RealClock::Get()->Now());
      pollfd wait = {reports_[0], POLLIN, 0};
      if (left.count() <= 0 || poll(&wait, 1, static_cast<int>(left.count())) <= 0) return false;
      char bytes[4096];
      const ssize_t got = read(reports_[0], bytes, sizeof bytes);
      if (got > 0) told.append(bytes, static_cast<size_t>(got));
      for (size_t end; (end = told.find('\n')) != std::string::npos; told.erase(0, end + 1)) {
        const std::string line = told.substr(0, end);
        if (line.find("\"phase\":\"train\"") != std::string::npos &&
            line.find("{\"step\":0,") == std::string::npos)
          return true;
      }
    }
  }

  void StartServer(int index) {
    ps::ServerOptions options;
    options.index = index;
    options.servers = servers_;
    options.workers = workers_;
    options.token = "token";
    options.shards = kShards;
    options.checkpoint_dir = checkpoint_dir;
    options.members = &members_;
    options.incarnation = ++lives_;
    if (!tcp_) {
      options.listen_host.clear();
      options.hub = hub_;
      options.inproc_name = "server-" + std::to_string(index);
    }
    running_[static_cast<size_t>(index)].reset();
    auto server = ps::Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status().message();
    members_.Set(index, tcp_ ? (*server)->address() : (*server)->inproc_address());
    running_[static_cast<size_t>(index)] = std::move(*server);
  }

  std::unique_ptr<ps::Client> Connect(int index) {
    ps::ClientOptions options;
    options.index = index;
    options.token = "token";
    options.hub = hub_;
    if (index >= 0) {
      std::atomic<uint64_t>& restarted = restarts_[static_cast<size_t>(index)];
      options.on_server_restart = [&restarted](int server, int64_t) {
        restarted.fetch_or(uint64_t{1} << server);
      };
    }
    auto client = ps::Client::Connect(std::move(options), &members_);
    EXPECT_TRUE(client.ok()) << client.status().message();
    return client.ok() ? std::move(*client) : nullptr;
  }

  Result<std::unique_ptr<ps::Admin>> ConnectAdmin() {
    ps::ClientOptions options;
    options.token = "token";
    options.hub = hub_;
    return ps::Admin::Connect(std::move(options), &members_);
  }

  bool Checkpoint() {
    auto admin = ConnectAdmin();
    return admin.ok() && (*admin)->Checkpoint().ok();
  }

  Result<WorkerOutcome> RunOne(int index) {
    const std::unique_ptr<ps::Client> client = Connect(index);
    if (client == nullptr) return Internal("no client");
    WorkerSetup setup;
    setup.index = index;
    setup.workers = workers_;
    setup.servers = servers_;
    setup.params = params;
    setup.sources = sources;
    setup.output = output;
    setup.scratch = dir.path();
    setup.checkpoints = checkpoints;
    if (data_cache_of) setup.data_cache = data_cache_of(index);
    setup.client = client.get();
    setup.reporter = &reporter_;
    setup.ended = [this, index] {
      if (at_exchange) at_exchange(index);
      const std::lock_guard lock(ended_mu_);
      return ended_;
    };
    setup.stop = &stops_[static_cast<size_t>(index)];
    setup.restarted_servers = &restarts_[static_cast<size_t>(index)];
    return RunWorker(setup);
  }

  std::vector<Result<WorkerOutcome>> RunAll() {
    std::vector<std::optional<Result<WorkerOutcome>>> outcomes(static_cast<size_t>(workers_));
    std::vector<std::thread> threads;
    for (int i = 0; i < workers_; ++i)
      threads.emplace_back([&, i] { outcomes[static_cast<size_t>(i)] = RunOne(i); });
    for (std::thread& thread : threads) thread.join();
    std::vector<Result<WorkerOutcome>> results;
    for (auto& outcome : outcomes) results.push_back(std::move(*outcome));
    return results;
  }

  // The workers that have ended according to the coordinator.
  void SetEnded(std::vector<int> workers) {
    const std::lock_guard lock(ended_mu_);
    ended_ = std::move(workers);
  }
  void Go(int worker) { stops_[static_cast<size_t>(worker)].store(false); }
  void Stop(int worker) { stops_[static_cast<size_t>(worker)].store(true); }
  const std::atomic<uint64_t>* lost(int worker) { return &restarts_[static_cast<size_t>(worker)]; }

  void WriteText(const std::string& name, const std::string& text) {
    const std::filesystem::path path = dir.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    sources.push_back(path.string());
  }

  TempDir dir = std::move(*TempDir::Create());
  std::filesystem::path output = dir.path() / "model";
  std::filesystem::path checkpoint_dir;
  std::vector<std::string> sources;
  Params params;
  bool checkpoints = false;
  std::function<DataCacheOptions(int index)> data_cache_of;
  // Called by the worker `index` whenever it exchanges totals, in its thread.
  std::function<void(int index)> at_exchange;

 private:
  const int servers_;
  const int workers_;
  const bool tcp_;
  std::mutex ended_mu_;
  std::vector<int> ended_;  // guarded by ended_mu_
  std::shared_ptr<ps::InProcessHub> hub_ = std::make_shared<ps::InProcessHub>();
  FixedMembers members_;
  int reports_[2] = {-1, -1};
  Reporter reporter_;
  std::vector<std::atomic<bool>> stops_;
  std::vector<std::atomic<uint64_t>> restarts_;
  std::vector<std::unique_ptr<ps::Server>> running_;
  int64_t lives_ = 0;
};

inline Params SmallParams() {
  Params params;
  params.dim = 24;
  params.sample = 0;
  params.min_count = 1;
  params.threads = 1;
  params.epochs = 5;
  params.alpha = 0.05;
  params.min_alpha = 1e-4;
  return params;
}

}  // namespace shoal::learn::word2vec
