// What an algorithm on sparse examples brings to the training that all of them share: how large the
// state of a feature is, what one example does to it, and the model that it stands for.
//
// Implemented in learn/logistic, learn/fm and learn/ffm; called by training.h in all of a worker's
// threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "model/factors.h"

namespace shoal::learn::sparse {

// An example x: values[i] · scale at features[i], which differ from each other.
struct Row {
  const uint32_t* features = nullptr;  // [count]
  const float* values = nullptr;       // [count]; null: all are 1
  uint32_t count = 0;
  float scale = 1;
  const uint16_t* fields = nullptr;  // [count]; null: features have none
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
  std::vector<uint32_t> places;
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
  // What one of several workers has changed of a feature since it last met the servers, as it is to
  // be added to what the others have: scaled down where each has gone all the way by itself.
  // delta: [width], changed in place; state: [width], as it is here; others: workers less this one.
  virtual void Damp(float* delta, const float* state, float others) const = 0;
  // All fields of rows are below; 0: fields mean nothing.
  virtual uint32_t fields() const { return 0; }
  // The same for so many fields, which are known when the data has been read; for algorithms whose
  // parameters have keep_fields. InvalidArgument for too many.
  virtual Result<std::unique_ptr<Learner>> ForFields(uint32_t /*fields*/) const {
    return Internal("this algorithm knows no fields");
  }
};

// The learning rate of AdaGrad and FTRL-proximal.
struct Rate {
  float alpha = 1;
  float beta = 1;
};

// For Damp: scales the changes of a value and of its sum of squared gradients n, of which it has
// taken its steps. α·Δn/(β+√n) is about how far the steps went on their way to the best value,
// since squared gradients are as large as the curvature (Fisher information); kCompany for the
// other features of the same examples, which went the same way.
inline void DampPair(const Rate& rate, float n, float others, float* delta_value, float* delta_n) {
  constexpr float kCompany = 8;
  if (*delta_n <= 0) return;
  const float went = kCompany * rate.alpha * *delta_n / (rate.beta + std::sqrt(std::max(n, 0.0f)));
  const float weight = 1 / (1 + others * std::min(went, 1.0f));
  *delta_value *= weight;
  *delta_n *= weight;
}

// w·x + bias + what the pairs bring: ½ Σ_f [(Σ v_f·x)² − Σ (v_f·x)²] of a model without fields
// (Rendle 2010, lemma 3.1), Σ_{i<j} ⟨v_{i,field of j}, v_{j,field of i}⟩·x_i·x_j of one with them
// (Juan et al. 2016, eq. 4). Features that the model does not know must have been dropped; one of a
// field that it does not know has no pairs. O(count × (1 + factors × fields of the row)).
float Margin(const model::FactorModel& model, const Row& row, Scratch* scratch);

// 1 / (1 + exp(−margin)).
float Probability(float margin);

// 1 / ‖values‖, or 1 for an example of zeros.
float UnitScale(const float* values, size_t count);

}  // namespace shoal::learn::sparse
