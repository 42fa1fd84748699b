#include "learn/sparse/validation.h"

#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "base/bytes.h"
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

std::string EncodeLoss(const SharedLoss& loss) {
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

size_t SizeOf(const std::vector<LoadedShard>& shards) {
  size_t size = 0;
  for (const LoadedShard& shard : shards) size += shard.set.size();
  return size;
}

// Runs `score(set, i, place)` for all examples, a thread for each shard.
template <typename Score>
void ScoreExamples(const std::vector<LoadedShard>& shards, const Score& score) {
  std::vector<size_t> begins;
  size_t begin = 0;
  for (const LoadedShard& shard : shards) {
    begins.push_back(begin);
    begin += shard.set.size();
  }
  if (begin == 0) return;
  InParallel(shards.size(), [&](size_t part) {
    const LoadedShard& shard = shards[part];
    Scratch scratch;
    for (size_t i = 0; i < shard.set.size(); ++i) score(shard, i, begins[part] + i, &scratch);
  });
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

Quality MeasureModel(const model::FactorModel& model, const Target& target,
                     const std::vector<LoadedShard>& shards, Assessment* assessment) {
  const size_t classes = model.linear.classes();
  if (classes == 1) {
    std::vector<Scored> scored(SizeOf(shards));
    ScoreExamples(shards, [&](const LoadedShard& shard, size_t i, size_t place, Scratch* scratch) {
      scored[place] = {Margin(model, shard.RowOf(i), scratch), shard.set.labels[i]};
    });
    const Quality quality = MeasureQuality(target, scored);
    if (assessment != nullptr && std::isfinite(quality.loss))
      *assessment = AssessPredictions(target, scored);
    return quality;
  }
  std::vector<ScoredClass> scored(SizeOf(shards));
  ScoreExamples(shards, [&](const LoadedShard& shard, size_t i, size_t place, Scratch* scratch) {
    if (scratch->values.size() < classes) scratch->values.resize(classes);
    float* const margins = scratch->values.data();
    ClassMargins(model, shard.RowOf(i), scratch, margins);
    scored[place] = ScoreClass({margins, classes}, static_cast<uint32_t>(shard.set.labels[i]));
  });
  const Quality quality = MeasureQuality(scored, classes);
  if (assessment != nullptr && std::isfinite(quality.loss))
    *assessment = AssessPredictions(scored, classes);
  return quality;
}

Status CheckDivergence(const WorkerSetup& setup, const std::vector<LoadedShard>& train,
                       const EpochQuality& quality) {
  // One count that is predicted by an exponent before it was learnt from may outweigh an epoch.
  const bool counts = setup.learner->loss().kind == LossKind::kPoisson;
  if (counts && quality.epoch == 1 && setup.params.epochs > 1) return Status::Ok();
  const double zero = ZeroLoss(*setup.learner, train) * setup.meaning.target.loss_unit();
  if (!(quality.train_loss > kDivergence * zero)) return Status::Ok();
  const bool raw = setup.normalization == Normalization::kNone;
  return FailedPrecondition(fmt::format(
      "the training diverged: its loss in epoch {} is {:.4g}, that of a constant "
      "prediction {:.4g}; nothing is saved. Use a smaller alpha{}",
      quality.epoch, quality.train_loss, zero, raw ? ", or scale the values (normalize)" : ""));
}

// Added up in the workers' order, so that all come to the same number.
Result<std::optional<double>> Validation::Share(uint64_t epoch, const Quality& own) {
  const SharedLoss mine{own.loss * static_cast<double>(own.examples), own.examples};
  if (setup_.workers > 1)
    TRY(setup_.shared_blobs->Publish(BlobName(epoch, setup_.index), EncodeLoss(mine)));
  SharedLoss all;
  for (int worker = 0; worker < setup_.workers; ++worker) {
    SharedLoss one = mine;
    if (worker != setup_.index) {
      const std::string name = BlobName(epoch, worker);
      Result<std::string> bytes = setup_.client->GetBlob(name);
      while (bytes.status().code() == Code::kNotFound) {
        if (setup_.stop->load()) return std::optional<double>();
        std::this_thread::sleep_for(kBlobPoll);
        bytes = setup_.client->GetBlob(name);
      }
      TRY(bytes.status());
      TRY_ASSIGN(one, DecodeLoss(*bytes, name));
    }
    all.sum += one.sum;
    all.examples += one.examples;
  }
  if (all.examples == 0) {
    return InvalidArgument(
        "validation: no example is left to measure; take a larger share, or a file");
  }
  return std::optional<double>(all.sum / static_cast<double>(all.examples));
}

Status Validation::Recall(uint64_t epochs) {
  for (uint64_t epoch = 1; setup_.params.validates && setup_.workers > 1 && epoch <= epochs;
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
    if (known && all.examples > 0) Count(all.sum / static_cast<double>(all.examples), epoch);
  }
  return Status::Ok();
}

void Validation::Count(double loss, uint64_t epoch) {
  AddValidationLoss(loss, epoch, &state_);
  const auto patience = static_cast<uint64_t>(setup_.params.patience);
  if (epoch - state_.improved_epoch >= patience) epochs_ = epoch;
}

Result<Quality> Validation::Add(uint64_t epoch, model::FactorModel model,
                                const std::function<void(model::FactorModel*)>& complete) {
  Quality quality = MeasureModel(model, setup_.meaning.target, examples_);
  TRY_ASSIGN(const std::optional<double> loss, Share(epoch, quality));
  if (!loss) return quality;
  if (std::isnan(*loss)) return Diverged("validation loss");
  quality.loss = *loss;
  Count(*loss, epoch);
  if (state_.best_epoch == epoch && setup_.index == 0) {
    complete(&model);
    best_model_ = std::move(model);
  }
  return quality;
}

}  // namespace shoal::learn::sparse
