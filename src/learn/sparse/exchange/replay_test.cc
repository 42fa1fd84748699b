#include "learn/sparse/exchange/replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "learn/ffm/learner.h"
#include "learn/fm/learner.h"
#include "learn/logistic/learner.h"
#include "learn/sparse/exchange/merge_kernels.h"
#include "learn/sparse/exchange/replay_example.h"
#include "learn/sparse/test_examples.h"

namespace shoal::learn::sparse {
namespace {

constexpr uint32_t kFeatures = 30;
constexpr uint16_t kFields = 3;
constexpr size_t kPad = 16;  // floats that vectors may read beyond the last

Example ExampleWithFields(std::mt19937_64& random) {
  Example example = RandomExample(random, kFeatures);
  for (const uint32_t feature : example.features)
    example.fields.push_back(static_cast<uint16_t>(feature % kFields));
  return example;
}

// Of weights as Learner::Gradients has them.
std::vector<float> RandomWeights(std::mt19937_64& random, size_t count) {
  std::normal_distribution<float> normal(0, 0.3f);
  std::vector<float> weights(count);
  for (float& weight : weights) weight = normal(random);
  return weights;
}

void ExpectGradientsOfMargin(const Learner& learner) {
  std::mt19937_64 random(4);
  for (int turn = 0; turn < 20; ++turn) {
    const Example example = ExampleWithFields(random);
    const Row row = example.row();
    std::vector<float> weights = RandomWeights(random, row.count * learner.slots().size());
    std::vector<float> gradients(weights.size() + kPad), unused(gradients.size());
    weights.resize(gradients.size());
    const std::vector<float> shift = RandomWeights(random, weights.size());
    const auto margin = [&](std::vector<float>* to) {
      float shifted = 0;
      return learner.Gradients(weights.data(), shift.data(), row, to->data(), &shifted);
    };
    margin(&gradients);
    const size_t all = weights.size() - kPad;
    for (size_t at = 0; at < all; at += 1 + all / 16) {
      constexpr float kBit = 0x1p-4f;
      const float middle = weights[at];
      weights[at] = middle + kBit;
      const float above = margin(&unused);
      weights[at] = middle - kBit;
      const float below = margin(&unused);
      weights[at] = middle;
      EXPECT_NEAR((above - below) / (2 * kBit), gradients[at], 1e-3) << turn << " " << at;
    }
  }
}

TEST(SparseReplay, GradientsAreThoseOfTheMargin) {
  ExpectGradientsOfMargin(*logistic::LogisticLearner::Make({}));
  ExpectGradientsOfMargin(*fm::FmLearner::Make({}));
  const std::unique_ptr<Learner> by_field = *ffm::FfmLearner::Make({})->ForFields(kFields);
  ExpectGradientsOfMargin(*by_field);
}

// What the state of the learner's own steps says of a row, and what Gradients says of its weights.
void ExpectMarginOfState(const Learner& learner) {
  std::mt19937_64 random(7);
  std::vector<float> state(size_t{learner.width()} * kFeatures);
  Scratch scratch;
  for (int turn = 0; turn < 40; ++turn) {
    const Example example = ExampleWithFields(random);
    const Row row = example.row();
    std::vector<float> weights, gradients;
    for (uint32_t i = 0; i < row.count; ++i) {
      const float* const own = state.data() + size_t{row.features[i]} * learner.width();
      for (const Slot& slot : learner.slots())
        weights.push_back(WeightOf(slot, own[slot.value], own[slot.squares]));
    }
    gradients.resize(weights.size());
    float shifted = 0;
    const std::vector<float> shift(weights.size());
    const float expected =
        learner.Gradients(weights.data(), shift.data(), row, gradients.data(), &shifted);
    EXPECT_EQ(shifted, 0);
    const float label = static_cast<float>(turn % 2);
    EXPECT_NEAR(learner.Step(state.data(), nullptr, row, label, &scratch), expected, 1e-3) << turn;
  }
}

void ExpectShiftedMargin(const Learner& learner) {
  std::mt19937_64 random(5);
  for (int turn = 0; turn < 20; ++turn) {
    const Example example = ExampleWithFields(random);
    const Row row = example.row();
    std::vector<float> weights = RandomWeights(random, row.count * learner.slots().size());
    const std::vector<float> shift = RandomWeights(random, weights.size());
    std::vector<float> gradients(weights.size());
    float shifted = 0, unused = 0;
    const float with =
        learner.Gradients(weights.data(), shift.data(), row, gradients.data(), &shifted);
    for (size_t at = 0; at < weights.size(); ++at) weights[at] -= shift[at];
    const float without =
        learner.Gradients(weights.data(), shift.data(), row, gradients.data(), &unused);
    EXPECT_NEAR(shifted, with - without, 1e-4) << turn;
  }
}

TEST(SparseReplay, AShiftMovesTheMargin) {
  ExpectShiftedMargin(*logistic::LogisticLearner::Make({}));
  ExpectShiftedMargin(*fm::FmLearner::Make({}));
  const std::unique_ptr<Learner> by_field = *ffm::FfmLearner::Make({})->ForFields(kFields);
  ExpectShiftedMargin(*by_field);
}

TEST(SparseReplay, WeightsOfAStateHaveTheMarginThatIsTrained) {
  ExpectMarginOfState(*logistic::LogisticLearner::Make({}));
  ExpectMarginOfState(*fm::FmLearner::Make({}));
  const std::unique_ptr<Learner> by_field = *ffm::FfmLearner::Make({})->ForFields(kFields);
  ExpectMarginOfState(*by_field);
}

TEST(SparseReplay, AStateIsWeightsAndBack) {
  const fm::FmLearner learner = *fm::FmLearner::Make({});
  for (const Slot& slot : learner.slots()) {
    for (const float n : {0.0f, 0.01f, 3.0f, 1e6f})
      EXPECT_NEAR(ValueOf(slot, WeightOf(slot, 0.7f, n), n), 0.7f, 1e-6);
  }
}

const Rate kRate = logistic::LogisticLearner::Make({})->slots()[0].rate;

// Two features that one example has, both of which others have moved.
class Moved {
 public:
  explicit Moved(float shift)
      : own_{0.1f, 0, -0.2f, 0}, shift_{shift, RateOf(kRate, 4), shift, RateOf(kRate, 4)} {}

  float Margin() const { return shift_[0] + shift_[2]; }
  void Meet(float weight) {
    const logistic::LogisticLearner learner = *logistic::LogisticLearner::Make({});
    std::vector<float> scratch;
    const std::vector<SlotRun> runs = RunsOf(learner.slots());
    const Merge merge{own_, shift_, merge_states_, 2, UINT64_MAX, ScalarMergeKernels(), runs};
    const uint32_t features[] = {0, 1};
    Replay(learner, merge, {{features, nullptr, 2, 1, nullptr}, 1, weight}, &scratch);
  }
  MergeState met(size_t feature) const { return merge_states_[feature]; }
  // In the form of a state as it is trained.
  void LeaveSecondAlone() {
    merge_states_[1] = MergeState::kUntouched;
    own_[3] = 4;
  }

 private:
  float own_[4], shift_[4];
  MergeState merge_states_[2] = {MergeState::kTheirs, MergeState::kTheirs};
};

TEST(SparseReplay, TakesNoMoreThanTheShift) {
  for (const float shift : {0.2f, -0.2f}) {
    Moved none(shift), little(shift), all(shift);
    none.Meet(0);
    EXPECT_EQ(none.Margin(), 2 * shift);
    little.Meet(1);
    EXPECT_LT(std::abs(little.Margin()), std::abs(2 * shift));
    EXPECT_GT(little.Margin() / shift, 0);
    all.Meet(1e6f);
    EXPECT_NEAR(all.Margin(), 0, 1e-6);
    EXPECT_EQ(all.met(0), MergeState::kChanged);
  }
}

TEST(SparseReplay, ManyAtOnceAreAboutAsManyInTurn) {
  Moved at_once(0.2f), in_turn(0.2f);
  at_once.Meet(16);
  for (int i = 0; i < 16; ++i) in_turn.Meet(1);
  EXPECT_NEAR(at_once.Margin(), in_turn.Margin(), 0.02 * 0.4);
}

TEST(SparseReplay, OneMarginAtATime) {
  Moved far(10);
  far.Meet(1e6f);
  EXPECT_NEAR(far.Margin(), 19, 1e-4);
}

TEST(SparseReplay, AFeatureThatIsNotInTheExchangeStays) {
  Moved moved(0.2f);
  moved.LeaveSecondAlone();
  moved.Meet(1e6f);
  EXPECT_EQ(moved.met(1), MergeState::kUntouched);
  EXPECT_LT(moved.Margin(), 0.35f);
  EXPECT_GE(moved.Margin(), 0.2f);
}

// The threads of a worker replay examples of their own into one merge, without locks. Under the
// thread sanitizer this shows whether everything that a replay calls is exempt from it.
TEST(SparseReplay, ThreadsReplayIntoOneMerge) {
  constexpr int kReplays = 200;
  const fm::FmLearner learner = *fm::FmLearner::Make({});
  const std::vector<SlotRun> runs = RunsOf(learner.slots());
  const uint64_t width = learner.width();
  for (const std::string_view name : AvailableMergeKernels()) {
    std::mt19937_64 random(3);
    const std::vector<float> own = RandomWeights(random, kFeatures * width);
    std::vector<float> shift(own.size(), 0.2f);  // a rate, too
    std::vector<MergeState> met(kFeatures, MergeState::kTheirs);
    const Merge merge{
        own.data(), shift.data(), met.data(), width, UINT64_MAX, *ChooseMergeKernels(name), runs};
    std::vector<std::thread> threads;
    for (const uint64_t seed : {8, 9}) {
      threads.emplace_back([&, seed] {
        std::mt19937_64 own_random(seed);
        std::vector<float> scratch;
        for (int i = 0; i < kReplays; ++i) {
          const Example example = RandomExample(own_random, kFeatures);
          Replay(learner, merge, {example.row(), 1, 1}, &scratch);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const float left : shift) EXPECT_TRUE(std::isfinite(left)) << name;
    EXPECT_EQ(std::count(met.begin(), met.end(), MergeState::kChanged), kFeatures) << name;
  }
}

// Another worker moved a weight while this one trained on examples that all have it. Had this one
// trained afterwards, its examples would have answered; the replay of all of them comes close.
TEST(SparseReplay, IsLikeTrainingAfterTheOthers) {
  constexpr float kBefore = 400;  // squares: the rate hardly changes
  constexpr int kExamples = 40;
  const logistic::LogisticLearner learner = *logistic::LogisticLearner::Make({});
  const Slot slot = learner.slots()[0];
  const uint32_t feature = 0;
  const Row row{&feature, nullptr, 1, 1, nullptr};
  Scratch scratch;
  const auto trained_from = [&](float weight) {
    float state[] = {ValueOf(slot, weight, kBefore), kBefore};
    for (int i = 0; i < kExamples; ++i)
      learner.Step(state, nullptr, row, i % 4 == 0 ? 1.0f : 0.0f, &scratch);
    return WeightOf(slot, state[0], state[1]);
  };
  const float alone = trained_from(0), after = trained_from(0.5f);
  float own[] = {alone, 0}, shift[] = {0.5f, RateOf(slot.rate, kBefore)};
  MergeState met = MergeState::kChanged;
  std::vector<float> floats;
  const std::vector<SlotRun> runs = RunsOf(learner.slots());
  for (int i = 0; i < kExamples; ++i)
    Replay(learner, {own, shift, &met, 2, UINT64_MAX, ScalarMergeKernels(), runs}, {row, 1, 1},
           &floats);
  EXPECT_LT(after - alone, 0.45f);
  EXPECT_NEAR(alone + shift[0], after, 0.1f * (0.5f - (after - alone)) + 0.005f);
}

TEST(SparseReplay, StepsWithoutTheSquaresOfOthersWereTooLong) {
  const Rate rate{0.1f, 1};
  EXPECT_EQ(StepRatio(rate, 4, 4, 100), 1);
  EXPECT_EQ(StepRatio(rate, 4, 9, 4), 1);
  EXPECT_EQ(StepRatio(rate, 4, 9, 0), 1);  // never longer
  EXPECT_FLOAT_EQ(StepRatio(rate, 4, 9, 44), (1 + 2.5f) / (1 + (std::sqrt(44.0f) + 7) / 2));
}

TEST(SparseReplaySample, IsASixteenthOrEnoughAndBriefInLongerRounds) {
  const auto is = [](const ReplaySample& sample, uint64_t count, uint64_t step, float weight) {
    EXPECT_EQ(sample.count, count);
    EXPECT_EQ(sample.step, step);
    EXPECT_NEAR(sample.weight, weight, 1e-3f);
  };
  is(SampleOf(100, 100, 128, true), 100, 1, 1);
  is(SampleOf(100, 50, 128, true), 50, 1, 2);
  is(SampleOf(32768, 32768, 128, true), 2048, 16, 16);
  is(SampleOf(4096, 4096, 1024, false), 1024, 4, 4);
  is(SampleOf(4096, 4096, 1024, true), 256, 16, 16);
  is(SampleOf(0, 0, 128, true), 0, 1, 1);
}

}  // namespace
}  // namespace shoal::learn::sparse
