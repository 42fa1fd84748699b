// What a training tells the launcher while it runs: progress, and the quality of each epoch.
//
// Used by training.h: by its monitor, and where an epoch ends.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/mutex.h"
#include "learn/sparse/exchange/exchange_meter.h"
#include "learn/sparse/objective/quality.h"
#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {

// What was measured at an epoch's end.
struct EpochQuality {
  uint64_t epoch = 0;     // from 1
  double train_loss = 0;  // of this worker: each example before it was learnt from; LossOf
  Quality held_out;       // examples 0: there are none
  Quality validation;     // likewise; of this worker
};

// Thread-safe.
class TrainingReport {
 public:
  // Of a training of `examples` over all epochs that begins now. `setup` and `clock` (not owned)
  // outlive it.
  TrainingReport(const WorkerSetup& setup, uint64_t examples, const Clock* clock)
      : setup_(setup), clock_(clock), examples_(examples), begun_(clock->Now()) {}

  // An epoch's event; the numbers are part of the progress from now on.
  void AddEpoch(const EpochQuality& quality);
  // Progress after so many examples of this life; `ended`: all are trained. `cost` says nothing
  // with one worker.
  void SendProgress(uint64_t trained, bool ended, const ExchangeCost& cost);

 private:
  const WorkerSetup& setup_;
  const Clock* const clock_;
  const uint64_t examples_;
  const TimePoint begun_;
  Mutex mu_;
  EpochQuality latest_ GUARDED_BY(mu_);
};

}  // namespace shoal::learn::sparse
