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
#include "learn/sparse/objective/loss.h"
#include "model/factor_model.h"

namespace shoal::learn::sparse {

// An example x: values[i] · scale at features[i], which differ from each other.
struct Row {
  const uint32_t* features = nullptr;  // [count]
  const float* values = nullptr;       // [count]; null: all are 1
  uint32_t count = 0;
  float scale = 1;
  const uint16_t* fields = nullptr;  // [count]; null: features have none
  float weight = 1;                  // as if the example were there so many times
};

inline float ValueAt(const Row& row, uint32_t i) {
  return row.values == nullptr ? row.scale : row.scale * row.values[i];
}

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
  std::vector<Scratch> parts;  // of each class
};

// The learning rate of AdaGrad and FTRL-proximal, α / (β + √n).
struct Rate {
  float alpha = 1;
  float beta = 1;
};

// A weight in a feature's state: the float that it is, or that FTRL-proximal makes it of, and the
// sum of its squared gradients.
struct Slot {
  uint32_t value = 0;
  uint32_t squares = 1;
  Rate rate;
  float l2 = 0;  // FTRL's
  bool ftrl = false;  // `value` is z: the weight before λ₁ cuts it is −α·z / (β + √n + α·λ₂)
};

inline float FtrlDivisor(const Slot& slot, float n) {
  return slot.rate.beta + std::sqrt(std::max(n, 0.0f)) + slot.rate.alpha * slot.l2;
}
inline float WeightOf(const Slot& slot, float value, float n) {
  if (!slot.ftrl || value == 0) return value;
  return -value * slot.rate.alpha / FtrlDivisor(slot, n);
}
// How far one gradient moves a weight.
inline float RateOf(const Rate& rate, float n) {
  return rate.alpha / (rate.beta + std::sqrt(std::max(n, 1e-30f)));
}
// The other way round.
inline float ValueOf(const Slot& slot, float weight, float n) {
  return slot.ftrl ? -weight * FtrlDivisor(slot, n) / slot.rate.alpha : weight;
}

// Constant after construction; thread-safe.
//
// A feature's state is `width` floats, all 0 at first. What is learnt of it is in `slots`: so
// workers' changes are merged without knowing the algorithm (replay.h). The bias is a feature of
// value 1 that every example has; only what `model` reads of its state means something.
class Learner {
 public:
  virtual ~Learner() = default;
  virtual uint32_t width() const = 0;
  virtual const Loss& loss() const = 0;
  // One step on (row, label); gives the margin before it, as LossOf takes it. `state` is
  // [features × width], read and written without synchronisation by several threads; `bias` may be
  // null. No allocation once warm.
  virtual float Step(float* state, float* bias, const Row& row, float label,
                     Scratch* scratch) const = 0;
  // The two halves of a step: the margin, and what `error` (ErrorOf, times the row's weight) does.
  // The second needs the scratch as the first left it.
  virtual float MarginOf(const float* state, const float* bias, const Row& row,
                         Scratch* scratch) const = 0;
  virtual void StepBy(float* state, float* bias, const Row& row, float error,
                      Scratch* scratch) const = 0;
  // Room for the model of so many features, with everything but their numbers filled in.
  virtual model::FactorModel EmptyModel(uint64_t features) const = 0;
  // Fills in the features [first, first + count); `state` is that of feature 0. Parts may be filled
  // in parallel.
  virtual void FillModel(const float* state, uint64_t first, uint64_t count,
                         model::FactorModel* model) const = 0;
  virtual float BiasOf(const float* bias) const = 0;
  // The first is the feature's own weight, the only one that a bias has.
  virtual const std::vector<Slot>& slots() const = 0;
  // How the margin of `row` without its bias changes with each weight: gradients[i · slots + s] is
  // its derivative by slot s of the row's i-th feature. `weights` and `shift` lie likewise. Gives
  // that margin, and in `shifted` by how much it is above the margin of the weights less `shift`.
  virtual float Gradients(const float* weights, const float* shift, const Row& row,
                          float* gradients, float* shifted) const = 0;
  // Of a slot behind the first: the weight of a feature that was never seen, which the state's
  // value is beside.
  virtual float InitialWeight(uint32_t /*feature*/, size_t /*slot*/) const { return 0; }
  // More than one: the features of a state are those of softmax_learner.h.
  virtual uint32_t classes() const { return 1; }
  // All fields of rows are below; 0: fields mean nothing.
  virtual uint32_t fields() const { return 0; }
  // The same for so many fields, which are known when the data has been read; for algorithms whose
  // parameters have keep_fields. InvalidArgument for too many.
  virtual Result<std::unique_ptr<Learner>> ForFields(uint32_t /*fields*/) const {
    return Internal("this algorithm knows no fields");
  }
};

// w·x + bias + what the pairs bring: ½ Σ_f [(Σ v_f·x)² − Σ (v_f·x)²] of a model without fields
// (Rendle 2010, lemma 3.1), Σ_{i<j} ⟨v_{i,field of j}, v_{j,field of i}⟩·x_i·x_j of one with them
// (Juan et al. 2016, eq. 4). Features that the model does not know must have been dropped; one of a
// field that it does not know has no pairs. O(count × (1 + factors × fields of the row)).
float Margin(const model::FactorModel& model, const Row& row, Scratch* scratch);

// The margins of all of the model's classes (LinearModel::classes) into margins[0..classes).
void ClassMargins(const model::FactorModel& model, const Row& row, Scratch* scratch,
                  float* margins);

// 1 / ‖values‖, or 1 for an example of zeros.
float UnitScale(const float* values, size_t count);

}  // namespace shoal::learn::sparse
