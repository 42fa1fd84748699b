// The progress of the whole job: every worker publishes the number of words it has trained, and its
// loss, in its own row of the table "progress". The learning rate and the end of the job follow
// from all rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "ps/client/client.h"

namespace shoal::learn::word2vec {

// kSaving is worker 0's alone: it has heard the last totals of all workers, and saves the model.
enum class WorkerState : uint8_t { kRunning = 0, kFinished = 1, kDrained = 2, kSaving = 3 };

// Exchanges progress through the servers. Thread-safe.
class JobProgress {
 public:
  // Floats of a worker's row in the table, and the column of its state.
  static constexpr uint32_t kWidth = 8;
  static constexpr uint32_t kStateColumn = 4;

  // Gives the workers that have ended according to the coordinator.
  using Ended = std::function<std::vector<int>()>;

  // `client` must outlive it. Creates the table or finds it. `ended` may be empty; it is called in
  // every Exchange, because ended workers do not republish what restarted servers have lost.
  static Result<std::unique_ptr<JobProgress>> Make(ps::Client* client, int worker, int workers,
                                                   Ended ended = {});

  struct WorkerTotals {
    uint64_t words = 0;   // trained words, over all epochs
    double loss = 0;      // sum of the sampled losses
    double pairs = 0;     // and their number
    uint64_t rounds = 0;  // deterministic mode: rounds of this worker
    double bytes = 0;     // rows and keys, sent and received
    WorkerState state = WorkerState::kRunning;
  };
  struct Totals {
    uint64_t words = 0;
    double loss = 0;
    double pairs = 0;
    uint64_t rounds = 0;  // the most of any worker
    double bytes = 0;
    int running = 0;      // workers that have not ended
    int drained = 0;      // workers that were asked to end early
    int to_come = 0;      // drained workers that the coordinator will restart
    bool saving = false;  // worker 0 has the last totals of all workers, or has ended
  };
  // Publishes `mine` and reads the rows of all workers. One or two round trips.
  Result<Totals> Exchange(const WorkerTotals& mine);

  // An estimate of the words trained by all workers: the last known numbers of the others,
  // extrapolated by their pace relative to this worker's.
  uint64_t EstimateWords(uint64_t mine) const {
    const uint64_t since = mine - std::min(mine, mine_then_.load(std::memory_order_relaxed));
    const double theirs = others_pace_.load(std::memory_order_relaxed) * static_cast<double>(since);
    return mine + others_words_.load(std::memory_order_relaxed) + static_cast<uint64_t>(theirs);
  }

 private:
  JobProgress(ps::Client* client, int worker, int workers, Ended ended)
      : client_(client), worker_(worker), workers_(workers), ended_(std::move(ended)) {}

  void RaiseToLatest(float* rows) REQUIRES(mu_);
  void RestoreEnded(const std::vector<int>& ended, float* rows) const;
  // Pushes the difference between this worker's row and the servers' and pulls all rows; repeats
  // that if a restarted server has lost earlier pushes.
  Status Push(const std::vector<float>& row) REQUIRES(mu_);

  ps::Client* const client_;
  const int worker_;
  const int workers_;
  const Ended ended_;
  ps::TableRef table_;
  Mutex mu_;
  std::vector<float> seen_ GUARDED_BY(mu_);    // this worker's row on the servers
  std::vector<float> latest_ GUARDED_BY(mu_);  // the maximum seen for each worker
  std::atomic<uint64_t> mine_then_{0};
  std::atomic<uint64_t> others_words_{0};
  std::atomic<double> others_pace_{0};
};

}  // namespace shoal::learn::word2vec
