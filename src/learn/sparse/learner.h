// What an algorithm on sparse examples brings to the training that all of them share: how large the
// state of a feature is, what one example does to it, and the model that it stands for.
//
// Implemented in learn/logistic and learn/fm; called by training.h in all of a worker's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/factors.h"

namespace shoal::learn::sparse {

// An example x: values[i] · scale at features[i], which differ from each other.
struct Row {
  const uint32_t* features = nullptr;  // [count]
  const float* values = nullptr;       // [count]; null: all are 1
  uint32_t count = 0;
  float scale = 1;
};

// Working memory of one thread; grows to the longest row.
class Scratch {
 public:
  // Lanes are filled up to whole vectors with zeros.
  static constexpr size_t kPad = 16;
  void Reserve(size_t count) {
    if (state.size() >= 2 * (count + kPad)) return;
    const size_t size = count + count / 2 + kPad;
    state.resize(2 * size);
    weights.resize(size);
    roots.resize(size);
    values.resize(size);
  }
  std::vector<float> state;    // [first, second] of the row's features
  std::vector<float> weights;  // w
  std::vector<float> roots;    // √n
  std::vector<float> values;   // x
  std::vector<float> factors;  // an algorithm's own
};

// Constant after construction; thread-safe.
//
// A feature's state is `width` floats, all 0 at first, of which every one changes by addition
// alone: so workers may add their changes up (docs/adr/0030). The bias is a feature of value 1 that
// every example has; only what `model` reads of its state means something.
class Learner {
 public:
  virtual ~Learner() = default;
  virtual uint32_t width() const = 0;
  // One step on (row, label 0 or 1); gives the margin before it. `state` is [features × width],
  // read and written without synchronisation by several threads; `bias` may be null. No allocation
  // once warm.
  virtual float Step(float* state, float* bias, const Row& row, float label,
                     Scratch* scratch) const = 0;
  // Room for the model of so many features, with everything but their numbers filled in.
  virtual model::FactorModel EmptyModel(uint64_t features) const = 0;
  // Fills in the features [first, first + count); `state` is that of feature 0. Parts may be filled
  // in parallel.
  virtual void FillModel(const float* state, uint64_t first, uint64_t count,
                         model::FactorModel* model) const = 0;
  virtual float BiasOf(const float* bias) const = 0;
};

// w·x + ½ Σ_f [(Σ v_f·x)² − Σ (v_f·x)²] + bias of a model. Features that the model does not know
// must have been dropped. O(count × (1 + factors)).
float Margin(const model::FactorModel& model, const Row& row);

// 1 / (1 + exp(−margin)).
float Probability(float margin);

// 1 / ‖values‖, or 1 for an example of zeros.
float UnitScale(const float* values, size_t count);

}  // namespace shoal::learn::sparse
