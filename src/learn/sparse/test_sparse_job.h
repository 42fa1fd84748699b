// A whole training in one process: servers, workers with clients of their own, examples with a
// planted rule. Included by tests only.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <array>
#include <cmath>
#include <condition_variable>
#include <future>
#include <mutex>
#include <random>
#include <thread>
#include <tuple>

#include "base/file.h"
#include "data/text/test_text.h"
#include "learn/ffm/learner.h"
#include "learn/fm/learner.h"
#include "learn/logistic/learner.h"
#include "learn/sparse/dataset.h"
#include "learn/sparse/position.h"
#include "learn/sparse/predict.h"
#include "learn/sparse/worker.h"
#include "learn/task/parameter_server.h"
#include "model/save_model.h"
#include "ps/server/server.h"

namespace shoal::learn::sparse {

class FixedMembers final : public ps::Members {
 public:
  ps::MemberView Current() override {
    const std::lock_guard lock(mu_);
    return view_;
  }
  void Begin(int workers) {
    const std::lock_guard lock(mu_);
    view_ = {1, {}, workers};
  }
  void SetServer(size_t server, std::string address) {
    const std::lock_guard lock(mu_);
    view_.servers.resize(std::max(view_.servers.size(), server + 1));
    view_.servers[server] = std::move(address);
    ++view_.generation;
  }

 private:
  std::mutex mu_;
  ps::MemberView view_;
};

// 300 features, each with a hidden weight; labels are drawn by the logistic model.
inline std::string PlantedLines(uint64_t seed, int examples) {
  std::mt19937_64 weights_of(1);
  std::vector<double> weights(301);
  for (double& w : weights) w = std::normal_distribution<double>(0, 2)(weights_of);
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0; i < examples; ++i) {
    std::string features;
    double margin = 0.5;
    for (uint32_t f = 1; f <= 300; ++f) {
      if (random() % 20 != 0) continue;
      features += fmt::format(" {}:1", f);
      margin += weights[f];
    }
    const bool positive = std::bernoulli_distribution(1 / (1 + std::exp(-margin)))(random);
    text += (positive ? "1" : "-1") + features + "\n";
  }
  return text;
}

// Pairs of features that mean the opposite of what each means alone: no weights can say that.
inline std::string PlantedPairs(uint64_t seed, int examples) {
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0; i < examples; ++i) {
    const uint64_t a = random() % 20, b = random() % 20;
    const bool positive = (a % 2 == b % 2) != (random() % 20 == 0);
    text += fmt::format("{} {}:1 {}:1\n", positive ? 1 : 0, 1 + a, 21 + b);
  }
  return text;
}

// Three fields of ten features each: that of the first field means one thing beside the second
// field and another beside the third.
inline std::string PlantedFields(uint64_t seed, int examples) {
  std::mt19937_64 random(seed);
  std::string text;
  for (int i = 0; i < examples; ++i) {
    const uint64_t a = random() % 10, b = random() % 10, c = random() % 10;
    const bool with_b = (a % 2 == b % 2), with_c = (a / 2 % 2 == c % 2);
    const bool positive = (with_b && with_c) != (random() % 20 == 0);
    text += fmt::format("{} 0:{}:1 1:{}:1 2:{}:1\n", positive ? 1 : 0, a, 10 + b, 20 + c);
  }
  return text;
}

// Reads what a worker reports until it has ended so many epochs; the rest is read and dropped.
class Epochs {
 public:
  Epochs() {
    EXPECT_EQ(::pipe(ends_), 0);
    reader_ = std::thread([this] { Read(); });
  }
  ~Epochs() {
    ::close(ends_[1]);
    reader_.join();
    ::close(ends_[0]);
  }
  int fd() const { return ends_[1]; }
  void Await(int epochs) {
    std::unique_lock lock(mu_);
    more_.wait(lock, [&] { return seen_ >= epochs; });
  }

 private:
  void Read() {
    char block[4096];
    for (ssize_t got = 0; (got = ::read(ends_[0], block, sizeof block)) > 0;) {
      const std::lock_guard lock(mu_);
      text_.append(block, static_cast<size_t>(got));
      seen_ = 0;
      for (size_t at = 0; (at = text_.find("\"train_loss\"", at)) != text_.npos; ++at) ++seen_;
      more_.notify_all();
    }
  }
  int ends_[2] = {};
  std::mutex mu_;
  std::condition_variable more_;
  std::string text_;  // guarded by mu_
  int seen_ = 0;      // guarded by mu_
  std::thread reader_;
};

// A job of servers and workers in this process. Servers may be taken away while it runs.
class SparseJob : public testing::Test {
 protected:
  SparseJob() {
    EXPECT_TRUE(WriteFileAtomically(train_, PlantedLines(2, 6000)).ok());
    EXPECT_TRUE(WriteFileAtomically(test_, PlantedLines(3, 2000)).ok());
    params_.epochs = 3;
    params_.threads = 2;
    fm_.factor_alpha = 0.2;
  }

  void StartServer(size_t index) {
    ps::ServerOptions options;
    options.index = static_cast<int>(index);
    options.servers = static_cast<int>(servers_.size());
    options.workers = workers_;
    options.token = "token";
    options.shards = kShards;
    options.checkpoint_dir = checkpoint_dir_;
    servers_[index].reset();
    if (over_tcp_) {
      options.listen_host = "127.0.0.1";
    } else {
      options.listen_host.clear();
      options.hub = hub_;
      options.inproc_name = "server-" + std::to_string(index);
    }
    servers_[index] = ps::Server::Start(std::move(options)).value();
    members_.SetServer(index,
                       over_tcp_ ? servers_[index]->address() : servers_[index]->inproc_address());
  }

  void StartServers(int servers, int workers) {
    hub_ = std::make_shared<ps::InProcessHub>();
    workers_ = workers;
    members_.Begin(workers);
    servers_.clear();
    servers_.resize(static_cast<size_t>(servers));
    for (size_t i = 0; i < servers_.size(); ++i) StartServer(i);
  }

  std::vector<Result<WorkerOutcome>> Run(int servers, int workers, const char* output = "model") {
    StartServers(servers, workers);
    std::vector<std::optional<Result<WorkerOutcome>>> outcomes(static_cast<size_t>(workers));
    std::vector<std::thread> threads;
    for (int i = 0; i < workers; ++i)
      threads.emplace_back([&, i] { outcomes[static_cast<size_t>(i)] = One(i, output); });
    for (std::thread& thread : threads) thread.join();
    std::vector<Result<WorkerOutcome>> all;
    for (auto& outcome : outcomes) all.push_back(std::move(*outcome));
    return all;
  }

  Result<WorkerOutcome> One(int index, const char* output, const Reporter* reporter = nullptr) {
    ps::ClientOptions options;
    options.index = index;
    options.token = "token";
    options.hub = hub_;
    options.consistency = ps::Consistency::Ssp(kStaleness);
    std::atomic<uint64_t> restarted{0};
    options.on_server_restart = [&restarted](int server, int64_t) {
      restarted.fetch_or(uint64_t{1} << server);
    };
    TRY_ASSIGN(const auto client, ps::Client::Connect(std::move(options), &members_));
    WorkerSetup setup;
    setup.index = index;
    setup.workers = workers_;
    setup.servers = static_cast<int>(servers_.size());
    setup.default_threads = default_threads_;
    setup.params = params_;
    setup.algorithm = by_field_ ? "ffm" : factorize_ ? "fm" : "logistic";
    setup.params.keep_fields = by_field_;
    if (!from_.empty()) setup.params.from = (dir_.path() / from_).string();
    fm::Params factors = fm_;
    logistic::Params weights = linear_;
    ffm::Params by_field = ffm_;
    by_field.fields = params_.fields;
    factors.loss = weights.loss = by_field.loss = params_.loss;
    factors.quantile = weights.quantile = params_.quantile;
    factors.simd = weights.simd = by_field.simd = params_.simd;
    TRY_ASSIGN(const ffm::FfmLearner ffm, ffm::FfmLearner::Make(by_field));
    TRY_ASSIGN(const fm::FmLearner fm, fm::FmLearner::Make(factors));
    TRY_ASSIGN(const logistic::LogisticLearner linear, logistic::LogisticLearner::Make(weights));
    setup.learner = by_field_    ? static_cast<const Learner*>(&ffm)
                    : factorize_ ? static_cast<const Learner*>(&fm)
                                 : &linear;
    setup.format = format_;
    setup.parameters = {{"label", params_.label}, {"categorical", params_.categorical}};
    const auto of_worker = static_cast<size_t>(index);
    if (of_worker < threads_of_.size()) setup.params.threads = threads_of_[of_worker];
    setup.sources = of_worker < sources_of_.size() ? sources_of_[of_worker] : sources_;
    if (uses_test_) setup.held_out.test = {test_.string()};
    setup.held_out.validation = validation_;
    setup.output = dir_.path() / output;
    setup.checkpoints = checkpoints_;
    setup.client = client.get();
    setup.reporter = reporter != nullptr ? reporter : &reporter_;
    setup.stop = &stops_[of_worker];
    setup.ended = [this] {
      const std::lock_guard lock(ended_mu_);
      return ended_;
    };
    setup.look = look_;
    setup.data_cache.keep = cache_data_;
    setup.restarted_servers = &restarted;
    return RunWorker(setup);
  }

  std::unique_ptr<ps::Client> ConnectAs(int index) {
    ps::ClientOptions options;
    options.index = index;
    options.token = "token";
    options.hub = hub_;
    options.consistency = ps::Consistency::Asp();
    return ps::Client::Connect(std::move(options), &members_).value();
  }

  // One of two workers as the servers see it: it has read its part, which it says has 40 examples.
  std::unique_ptr<ps::Client> Played(int index) {
    auto client = ConnectAs(index);
    const data::Corpus corpus = data::Corpus::Open(sources_).value();
    const auto part = static_cast<uint64_t>(index);
    const data::Division division = DivisionFor(corpus, format_, 2);
    const PartSummary share = {corpus.fingerprint(),
                               1,
                               part,
                               2,
                               division.blocks,
                               corpus.RangesOf(part, division).value(),
                               40,
                               {301, 0}};
    EXPECT_TRUE(client->PutBlob(fmt::format("share/{}", index), EncodePartSummary(share)).ok());
    return client;
  }

  Result<Predictions> PredictTest(const char* output = "model") {
    TRY_ASSIGN(const model::FactorModel model, model::ReadFactorModel(dir_.path() / output));
    TRY_ASSIGN(const json::object metadata, model::ReadModelMetadata(dir_.path() / output));
    return Predict(model, metadata, {test_.string()}, {"", 3});
  }

  TempDir dir_ = TempDir::Create().value();
  std::filesystem::path train_ = dir_.path() / "train.svm";
  std::filesystem::path test_ = dir_.path() / "test.svm";
  CommonParams params_;
  logistic::Params linear_;
  fm::Params fm_;
  ffm::Params ffm_;
  bool factorize_ = false;
  bool by_field_ = false;
  bool over_tcp_ = false;
  bool checkpoints_ = false;
  std::filesystem::path checkpoint_dir_;
  data::ExampleFormat format_ = data::ExampleFormat::kLibsvm;
  Reporter reporter_{-1};
  std::vector<std::string> sources_ = {train_.string()};
  std::vector<std::string> validation_;
  bool uses_test_ = true;
  std::string from_;  // a model to continue, in dir_
  // By worker; empty: as all.
  std::vector<std::vector<std::string>> sources_of_;
  std::vector<int64_t> threads_of_;
  int64_t default_threads_ = 1;
  std::array<std::atomic<bool>, 8> stops_{};
  CacheMode cache_data_ = CacheMode::kAuto;
  Duration look_ = std::chrono::seconds(10);
  std::mutex ended_mu_;
  std::vector<int> ended_;  // guarded by ended_mu_; as the coordinator says

  std::shared_ptr<ps::InProcessHub> hub_;
  FixedMembers members_;
  int workers_ = 1;
  std::vector<std::unique_ptr<ps::Server>> servers_;
};

}  // namespace shoal::learn::sparse
