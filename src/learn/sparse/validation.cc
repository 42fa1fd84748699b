// The part of Training (training.h) that decides when a training ends: the loss of examples that
// are not learnt from, over all workers, and what shows that a training diverges.
#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "base/bytes.h"
#include "base/log.h"
#include "learn/coordination/shared_blobs.h"
#include "learn/sparse/training.h"

namespace shoal::learn::sparse {
namespace {

constexpr double kLeastImprovement = 1e-4;  // of the loss, for patience
constexpr double kDivergence = 10;          // times the loss of a constant prediction
constexpr auto kBlobPoll = std::chrono::milliseconds(2);
constexpr uint64_t kZeroExamples = 10'000;

std::string BlobName(uint64_t epoch, int worker) {
  return fmt::format("validation/{}/{}", epoch, worker);
}

struct SharedLoss {
  double sum = 0;
  uint64_t examples = 0;
};

std::string Encode(const SharedLoss& loss) {
  std::string bytes;
  ByteWriter writer(&bytes);
  writer.Put(loss.sum);
  writer.Put(loss.examples);
  return bytes;
}

Result<SharedLoss> DecodeLoss(std::string_view bytes, const std::string& name) {
  SharedLoss loss;
  ByteReader reader(bytes);
  if (reader.Get(&loss.sum).ok() && reader.Get(&loss.examples).ok() && reader.remaining() == 0)
    return loss;
  return DataLoss(name + " on the servers is malformed");
}

// What prediction 0 of scaled labels costs: about the best constant.
double ZeroLoss(const Learner& learner, const std::vector<LoadedShard>& shards) {
  if (learner.classes() > 1) return std::log(static_cast<double>(learner.classes()));
  double sum = 0;
  uint64_t count = 0;
  for (const LoadedShard& shard : shards) {
    for (size_t i = 0; i < shard.set.size() && count < kZeroExamples; ++i, ++count)
      sum += static_cast<double>(LossOf(learner.loss(), 0, shard.set.labels[i]));
  }
  return count == 0 ? 1 : sum / static_cast<double>(count);
}

}  // namespace

bool AddValidationLoss(double loss, uint64_t epoch, ValidationState* state) {
  const bool first = state->best_epoch == 0;
  if (first || loss < state->best * (1 - kLeastImprovement)) state->improved_epoch = epoch;
  if (!first && !(loss < state->best)) return false;
  state->best = loss;
  state->best_epoch = epoch;
  return true;
}

Status Training::CheckDivergence(const EpochQuality& quality) const {
  const double zero = ZeroLoss(*setup_.learner, train_) * setup_.target.loss_unit();
  if (!(quality.train_loss > kDivergence * zero)) return Status::Ok();
  const bool raw = setup_.normalization == Normalization::kNone;
  return FailedPrecondition(fmt::format(
      "the training diverged: its loss in epoch {} is {:.4g}, that of a constant "
      "prediction {:.4g}; nothing is saved. Use a smaller alpha{}",
      quality.epoch, quality.train_loss, zero, raw ? ", or scale the values (normalize)" : ""));
}

Result<std::optional<double>> Training::ShareValidation(uint64_t epoch, const Quality& own) {
  SharedLoss all{own.loss * static_cast<double>(own.examples), own.examples};
  if (setup_.workers > 1) {
    TRY(setup_.shared_blobs->Publish(BlobName(epoch, setup_.index), Encode(all)));
    for (int worker = 0; worker < setup_.workers; ++worker) {
      if (worker == setup_.index) continue;
      const std::string name = BlobName(epoch, worker);
      Result<std::string> bytes = setup_.client->GetBlob(name);
      while (bytes.status().code() == Code::kNotFound) {
        if (setup_.stop->load()) return std::optional<double>();
        std::this_thread::sleep_for(kBlobPoll);
        bytes = setup_.client->GetBlob(name);
      }
      TRY(bytes.status());
      TRY_ASSIGN(const SharedLoss theirs, DecodeLoss(*bytes, name));
      all.sum += theirs.sum;
      all.examples += theirs.examples;
    }
  }
  if (all.examples == 0) {
    return InvalidArgument(
        "validation: no example is left to measure; take a larger share, or a file");
  }
  return std::optional<double>(all.sum / static_cast<double>(all.examples));
}

// Measures the state at an epoch's end and decides with the other workers whether it is the last.
Status Training::Validate(EpochQuality* quality) {
  if (setup_.workers > 1 && setup_.index == 0) TRY(table_->TakeAll());
  std::optional<model::FactorModel> model(Model());
  quality->validation = MeasureOn(*model, validation_);
  TRY_ASSIGN(const std::optional<double> loss,
             ShareValidation(quality->epoch, quality->validation));
  if (!loss) return Status::Ok();
  if (!std::isfinite(*loss)) return Diverged("validation loss");
  quality->validation.loss = *loss;
  const bool best = AddValidationLoss(*loss, quality->epoch, &validation_state_);
  if (best && setup_.index == 0) best_model_ = std::move(model);
  const auto patience = static_cast<uint64_t>(setup_.params.patience);
  if (quality->epoch - validation_state_.improved_epoch >= patience) epochs_ = quality->epoch;
  return Status::Ok();
}

// What earlier lives of the workers have measured before the epoch at which this one begins.
Status Training::RecallValidation() {
  for (uint64_t epoch = 1; setup_.params.validates && setup_.workers > 1 && epoch <= epoch_;
       ++epoch) {
    SharedLoss all;
    bool known = true;
    for (int worker = 0; worker < setup_.workers && known; ++worker) {
      const std::string name = BlobName(epoch, worker);
      const Result<std::string> bytes = setup_.client->GetBlob(name);
      known = bytes.status().code() != Code::kNotFound;
      if (!known) break;
      TRY(bytes.status());
      TRY_ASSIGN(const SharedLoss theirs, DecodeLoss(*bytes, name));
      all.sum += theirs.sum;
      all.examples += theirs.examples;
    }
    if (!known || all.examples == 0) continue;
    AddValidationLoss(all.sum / static_cast<double>(all.examples), epoch, &validation_state_);
    const auto patience = static_cast<uint64_t>(setup_.params.patience);
    if (epoch - validation_state_.improved_epoch >= patience) epochs_ = epoch;
  }
  return Status::Ok();
}

}  // namespace shoal::learn::sparse
