#include "learn/sparse/exchange/replay_example.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "learn/sparse/softmax_learner.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint64_t kLeastExamples = 128;
constexpr uint64_t kLeastFeatures = 128 * 128;
constexpr uint64_t kReplayedShare = 16;  // of the examples since the last exchange (ADR 186)

// Runs `use(row, label, bias)` for what the state has of an example: of several classes each of
// them.
template <typename Use>
void ForEachClass(const WorkerSetup& setup, const StateTable& table, const Row& row, float label,
                  std::vector<uint32_t>* room, const Use& use) {
  const uint32_t classes = setup.learner->classes();
  const bool bias = setup.params.bias;
  if (classes == 1) return use(row, label, bias ? table.features() : UINT64_MAX);
  const uint64_t biases = table.features() - classes;
  for (uint32_t c = 0; c < classes; ++c) {
    const float own_label = label == static_cast<float>(c) ? 1.0f : 0.0f;
    use(ClassRow(row, classes, c, room), own_label, bias ? biases + c : UINT64_MAX);
  }
}

}  // namespace

uint64_t LeastReplayed(const data::ExampleSet& set, uint32_t classes) {
  const uint64_t of_one = (set.features.size() / set.size() + 1) * classes;
  return std::max(kLeastExamples, kLeastFeatures / of_one);
}

ReplaySample SampleOf(uint64_t trained, uint64_t known, uint64_t least, bool brief) {
  const uint64_t count = std::min(trained, known);
  if (count == 0) return {};
  if (brief && count > least)
    least = std::max(least * least / count, std::min(kLeastExamples, least));
  ReplaySample sample;
  sample.step = std::max<uint64_t>(1, count / std::max(least, count / kReplayedShare));
  sample.count = (count + sample.step - 1) / sample.step;
  sample.weight = static_cast<float>(trained) / static_cast<float>(sample.count);
  return sample;
}

void ExpectExample(const WorkerSetup& setup, StateTable* table, const Row& row,
                   ReplayScratch* scratch) {
  ForEachClass(setup, *table, row, 0, &scratch->places,
               [&](const Row& of_class, float, uint64_t bias) { table->Expect(of_class, bias); });
}

// Each of several classes by its margin less what the others have.
void ReplayExample(const WorkerSetup& setup, StateTable* table, const Replayed& example,
                   ReplayScratch* scratch) {
  std::vector<float>& margins = scratch->margins;
  margins.clear();
  const bool several = setup.learner->classes() > 1;
  const auto for_each_class = [&](const auto& use) {
    ForEachClass(setup, *table, example.row, example.label, &scratch->places, use);
  };
  if (several) {
    for_each_class([&](const Row& of_class, float, uint64_t bias) {
      margins.push_back(table->ReplayMargin(of_class, bias, &scratch->floats));
    });
  }
  size_t c = 0;
  for_each_class([&](const Row& of_class, float label, uint64_t bias) {
    Replayed own{of_class, label, example.weight};
    if (several) {
      const float margin = std::exchange(margins[c], -std::numeric_limits<float>::infinity());
      own.others = LogSumExp(margins.data(), margins.size());
      margins[c++] = margin;
    }
    table->Replay(own, bias, &scratch->floats);
  });
}

}  // namespace shoal::learn::sparse
