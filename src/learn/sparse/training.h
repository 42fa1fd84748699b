// The training phase of a worker. Its threads train one state without locks (Hogwild), each on its
// own examples in an order drawn anew for every epoch. An epoch has a number of rounds; behind each
// the threads meet, exchange the state with the servers if there is reason to, and measure the
// held-out examples at the epoch's end.
//
// Made and run once by worker.cc.
#pragma once

#include <atomic>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "learn/sparse/dataset.h"
#include "learn/sparse/exchange/example_order.h"
#include "learn/sparse/exchange/exchange_schedule.h"
#include "learn/sparse/exchange/replay_example.h"
#include "learn/sparse/exchange/state_table.h"
#include "learn/sparse/exchange/thread_barrier.h"
#include "learn/sparse/exchange/ticket_lock.h"
#include "learn/sparse/position.h"
#include "learn/sparse/training_report.h"
#include "learn/sparse/validation.h"
#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {

// That a training diverged, as `what` shows, which is no finite number.
Status Diverged(std::string_view what);

class Training {
 public:
  // All outlive it. `held_out` and `validation` have a shard a thread, or none.
  Training(const WorkerSetup& setup, const std::vector<LoadedShard>& train,
           const std::vector<LoadedShard>& held_out, const std::vector<LoadedShard>& validation,
           StateTable* table);

  // Trains from there to the end, or to setup.stop; with several workers, all that was trained is
  // with the servers afterwards.
  Status Run(std::vector<Position> from);

  bool drained() const { return drained_; }
  // Trained by this call.
  uint64_t examples() const { return trained_.load(); }
  // Where the threads are; not while they run.
  std::vector<Position> Positions() const;
  // Trained by this worker in all lives.
  uint64_t trained() const { return TrainedBy(Positions()); }
  const std::vector<EpochQuality>& curve() const { return curve_; }
  const Validation& validation() const { return validation_; }
  // Of this worker, in this life.
  ExchangeCost MeasureExchange() const;

  // What the state stands for, with the optimizer's own if that is asked for; computed by all
  // threads.
  model::FactorModel Model(bool with_optimizer = false) const;

 private:
  struct Thread {
    size_t index = 0;
    Position at;
    ExampleOrder order;
    Scratch scratch;
    double loss = 0;           // since the epoch began
    double losses = 0;         // their weights
    uint64_t unexchanged = 0;  // examples since the last exchange
    ReplayScratch replay;
    Status status;
  };

  // Where the training is, for all threads.
  struct EpochRound {
    uint64_t rounds = 1;  // of an epoch
    uint64_t clocks = 1;  // likewise: how often the others hear how far this worker is
    uint64_t epoch = 0;
    uint64_t round = 0;
    uint64_t clock = 0;  // that they have heard
  };
  // The exchange that follows the last round.
  struct UnderWay {
    bool due = false;
    bool again = false;
    bool extend = false;  // another round is trained before the exchange ends
    int tries = 0;
    uint64_t unmet = 0;  // examples, when it began
  };

  uint64_t Rounds() const;
  OrderKey KeyOf(const Thread& thread, uint64_t epoch) const;
  bool Exchanges() const { return setup_.workers > 1 || setup_.checkpoints; }
  // Whether it is measured when exchanges are worth their time; else one follows every round.
  bool IsPaced() const {
    return setup_.workers > 1 && setup_.params.rounds == 0 && !setup_.params.deterministic;
  }
  void NeedNextExamples(Thread& thread);
  void RunThread(Thread& thread);
  // A want of memory in it fails the training.
  template <typename Work>
  void WithinMemory(const Work& work);
  void TrainRound(Thread& thread);
  void PlanRound();
  void EndRound();
  bool IsExchangeDue();
  bool TryExchangeLock();
  Status RepairServers();
  uint64_t UnexchangedExamples() const;
  enum class SampleUse : uint8_t { kExpect, kReplay };
  void UseSample(Thread& thread, SampleUse use) const;
  Status ExchangeInTurn(Thread& thread);
  // The first half of a turn, in all threads; before the second they may train.
  void Fetch(Thread& thread);
  void Extend();
  void Exchange(Thread& thread);
  template <typename Step>
  void Attempt(const Step& step);
  bool IsLastRound() const;
  Status CheckPushed();
  Status PublishClock();
  void EndEpoch();
  // That the threads have trained each of their examples once an epoch, so many epochs long.
  Status CheckEpochs(uint64_t epochs) const;
  // That positions of an earlier life are of the shards at hand.
  Status CheckStart() const;
  Status AwaitStragglers(uint64_t clock);
  void Fail(const Status& status);
  Status Monitor();

  const WorkerSetup& setup_;
  const std::vector<LoadedShard>& train_;
  const std::vector<LoadedShard>& held_out_;
  Validation validation_;
  StateTable* const table_;
  TicketLock exchange_lock_;
  const uint64_t own_total_;             // examples over all epochs
  const uint64_t features_per_example_;  // of all classes
  ExchangeSchedule schedule_;
  TrainingReport report_;

  std::vector<Thread> threads_;
  ThreadBarrier barrier_;
  std::atomic<uint64_t> trained_{0};
  std::atomic<bool> failed_{false};

  // Changed only while all threads meet.
  EpochRound at_;
  UnderWay exchange_;
  bool ended_ = false;
  bool drained_ = false;
  bool last_ = false;
  std::vector<EpochQuality> curve_;

  Mutex mu_;
  CondVar done_;
  size_t running_ GUARDED_BY(mu_) = 0;
  Status status_ GUARDED_BY(mu_);  // the first error
};

}  // namespace shoal::learn::sparse
