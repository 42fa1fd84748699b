// The training phase of a worker: its threads, the exchange of rows while they train, the learning
// rate, progress, and what becomes of them when a server is lost or the job is told to stop.
//
// Made and run once by worker.cc, after the vocabulary is known and the shards are encoded.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "data/text/encoder.h"
#include "data/text/vocabulary.h"
#include "learn/word2vec/exchange/exchange_policy.h"
#include "learn/word2vec/exchange/job_progress.h"
#include "learn/word2vec/exchange/positions.h"
#include "learn/word2vec/exchange/row_cache.h"
#include "learn/word2vec/exchange/row_copies.h"
#include "learn/word2vec/trainer/sampler.h"
#include "learn/word2vec/trainer/trainer.h"
#include "learn/word2vec/worker.h"

namespace shoal::learn::word2vec {

// [words of the whole job, loss of the part before].
using LossCurve = std::vector<std::pair<uint64_t, double>>;

// That a training diverged, as `what` shows, which is no finite number.
Status Diverged(std::string_view what);

class Training {
 public:
  // All outlive it. `shards`: one a thread. `from`: where the threads begin.
  Training(const WorkerSetup& setup, const data::Vocabulary& vocabulary,
           const std::vector<data::EncodedShard>& shards, RowCache* cache, JobProgress* progress);

  // Trains to the end, or to setup.stop; all that was trained is with the servers afterwards, and
  // they know that this worker has ended.
  Status Run(std::vector<Position> from);

  bool drained() const { return drained_; }
  uint64_t words() const { return words_.load(); }
  const LossCurve& loss_curve() const { return curve_; }
  // Of the whole job, as last heard.
  const JobProgress::Totals& all() const { return all_; }
  // Of this worker's time as last reported, 0 to 1, that passed in exchanges.
  double exchange_share() const { return exchange_; }
  // What of all().words had been trained before Run began, by earlier lives and by other workers.
  uint64_t words_before() const { return words_before_; }
  // Tells the servers where this worker is and hears of the others.
  Status PublishProgress(WorkerState state);

 private:
  // What one thread has at hand.
  struct Thread {
    size_t index = 0;
    Position at;
    std::unique_ptr<Trainer> trainer;
    std::unique_ptr<data::EncodedCursor> cursor;
    std::unique_ptr<RowExchange> exchange;
    uint32_t windows = 0;  // since the last round
    uint64_t rounds = 0;
    uint64_t sweeps = 0;     // complete ones
    uint64_t partial = 0;    // sweeps since the last complete one
    uint64_t completed = 0;  // completed_ when the list of due rows was last all sent
    uint32_t sweep_row = 0;  // the next row that the sweep looks at
    RowLists small;          // due rows that had not moved significantly
    uint32_t copy_row = 0;   // the next row whose copy is merged whatever its use
    double copies_owed = 0;  // rows that are to be merged by now
  };

  uint64_t RowsWorthCopying() const;
  Status MakeCopies();
  void SweepCopies(Thread& thread, uint64_t words);
  void MergeDueCopies(Thread& thread);
  bool Completing(const Thread& thread) const;
  Status Prepare(std::vector<Position> from);
  void RunThread(Thread& thread);
  Status TrainThread(Thread& thread);
  Status TrainBlocks(Thread& thread, std::span<const uint32_t> items);
  // The learning rate when so many of this worker's words are done.
  float Alpha(uint64_t own) const;
  bool Exchanges() const { return setup_.workers > 1 || setup_.checkpoints; }
  Status Round(Thread& thread);
  // Round, whose time counts as exchange.
  Status TimedRound(Thread& thread);
  Status Issue(Thread& thread);
  Status RoundInTurn(Thread& thread);
  void Sweep(Thread& thread);
  Status Publish(Thread& thread);
  Status FlushInTurn();
  Status Monitor();
  Status RepairServers();
  // Bytes of rows and keys that this worker has sent and received, since its connection was made.
  uint64_t WireBytes() const;
  // What exchanging costs since the last report, as smoothed as the rate.
  void MeasureExchange(uint64_t words, double seconds);
  void ReportProgress(bool last);
  void Fail(const Status& status);
  bool Stopping() const { return failed_.load() || setup_.stop->load(); }

  const WorkerSetup& setup_;
  const data::Vocabulary& vocabulary_;
  const std::vector<data::EncodedShard>& shards_;
  RowCache* const cache_;
  JobProgress* const progress_;
  const ExchangePolicy between_workers_;
  const Sampler sampler_;
  std::unique_ptr<const HuffmanTree> tree_;  // with params.hs
  const uint32_t round_windows_;
  const uint64_t own_total_;  // words of this worker's shards, all epochs
  const uint64_t job_total_;

  std::vector<Thread> threads_;
  std::vector<std::unique_ptr<RowCopies>> copies_;  // one for each thread, or none
  std::unique_ptr<Positions> positions_;
  std::atomic<uint64_t> words_{0};
  std::atomic<uint64_t> completing_{0};  // threads that are in a complete sweep
  std::atomic<uint64_t> completed_{0};   // complete sweeps of all threads
  std::atomic<int64_t> exchange_ns_{0};  // of all threads, in their rounds
  std::atomic<bool> failed_{false};
  uint64_t rounds_ = 0;  // deterministic: that every worker takes
  uint64_t words_before_ = 0;
  uint64_t bytes_before_ = 0;
  bool drained_ = false;

  Mutex mu_;
  CondVar ended_;
  size_t running_ GUARDED_BY(mu_) = 0;
  Status status_ GUARDED_BY(mu_);    // the first error
  double loss_ GUARDED_BY(mu_) = 0;  // sums over the whole training
  double pairs_ GUARDED_BY(mu_) = 0;

  // Owned by the thread that calls Run.
  JobProgress::Totals all_;
  LossCurve curve_;
  double curve_loss_ = 0;
  double curve_pairs_ = 0;
  TimePoint reported_{};
  uint64_t reported_words_ = 0;
  double rate_ = 0;
  int64_t reported_exchange_ns_ = 0;
  uint64_t reported_bytes_ = 0;
  double exchange_ = 0;        // share of the threads' time
  double bytes_per_word_ = 0;  // both ways
};

}  // namespace shoal::learn::word2vec
