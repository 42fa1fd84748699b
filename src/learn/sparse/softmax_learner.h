// Several classes for any algorithm: one model for each, trained together by the loss softmax. The
// state of feature f for class c of K is that of feature f·K + c of the algorithm, so that the
// states that an example needs lie side by side; that of class c's bias follows all features.
//
// Made by worker.cc once the classes are known.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/sparse/learner.h"

namespace shoal::learn::sparse {

class SoftmaxLearner final : public Learner {
 public:
  // `one` (not owned) outlives it. `features`: of an example, all are below.
  SoftmaxLearner(const Learner* one, uint32_t classes, uint64_t features)
      : one_(*one), classes_(classes), features_(features) {}

  uint32_t width() const override { return one_.width(); }
  uint32_t classes() const override { return classes_; }
  uint32_t fields() const override { return one_.fields(); }
  const Loss& loss() const override { return one_.loss(); }
  // Of all classes. `bias` only says whether there are any. Gives the true class's margin less the
  // logarithm of the others' summed exponentials.
  float Step(float* state, float* bias, const Row& row, float label,
             Scratch* scratch) const override;
  // These are of a row of ClassRow.
  float MarginOf(const float* state, const float* bias, const Row& row,
                 Scratch* scratch) const override {
    return one_.MarginOf(state, bias, row, scratch);
  }
  void StepBy(float* state, float* bias, const Row& row, float error,
              Scratch* scratch) const override {
    one_.StepBy(state, bias, row, error, scratch);
  }
  const std::vector<Slot>& slots() const override { return one_.slots(); }
  float Gradients(const float* weights, const float* shift, const Row& row, float* gradients,
                  float* shifted) const override {
    return one_.Gradients(weights, shift, row, gradients, shifted);
  }
  float InitialWeight(uint32_t feature, size_t slot) const override {
    return one_.InitialWeight(feature, slot);
  }
  // `features` of the state, with those of the biases.
  model::FactorModel EmptyModel(uint64_t features) const override;
  void FillModel(const float* state, uint64_t first, uint64_t count,
                 model::FactorModel* model) const override;
  float BiasOf(const float* bias) const override { return one_.BiasOf(bias); }

 private:
  const Learner& one_;
  const uint32_t classes_;
  const uint64_t features_;
};

// The row of class `class_number`, whose features are written to `room`.
Row ClassRow(const Row& row, uint32_t classes, uint32_t class_number, std::vector<uint32_t>* room);

// log Σ exp.
float LogSumExp(const float* values, size_t count);

}  // namespace shoal::learn::sparse
