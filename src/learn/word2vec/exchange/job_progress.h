// How far the whole job is: every worker tells the servers how many words it has trained, and what
// it lost, in a row of its own of the table "progress"; from all rows follow the learning rate and
// the end.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "ps/client/client.h"

namespace shoal::learn::word2vec {

enum class WorkerState : uint8_t { kRunning = 0, kFinished = 1, kDrained = 2 };

// Thread-safe.
class JobProgress {
 public:
  // The workers of whom the coordinator says that they have ended.
  using Ended = std::function<std::vector<int>()>;

  // `client` outlives it. Creates the table or finds it. `ended` may be empty; it is asked at every
  // Exchange, as those it names will not tell again what servers that died have forgotten.
  static Result<std::unique_ptr<JobProgress>> Make(ps::Client* client, int worker, int workers,
                                                   Ended ended = {});

  struct WorkerTotals {
    uint64_t words = 0;   // trained, over all epochs
    double loss = 0;      // sum of the sampled losses
    double pairs = 0;     // and their number
    uint64_t rounds = 0;  // deterministic: that this worker will take
    double bytes = 0;     // of rows and keys, sent and received
    WorkerState state = WorkerState::kRunning;
  };
  struct Totals {
    uint64_t words = 0;
    double loss = 0;
    double pairs = 0;
    uint64_t rounds = 0;  // the most of any worker
    double bytes = 0;
    int running = 0;  // workers that have not ended
    int drained = 0;  // workers that were told to end early
    int to_come = 0;  // of those, the ones that the coordinator will start again
  };
  // Tells the servers, and asks about everybody. One round trip or two.
  Result<Totals> Exchange(const WorkerTotals& mine);

  // What all workers together have trained by now: what was last heard of the others, who since
  // then are taken to have kept the pace, relative to this one, that they had before.
  uint64_t EstimateWords(uint64_t mine) const {
    const uint64_t since = mine - std::min(mine, mine_then_.load(std::memory_order_relaxed));
    const double theirs = others_pace_.load(std::memory_order_relaxed) * static_cast<double>(since);
    return mine + others_words_.load(std::memory_order_relaxed) + static_cast<uint64_t>(theirs);
  }

 private:
  JobProgress(ps::Client* client, int worker, int workers, Ended ended)
      : client_(client), worker_(worker), workers_(workers), ended_(std::move(ended)) {}

  void RaiseToLatest(float* rows);
  void RestoreEnded(const std::vector<int>& ended, float* rows) const;
  // Pushes what the servers lack of this worker's row and pulls it; again where a server that came
  // back had forgotten what was told before.
  Status Push(const std::vector<float>& row);

  ps::Client* const client_;
  const int worker_;
  const int workers_;
  const Ended ended_;
  ps::TableRef table_;
  std::mutex mu_;
  std::vector<float> seen_;    // guarded by mu_; this worker's row as the servers have it
  std::vector<float> latest_;  // guarded by mu_; the furthest that was heard of everybody
  std::atomic<uint64_t> mine_then_{0};
  std::atomic<uint64_t> others_words_{0};
  std::atomic<double> others_pace_{0};
};

}  // namespace shoal::learn::word2vec
