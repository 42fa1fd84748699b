// Whole jobs in one process: servers, workers with clients of their own, a text with a planted
// structure, a model on disk.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <latch>
#include <thread>

#include "base/file.h"
#include "learn/task/parameter_server.h"
#include "learn/word2vec/exchange/job_progress.h"
#include "learn/word2vec/test_job.h"
#include "learn/word2vec/trainer/planted_text.h"
#include "learn/word2vec/worker.h"
#include "model/save_model.h"
#include "model/vectors.h"
#include "ps/client/admin.h"
#include "ps/server/server.h"

namespace shoal::learn::word2vec {
namespace {

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

// Returns when the servers have heard of `worker` of two that it is in that state; false after 30
// s.
bool AwaitState(ps::Client* client, uint64_t worker, WorkerState state) {
  ps::TableSpec spec;
  spec.name = "progress";
  spec.rows = 2;
  spec.dim = JobProgress::kWidth;
  const auto table = client->CreateTable(spec);
  const TimePoint deadline = RealClock::Get()->Now() + std::chrono::seconds(30);
  while (table.ok() && RealClock::Get()->Now() < deadline) {  // poll
    std::array<float, JobProgress::kWidth> row{};
    const Status pulled =
        client->PullRange(*table, worker, 1, ps::Rows(row.data(), JobProgress::kWidth));
    if (!pulled.ok()) return false;
    if (std::lround(row[JobProgress::kStateColumn]) == static_cast<long>(state)) return true;
    std::this_thread::yield();
  }
  return false;
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
  const auto metadata = model::ReadModelMetadata(job.output);
  ASSERT_TRUE(metadata.ok());
  EXPECT_EQ(metadata->at("parameters").at("dim").as_string(), "24");
  EXPECT_EQ(metadata->at("data").at("words").to_number<uint64_t>(), 4000u * 12);
  EXPECT_EQ(metadata->at("training").at("words").to_number<uint64_t>(), words);
  const json::array& curve = metadata->at("loss").as_array();
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
    job.data_cache_of = [&](int index) {
      DataCacheOptions near;
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

TEST(Worker, WordsWithoutNeighboursLeaveTheOldModel) {
  for (const int workers : {1, 2}) {
    TestJob job(1, workers, false);
    job.params = SmallParams();
    job.WriteText("good.txt", PlantedText(100, 1));
    for (const auto& outcome : job.RunAll()) ASSERT_TRUE(outcome.ok());
    const std::string digest = model::DigestOf(job.output).value();
    TestJob again(1, workers, false);
    again.params = SmallParams();
    std::string list;
    for (int i = 0; i < 300; ++i) list += "word" + std::to_string(i % 7) + "\n";
    again.WriteText("list.txt", list);
    again.output = job.output;
    const auto outcomes = again.RunAll();
    EXPECT_EQ(outcomes.front().status().code(), Code::kFailedPrecondition);
    EXPECT_NE(outcomes.front().status().message().find("on one line"), std::string::npos);
    EXPECT_EQ(model::DigestOf(job.output).value(), digest);
  }
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
  const auto metadata = model::ReadModelMetadata(job.output);
  ASSERT_TRUE(metadata.ok());
  EXPECT_TRUE(metadata->at("training").at("drained").as_bool());
}

TEST(Worker, AStopBeforeTheFirstWordLeavesTheOldModel) {
  TestJob job(1, 1, false);
  job.params = SmallParams();
  job.WriteText("a.txt", PlantedText(100, 1));
  ASSERT_TRUE(job.RunOne(0).ok());
  const std::string digest = model::DigestOf(job.output).value();
  TestJob again(1, 1, false);
  again.params = job.params;
  again.sources = job.sources;
  again.output = job.output;
  again.Stop(0);
  EXPECT_EQ(again.RunOne(0).status().code(), Code::kCancelled);
  EXPECT_EQ(model::DigestOf(job.output).value(), digest);
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
  // A file that came meanwhile costs nothing of what was trained.
  std::ofstream(job.output / "notes.txt") << "a person's";
  const auto second = job.RunOne(0);
  ASSERT_TRUE(second.ok()) << second.status().message();
  EXPECT_TRUE(std::filesystem::exists(job.output / "notes.txt"));
  EXPECT_FALSE(second->drained);
  EXPECT_EQ(second->words, 2000u * 12 * 40);  // all of them, those of the first life included
  ExpectGoodModel(job);
  const auto metadata = model::ReadModelMetadata(job.output);
  ASSERT_TRUE(metadata.ok());
  // The speed is of the second life alone.
  EXPECT_NEAR(second->words_per_second * metadata->at("training").at("seconds").to_number<double>(),
              static_cast<double>(second->words - first->words), 1);
}

TEST(Worker, WhoHasEndedStaysEndedWhenAServerForgetsIt) {
  TestJob job(1, 2, true);
  const auto first = job.Connect(0), second = job.Connect(1);
  const auto mine = *JobProgress::Make(first.get(), 0, 2);
  {
    const auto theirs = *JobProgress::Make(second.get(), 1, 2);
    JobProgress::WorkerTotals ended;
    ended.words = 1000;
    ended.state = WorkerState::kFinished;
    ASSERT_TRUE(theirs->Exchange(ended).ok());
  }
  JobProgress::WorkerTotals running;
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
    const auto observer = job.Connect(-1);
    EXPECT_TRUE(AwaitState(observer.get(), 1, WorkerState::kFinished));
    job.Stop(1);  // it waits for worker 0, which may come again
  });
  const auto outcomes = job.RunAll();
  saver.join();
  for (const auto& outcome : outcomes) ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  std::filesystem::remove_all(job.output);

  job.StartServer(0);
  job.Go(0);
  job.Go(1);
  job.SetEnded({1});
  const auto again = job.RunOne(0);  // for ever, if it waited for worker 1
  // Of worker 1 the servers have what the checkpoint holds: that is no whole training.
  EXPECT_EQ(again.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(again.status().message().find("the job has trained "), 0u) << again.status().message();
  EXPECT_FALSE(std::filesystem::exists(job.output));
}

// Worker 1 has finished; before worker 0 hears its last totals, the server dies and comes back from
// a checkpoint of before them.
TEST(Worker, LastTotalsSurviveTheServer) {
  TestJob job(1, 2, true);
  job.params = SmallParams();
  job.params.epochs = 40;
  job.checkpoints = true;
  job.checkpoint_dir = job.dir.path() / "checkpoints";
  job.StartServer(0);
  job.WriteText("a.txt", PlantedText(2000, 1));
  std::atomic<bool> held = false;
  std::latch release(1);
  job.at_exchange = [&](int index) {
    if (index == 0 && held.load()) release.wait();
  };
  std::optional<Result<WorkerOutcome>> first, second;
  std::thread zero([&] { first = job.RunOne(0); });
  std::thread one([&] {
    second = job.RunOne(1);
    job.SetEnded({1});
  });
  EXPECT_TRUE(job.AwaitTraining());
  EXPECT_TRUE(job.Checkpoint());
  held.store(true);
  const auto observer = job.Connect(-1);
  EXPECT_TRUE(AwaitState(observer.get(), 1, WorkerState::kFinished));
  job.StartServer(0);
  release.count_down();
  zero.join();
  one.join();
  ASSERT_TRUE(first->ok()) << first->status().message();
  ASSERT_TRUE(second->ok()) << second->status().message();
  EXPECT_EQ((*first)->job.trained, 2000u * 12 * 40);
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

}  // namespace
}  // namespace shoal::learn::word2vec
