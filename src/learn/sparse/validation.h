// When a training ends: the loss of examples that are not learnt from, over all workers; and what
// shows that it diverges. Used by training.h while all threads of a worker meet.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "learn/sparse/dataset.h"
#include "learn/sparse/objective/assessment.h"
#include "learn/sparse/objective/quality.h"
#include "learn/sparse/worker.h"

namespace shoal::learn::sparse {

struct EpochQuality;

struct ValidationState {
  double best = 0;
  uint64_t best_epoch = 0;      // from 1; 0: none yet
  uint64_t improved_epoch = 0;  // the last whose loss was lower by a ten-thousandth at least
};

// Takes the mean loss of an epoch. Whether it is the lowest so far.
bool AddValidationLoss(double loss, uint64_t epoch, ValidationState* state);

// How good a model is on some examples; a thread for each shard. Fills in `assessment` unless that
// is null or the loss is not finite.
Quality MeasureModel(const model::FactorModel& model, const Target& target,
                     const std::vector<LoadedShard>& shards, Assessment* assessment = nullptr);

// FailedPrecondition if an epoch's training loss is far above that of a constant prediction.
Status CheckDivergence(const WorkerSetup& setup, const std::vector<LoadedShard>& train,
                       const EpochQuality& quality);

// Not thread-safe.
class Validation {
 public:
  // Both outlive it; `examples` are those of this worker.
  Validation(const WorkerSetup& setup, const std::vector<LoadedShard>& examples)
      : setup_(setup), examples_(examples), epochs_(static_cast<uint64_t>(setup.params.epochs)) {}

  // What earlier lives of the workers have measured of the first `epochs` epochs.
  Status Recall(uint64_t epochs);
  // Measures the model of an epoch's end and waits for what the other workers have measured, until
  // this one is to stop. The quality on this worker's examples, with the loss on all. Errors of the
  // servers; FailedPrecondition if the loss is not a number.
  // `complete` adds what only the best model needs.
  Result<Quality> Add(uint64_t epoch, model::FactorModel model,
                      const std::function<void(model::FactorModel*)>& complete);

  // How many epochs are trained: fewer than asked for from when the last is known.
  uint64_t epochs() const { return epochs_; }
  const ValidationState& state() const { return state_; }
  // Worker 0: of the best epoch of this life; null: none was measured.
  const model::FactorModel* best_model() const { return best_model_ ? &*best_model_ : nullptr; }

 private:
  // The mean loss over all workers' examples; none: this worker is to stop.
  Result<std::optional<double>> Share(uint64_t epoch, const Quality& own);
  void Count(double loss, uint64_t epoch);

  const WorkerSetup& setup_;
  const std::vector<LoadedShard>& examples_;
  uint64_t epochs_;
  ValidationState state_;
  std::optional<model::FactorModel> best_model_;
};

}  // namespace shoal::learn::sparse
