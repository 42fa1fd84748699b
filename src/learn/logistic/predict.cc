#include "learn/logistic/predict.h"

#include <algorithm>
#include <thread>

#include "learn/logistic/dataset.h"

namespace shoal::learn::logistic {
namespace {

// What one thread has read and predicted: label and margin as they are.
struct Part {
  std::vector<Scored> scored;
  Status status;
};

Status PredictShard(const model::LinearModel& model, const data::Corpus& corpus, uint64_t index,
                    uint64_t count, std::vector<Scored>* scored) {
  TRY_ASSIGN(const data::Shard shard, corpus.Cut(index, count));
  data::ExampleReader reader(corpus, shard, {static_cast<int>(model.hash_bits), false});
  data::ExampleSet set;
  for (;;) {
    set.Clear();
    TRY_ASSIGN(const bool more, reader.Read(&set));
    if (!more) return Status::Ok();
    const std::vector<float> scales = ScalesOf(set, model.normalize);
    DropFeaturesFrom(model.weights.size(), &set);
    for (size_t i = 0; i < set.size(); ++i) {
      const auto features = set.FeaturesOf(i);
      const Row row{features.data(), set.ValuesOf(i), static_cast<uint32_t>(features.size()),
                    scales[i]};
      scored->push_back({Margin(model.weights.data(), model.bias, row), set.labels[i]});
    }
  }
}

// Labels −1 become 0. False if one is no class.
bool MakeBinary(std::vector<Scored>& scored) {
  for (Scored& one : scored) {
    if (one.label == -1) one.label = 0;
    if (one.label != 0 && one.label != 1) return false;
  }
  return true;
}

}  // namespace

Result<Predictions> Predict(const model::LinearModel& model,
                            const std::vector<std::string>& sources, uint64_t threads) {
  TRY_ASSIGN(const data::Corpus corpus, data::Corpus::Open(sources));
  std::vector<Part> parts(threads);
  std::vector<std::thread> running;
  for (uint64_t i = 0; i < threads; ++i) {
    running.emplace_back(
        [&, i] { parts[i].status = PredictShard(model, corpus, i, threads, &parts[i].scored); });
  }
  for (std::thread& thread : running) thread.join();
  std::vector<Scored> scored;
  for (Part& part : parts) {
    TRY(part.status);
    scored.insert(scored.end(), part.scored.begin(), part.scored.end());
    part.scored = {};
  }
  Predictions predictions;
  predictions.probabilities.reserve(scored.size());
  for (const Scored& one : scored) predictions.probabilities.push_back(Probability(one.margin));
  if (MakeBinary(scored) && !scored.empty()) predictions.quality = MeasureQuality(scored);
  return predictions;
}

}  // namespace shoal::learn::logistic
