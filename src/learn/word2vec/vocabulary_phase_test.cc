// Workers agree on threads, parts and the vocabulary while the first server restarts empty and
// workers end or restart.
#include "learn/word2vec/vocabulary_phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/clock.h"
#include "data/text/word_counts.h"
#include "learn/word2vec/test_job.h"
#include "learn/word2vec/trainer/planted_text.h"

namespace shoal::learn::word2vec {
namespace {

constexpr auto kTimeout = std::chrono::seconds(30);

void Prepare(TestJob* job) {
  job->params = SmallParams();
  job->params.epochs = 2;
  job->WriteText("a.txt", PlantedText(400, 1));
  job->WriteText("b.txt", PlantedText(400, 2));
}

// Runs a worker; stops it if it does not end by itself.
std::future<Result<WorkerOutcome>> Begin(TestJob* job, int worker) {
  return std::async(std::launch::async, [job, worker] { return job->RunOne(worker); });
}

Result<WorkerOutcome> End(TestJob* job, int worker, std::future<Result<WorkerOutcome>>* run) {
  if (run->wait_for(kTimeout) != std::future_status::ready) {
    ADD_FAILURE() << "worker " << worker << " waits for ever";
    job->Stop(worker);
  }
  return run->get();
}

bool Await(const std::function<bool()>& done) {
  const TimePoint deadline = RealClock::Get()->Now() + kTimeout;
  while (!done()) {
    if (RealClock::Get()->Now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// The state that worker 1 leaves if it is killed here.
void TellCounts(TestJob* job, ps::Client* client) {
  const auto corpus = data::Corpus::Open(job->sources);
  ASSERT_TRUE(corpus.ok());
  const auto counts = data::CountShards(*corpus, 1, 2, 2);
  ASSERT_TRUE(counts.ok());
  ASSERT_TRUE(client->PutBlob("counts/1", counts->Encode()).ok());
}

// Seed 981301 and similar ones: worker 0 has the vocabulary and trains when server 0 restarts
// empty; worker 1 has not yet asked for the vocabulary.
TEST(VocabularyPhase, LateWorkersGetTheVocabularyAfterAServerRestart) {
  TestJob job(2, 2, false);
  Prepare(&job);
  TellCounts(&job, job.Connect(1).get());
  auto first = Begin(&job, 0);
  ASSERT_TRUE(job.AwaitTraining());
  job.StartServer(0);
  auto second = Begin(&job, 1);
  const auto outcome = End(&job, 1, &second);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  const auto all = End(&job, 0, &first);
  EXPECT_TRUE(all.ok()) << all.status().message();
}

TEST(VocabularyPhase, TheNumberOfThreadsIsToldAgainToo) {
  TestJob job(1, 2, false);
  Prepare(&job);
  job.params.threads = 0;
  auto first = Begin(&job, 0);
  {
    const auto other = job.Connect(1);  // asks, and dies
    ASSERT_TRUE(other->PutBlob("asks-threads/1", "").ok());
    ASSERT_TRUE(Await([&] { return other->GetBlob("threads").ok(); }));
  }
  job.StartServer(0);
  auto second = Begin(&job, 1);
  EXPECT_TRUE(End(&job, 1, &second).ok());
  EXPECT_TRUE(End(&job, 0, &first).ok());
}

// Worker 1 has ended; then server 0 and worker 0 are lost, with all of their state.
TEST(VocabularyPhase, PartsOfEndedWorkersAreCounted) {
  TestJob job(2, 2, false);
  Prepare(&job);
  job.params.threads = 0;
  job.SetEnded({1});
  auto alone = Begin(&job, 0);
  const auto outcome = End(&job, 0, &alone);
  // Both parts are counted; worker 1's training is lost, so that the job fails.
  EXPECT_EQ(outcome.status().code(), Code::kFailedPrecondition);
  EXPECT_THAT(outcome.status().message(), testing::HasSubstr("trained 9600 words, expected 19200"));
  EXPECT_FALSE(std::filesystem::exists(job.output));
}

TEST(VocabularyPhase, TheFirstThatHasNotEndedDecides) {
  TestJob job(1, 2, false);
  Prepare(&job);
  job.SetEnded({0});
  auto alone = Begin(&job, 1);
  const auto outcome = End(&job, 1, &alone);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
}

}  // namespace
}  // namespace shoal::learn::word2vec
