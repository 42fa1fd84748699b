// Whole jobs in one process: servers, workers with clients of their own, a text with a planted
// structure, a model on disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "learn/parameter_server.h"
#include "learn/word2vec/job_progress.h"
#include "learn/word2vec/planted.h"
#include "learn/word2vec/row_cache.h"
#include "learn/word2vec/worker.h"
#include "model/save.h"
#include "model/vectors.h"
#include "ps/admin.h"
#include "ps/server.h"

namespace shoal::learn::word2vec {
namespace {

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

// A job: servers, and workers that run until they are done.
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

  // Returns when a worker has reported that it has trained words; false after 30 s.
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
    options.life = ++lives_;
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
    if (near_of) setup.near = near_of(index);
    setup.client = client.get();
    setup.reporter = &reporter_;
    setup.ended = [this] {
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

  // Workers that have, as the coordinator says.
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
  std::function<NearOptions(int index)> near_of;

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

Params SmallParams() {
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

// Mean cosine of words of one group minus that of words of different groups.
double Contrast(const model::Vectors& vectors) {
  double within = 0, between = 0, n_within = 0, n_between = 0;
  for (size_t a = 0; a < vectors.words.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      double dot = 0, aa = 0, bb = 0;
      for (size_t k = 0; k < vectors.dim; ++k) {
        dot += static_cast<double>(vectors.row(a)[k]) * vectors.row(b)[k];
        aa += static_cast<double>(vectors.row(a)[k]) * vectors.row(a)[k];
        bb += static_cast<double>(vectors.row(b)[k]) * vectors.row(b)[k];
      }
      const bool same = vectors.words[a][1] == vectors.words[b][1];
      (same ? within : between) += dot / std::sqrt(aa * bb);
      (same ? n_within : n_between) += 1;
    }
  }
  return within / n_within - between / n_between;
}

void ExpectGoodModel(const TestJob& job) {
  const auto vectors = model::ReadVectors(job.output);
  ASSERT_TRUE(vectors.ok()) << vectors.status().message();
  EXPECT_EQ(vectors->words.size(), kGroups * kGroupWords);
  EXPECT_EQ(vectors->dim, 24u);
  EXPECT_GT(Contrast(*vectors), 0.4);
}

class WholeJob : public testing::TestWithParam<std::tuple<int, int, int, bool>> {};
INSTANTIATE_TEST_SUITE_P(Shapes, WholeJob,
                         testing::Values(std::tuple(1, 1, 1, false), std::tuple(1, 1, 2, false),
                                         std::tuple(2, 3, 1, false), std::tuple(2, 3, 1, true),
                                         std::tuple(1, 2, 2, true)));

TEST_P(WholeJob, LearnsThePlantedStructure) {
  const auto [servers, workers, threads, tcp] = GetParam();
  TestJob job(servers, workers, tcp);
  job.params = SmallParams();
  job.params.threads = threads;
  job.params.epochs = 10;
  job.WriteText("a.txt", PlantedText(2000, 1));
  job.WriteText("b.txt", PlantedText(2000, 2));
  uint64_t words = 0;
  for (const auto& outcome : job.RunAll()) {
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_FALSE(outcome->drained);
    words += outcome->words;
  }
  EXPECT_EQ(words, 4000u * 12 * 10);
  ExpectGoodModel(job);
  const auto facts = model::ReadModelFacts(job.output);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->at("parameters").at("dim").as_string(), "24");
  EXPECT_EQ(facts->at("data").at("words").to_number<uint64_t>(), 4000u * 12);
  EXPECT_EQ(facts->at("training").at("words").to_number<uint64_t>(), words);
  const json::array& curve = facts->at("loss").as_array();
  ASSERT_GE(curve.size(), 1u);
}

// Two hosts whose caches hold one file each, and workers that have changed places since.
TEST(Worker, PartsFollowTheHostsThatHoldThem) {
  const TempDir hosts = TempDir::Create().value();
  const TempDir data = TempDir::Create().value();
  for (const char* name : {"a.txt", "b.txt"})
    std::ofstream(data.path() / name) << PlantedText(2000, 1);
  for (const bool swapped : {false, true, true}) {
    TestJob job(1, 2, false);
    job.params = SmallParams();
    job.sources = {data.path() / "a.txt", data.path() / "b.txt"};
    job.near_of = [&](int index) {
      NearOptions near;
      near.cache = hosts.path() / ((index == 1) != swapped ? "y" : "x");
      near.on_network = [](const std::filesystem::path&) { return true; };
      return near;
    };
    uint64_t words = 0;
    for (const auto& outcome : job.RunAll()) {
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      words += outcome->words;
    }
    EXPECT_EQ(words, 4000u * 12 * 5);
    ExpectGoodModel(job);
    for (const char* host : {"x", "y"}) {
      int names = 0;
      for (const auto& entry : std::filesystem::directory_iterator(hosts.path() / host / "names"))
        names += entry.exists();
      EXPECT_EQ(names, 1) << "a host has copied what the other holds";
    }
  }
}

TEST(Worker, HierarchicalSoftmaxLearnsThePlantedStructure) {
  for (const bool cbow : {false, true}) {
    for (const auto& [workers, threads] : {std::pair(1, 1), std::pair(1, 2), std::pair(3, 1)}) {
      TestJob job(2, workers, workers > 1);
      job.params = SmallParams();
      job.params.hs = true;
      job.params.cbow = cbow;
      job.params.threads = threads;
      job.params.epochs = 10;
      job.WriteText("a.txt", PlantedText(3000, 1));
      for (const auto& outcome : job.RunAll())
        ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      ExpectGoodModel(job);
    }
  }
}

TEST(Worker, RoundedRowsLearnTheSameWithFewerBytes) {
  double bytes[4] = {};
  const char* const wires[] = {"f32", "bf16", "int8_bf16", "int8"};
  for (int i = 0; i < 4; ++i) {
    TestJob job(2, 3, true);
    job.params = SmallParams();
    job.params.deterministic = true;  // the same exchanges whatever the type
    job.params.epochs = 10;
    job.params.dim = 100;
    job.params.wire = wires[i];
    job.WriteText("a.txt", PlantedText(2000, 1));
    for (const auto& outcome : job.RunAll()) {
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      bytes[i] = std::max(bytes[i], outcome->exchanged_bytes);
    }
    const auto vectors = model::ReadVectors(job.output);
    ASSERT_TRUE(vectors.ok()) << vectors.status().message();
    EXPECT_GT(Contrast(*vectors), 0.4) << wires[i];
  }
  EXPECT_LE(bytes[1], 0.51 * bytes[0]);
  EXPECT_LE(bytes[2], 0.385 * bytes[0]);
  EXPECT_LE(bytes[3], 0.27 * bytes[0]);
}

TEST(Worker, DeterministicRunsGiveTheSameBytes) {
  std::string digests[2];
  for (std::string& digest : digests) {
    TestJob job(2, 3, false);
    job.params = SmallParams();
    job.params.deterministic = true;
    job.params.epochs = 2;
    job.WriteText("a.txt", PlantedText(1500, 1));
    for (const auto& outcome : job.RunAll()) {
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      if (!outcome->digest.empty()) digest = outcome->digest;
    }
  }
  EXPECT_FALSE(digests[0].empty());
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(Worker, MoreWorkersThanLines) {
  TestJob job(1, 4, false);
  job.params = SmallParams();
  job.WriteText("a.txt", "one two one two\n");
  for (const auto& outcome : job.RunAll()) ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  const auto vectors = model::ReadVectors(job.output);
  ASSERT_TRUE(vectors.ok());
  EXPECT_EQ(vectors->words.size(), 2u);
}

TEST(Worker, TooFewWordsIsOneSentence) {
  TestJob job(1, 1, false);
  job.params = SmallParams();
  job.params.min_count = 100;
  job.WriteText("a.txt", "one two one two\n");
  const auto outcome = job.RunOne(0);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), Code::kFailedPrecondition);
  EXPECT_NE(outcome.status().message().find("100"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(job.output));
}

TEST(Worker, AFileThatIsNotThereIsNamed) {
  TestJob job(1, 1, false);
  job.params = SmallParams();
  job.sources.push_back((job.dir.path() / "missing.txt").string());
  const auto outcome = job.RunOne(0);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.status().message().find("missing.txt"), std::string::npos);
}

TEST(Worker, SomebodysFilesAreNeverOverwritten) {
  TestJob job(1, 1, false);
  job.params = SmallParams();
  job.WriteText("a.txt", PlantedText(10, 1));
  std::filesystem::create_directory(job.output);
  std::ofstream(job.output / "thesis.tex") << "years of work";
  const auto outcome = job.RunOne(0);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.status().message().find("thesis.tex"), std::string::npos);
}

TEST(Worker, ADrainedJobSavesWhatItHas) {
  TestJob job(1, 2, false);
  job.params = SmallParams();
  job.params.epochs = 100000;  // nobody waits for that
  job.WriteText("a.txt", PlantedText(2000, 1));
  std::thread stopper([&] {
    EXPECT_TRUE(job.AwaitTraining());
    job.Stop(0);
    job.Stop(1);
  });
  const auto outcomes = job.RunAll();
  stopper.join();
  for (const auto& outcome : outcomes) {
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_TRUE(outcome->drained);
  }
  const auto facts = model::ReadModelFacts(job.output);
  ASSERT_TRUE(facts.ok());
  EXPECT_TRUE(facts->at("training").at("drained").as_bool());
}

TEST(Worker, ALostWorkerGoesOnWhereItWas) {
  TestJob job(1, 1, false);
  job.params = SmallParams();
  job.params.epochs = 40;
  job.params.exchange_words = 2000;
  job.params.stale_words = 60000;
  job.checkpoints = true;
  job.WriteText("a.txt", PlantedText(2000, 1));
  // The first life is stopped when it has told where it is; what the servers know stays.
  std::thread stopper([&] {
    EXPECT_TRUE(job.AwaitTraining());
    job.Stop(0);
  });
  const auto first = job.RunOne(0);
  stopper.join();
  ASSERT_TRUE(first.ok()) << first.status().message();
  ASSERT_TRUE(first->drained);
  ASSERT_GT(first->words, 0u);
  ASSERT_LT(first->words, 2000u * 12 * 40);

  job.Go(0);
  const auto second = job.RunOne(0);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_FALSE(second->drained);
  EXPECT_EQ(second->words, 2000u * 12 * 40);  // all of them, those of the first life included
  ExpectGoodModel(job);
  const auto facts = model::ReadModelFacts(job.output);
  ASSERT_TRUE(facts.ok());
  // The speed is of the second life alone.
  EXPECT_NEAR(second->words_per_second * facts->at("training").at("seconds").to_number<double>(),
              static_cast<double>(second->words - first->words), 1);
}

TEST(Worker, WhoHasEndedStaysEndedWhenAServerForgetsIt) {
  TestJob job(1, 2, true);
  const auto first = job.Connect(0), second = job.Connect(1);
  const auto mine = *JobProgress::Make(first.get(), 0, 2);
  {
    const auto theirs = *JobProgress::Make(second.get(), 1, 2);
    JobProgress::Mine ended;
    ended.words = 1000;
    ended.state = WorkerState::kFinished;
    ASSERT_TRUE(theirs->Exchange(ended).ok());
  }
  JobProgress::Mine running;
  running.words = 10;
  auto all = mine->Exchange(running);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->running, 1);
  job.StartServer(0);  // without a checkpoint: it knows of nobody
  all = mine->Exchange(running);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->running, 1);
  EXPECT_EQ(all->words, 1010u);
}

// Worker 1 has ended, which only the server knew and worker 0 had heard; then both of these die.
TEST(Worker, WhoHasEndedIsTheCoordinatorsWord) {
  TestJob job(1, 2, true);
  job.params = SmallParams();
  job.params.epochs = 40;
  job.params.exchange_words = 2000;
  job.params.stale_words = 60000;
  job.checkpoints = true;
  job.checkpoint_dir = job.dir.path() / "checkpoints";
  job.StartServer(0);
  job.WriteText("a.txt", PlantedText(2000, 1));
  std::thread saver([&] {
    EXPECT_TRUE(job.AwaitTraining());
    EXPECT_TRUE(job.Checkpoint());  // in which both workers run
    job.Stop(0);
  });
  const auto outcomes = job.RunAll();
  saver.join();
  for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  std::filesystem::remove_all(job.output);

  job.StartServer(0);
  job.Go(0);
  job.SetEnded({1});
  const auto again = job.RunOne(0);  // for ever, if it waited for worker 1
  // Of worker 1 the servers have what the checkpoint holds: that is no whole training.
  EXPECT_EQ(again.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(again.status().message().find("the job has trained "), 0u) << again.status().message();
  EXPECT_FALSE(std::filesystem::exists(job.output));
}

// Worker 1 is told to end by somebody else than the job.
TEST(Worker, OneThatWasToldToEndEarlyIsWaitedForOrFailsTheJob) {
  for (const bool comes_again : {true, false}) {
    TestJob job(1, 2, false);
    job.params = SmallParams();
    job.params.epochs = 80;
    job.params.exchange_words = 2000;
    job.params.stale_words = 60000;
    job.WriteText("a.txt", PlantedText(2000, 1));
    std::optional<Result<WorkerOutcome>> first, second;
    std::thread zero([&] { first = job.RunOne(0); });
    std::thread one([&] { second = job.RunOne(1); });
    EXPECT_TRUE(job.AwaitTraining());
    job.Stop(1);
    one.join();
    ASSERT_TRUE(second->ok()) << second->status().message();
    ASSERT_TRUE((*second)->drained);
    if (comes_again) {
      job.Go(1);
      second = job.RunOne(1);
      ASSERT_TRUE(second->ok()) << second->status().message();
    } else {
      job.SetEnded({1});
    }
    zero.join();
    if (comes_again) {
      ASSERT_TRUE(first->ok()) << first->status().message();
      EXPECT_EQ((*first)->job.trained, 2000u * 12 * 80);
      EXPECT_EQ((*first)->job.counted, 2000u * 12);
      EXPECT_FALSE((*first)->drained);
    } else {
      EXPECT_EQ(first->status().message().find("the job has trained "), 0u)
          << first->status().message();
    }
  }
}

TEST(Worker, AServerThatComesBackEmptyIsGivenTheRowsAgain) {
  TestJob job(2, 2, true);
  job.params = SmallParams();
  job.params.epochs = 60;
  job.params.stale_words = 60000;
  job.WriteText("a.txt", PlantedText(2000, 1));
  std::thread killer([&] {
    EXPECT_TRUE(job.AwaitTraining());
    job.StartServer(1);
  });
  const auto outcomes = job.RunAll();
  killer.join();
  for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  ExpectGoodModel(job);
}

// Moves shard 0, in which are rows 0 and 256 of any table, to server 1, and waits until the client
// knows.
void MoveShardZero(TestJob* job, ps::Client* client, const ps::TableRef& table) {
  const auto admin = job->ConnectAdmin();
  ASSERT_TRUE(admin.ok());
  const auto moved = (*admin)->MoveShard(0, 1, 0);
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  const TimePoint deadline = RealClock::Get()->Now() + std::chrono::seconds(20);
  while (client->ServerOf(table, 0) != 1 && RealClock::Get()->Now() < deadline)
    std::this_thread::yield();
  ASSERT_EQ(client->ServerOf(table, 0), 1);
}

void TestRestore(bool moves) {
  constexpr uint64_t kRows = 1000;
  TestJob job(2, 1, true);
  const std::unique_ptr<ps::Client> client = job.Connect(0);
  ps::TableRef tables[kTables];
  for (const TableKind kind : {kInput, kOutput}) {
    ps::TableSpec spec;
    spec.name = kind == kInput ? "input" : "output";
    spec.rows = kRows;
    spec.dim = 20;
    const auto table = client->CreateTable(spec);
    ASSERT_TRUE(table.ok());
    tables[kind] = *table;
  }
  const auto cache = RowCache::Make(client.get(), *ChooseKernels("auto"), tables, job.lost(0));
  ASSERT_TRUE(cache.ok());
  ASSERT_TRUE((*cache)->Load().ok());
  for (const TableKind kind : {kInput, kOutput}) {
    for (uint64_t row = 0; row < kRows; ++row)
      (*cache)->local(kind).row(row)[3] = static_cast<float>(row + 1);
  }
  ASSERT_TRUE((*cache)->FlushAll().ok());
  EXPECT_EQ(client->ServerOf(tables[kInput], 0), 0);
  if (moves) MoveShardZero(&job, client.get(), tables[kInput]);

  job.StartServer(1);
  const auto see = [&](TableKind kind) {
    std::vector<float> rows(kRows * 20);
    EXPECT_TRUE(client->PullRange(tables[kind], 0, kRows, ps::Rows(rows.data(), 20)).ok());
    return rows;
  };
  const std::vector<float> lost = see(kInput);
  EXPECT_EQ(lost[0 * 20 + 3], moves ? 0 : 1);
  EXPECT_EQ(lost[1 * 20 + 3], 0);
  EXPECT_EQ(lost[2 * 20 + 3], 3);
  EXPECT_TRUE((*cache)->suspended());
  ASSERT_TRUE((*cache)->Restore(1).ok());
  for (const TableKind kind : {kInput, kOutput}) {
    const std::vector<float> rows = see(kind);
    for (uint64_t row = 0; row < kRows; ++row)
      ASSERT_EQ(rows[row * 20 + 3], static_cast<float>(row + 1)) << row;
  }
}

TEST(RowCache, RestoreGivesAnEmptyServerItsRowsAndLeavesTheOthersAlone) { TestRestore(false); }

TEST(RowCache, RestoreGivesAnEmptyServerTheRowsThatCameToItAsWell) { TestRestore(true); }

// What the servers have and what is still in L − B is all that the rows were moved by.
TEST(RowCache, WhatRoundingLosesStaysInTheRow) {
  constexpr uint64_t kRows = 50;
  constexpr uint32_t kDim = 40;
  for (const char* wire : {"bf16", "int8_bf16", "int8"}) {
    TestJob job(1, 1, true);
    const std::unique_ptr<ps::Client> client = job.Connect(0);
    ps::TableRef tables[kTables];
    for (const TableKind kind : {kInput, kOutput}) {
      ps::TableSpec spec;
      spec.name = kind == kInput ? "input" : "output";
      spec.rows = kRows;
      spec.dim = kDim;
      const auto table = client->CreateTable(spec);
      ASSERT_TRUE(table.ok());
      tables[kind] = *table;
    }
    const auto cache = RowCache::Make(client.get(), *ChooseKernels("auto"), tables, nullptr);
    ASSERT_TRUE(cache.ok());
    Params params;
    params.wire = wire;
    (*cache)->set_wire(WireOf(params));
    ASSERT_TRUE((*cache)->Load().ok());
    Random random(7);
    std::vector<double> moved(kRows * kDim);
    double largest = 0;  // step
    std::vector<float> rows(kRows * kDim);
    for (int round = 0; round < 40; ++round) {
      for (size_t i = 0; i < moved.size(); ++i) {
        const float step = random.Unit() * 0.01f - 0.003f;
        largest = std::max(largest, std::abs(static_cast<double>(step)));
        (*cache)->local(kInput).row(i / kDim)[i % kDim] += step;
        moved[i] += static_cast<double>(step);
      }
      ASSERT_TRUE((*cache)->FlushAll().ok());
    }
    ASSERT_TRUE(client->PullRange(tables[kInput], 0, kRows, ps::Rows(rows.data(), kDim)).ok());
    for (size_t i = 0; i < moved.size(); ++i) {
      const double kept = static_cast<double>((*cache)->local(kInput).row(i / kDim)[i % kDim]) -
                          static_cast<double>((*cache)->base(kInput).row(i / kDim)[i % kDim]);
      ASSERT_NEAR(rows[i] + kept, moved[i], 2e-6) << wire;
      ASSERT_LT(std::abs(kept), 2 * largest / 127) << wire;
    }
  }
}

}  // namespace
}  // namespace shoal::learn::word2vec
