#include "learn/word2vec/trainer/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "data/text/encoder.h"
#include "learn/word2vec/trainer/planted_text.h"

namespace shoal::learn::word2vec {
namespace {

constexpr uint32_t kWords = kGroups * kGroupWords;

// A model in memory, without servers.
struct Fixture {
  explicit Fixture(Params params_in,
                   std::vector<uint64_t> counts = std::vector<uint64_t>(kWords, 100))
      : params(std::move(params_in)),
        sampler(counts, params.sample),
        input(*Matrix::Make(counts.size(), static_cast<size_t>(params.dim))),
        output(*Matrix::Make(counts.size(), static_cast<size_t>(params.dim))) {
    Random random = Random::Of(1, 0);
    for (uint32_t row = 0; row < counts.size(); ++row) {
      for (int64_t k = 0; k < params.dim; ++k)
        input.row(row)[k] = (random.Unit() - 0.5f) / static_cast<float>(params.dim);
    }
  }
  TrainingSet Set() {
    TrainingSet set;
    set.params = params;
    set.sampler = &sampler;
    set.kernels = *ChooseKernels("auto");
    set.input = &input;
    set.output = &output;
    set.locks = &locks;
    return set;
  }
  std::unique_ptr<Trainer> MakeTrainer(uint64_t stream) {
    return std::move(*Trainer::Make(Set(), Random::Of(7, stream), ExchangePolicy(params, 1)));
  }
  std::unique_ptr<RowCopies> MakeCopies(uint32_t rows) {
    Matrix* const shared[kTables] = {&input, &output};
    return std::move(*RowCopies::Make(rows, shared, &locks, *ChooseKernels("auto")));
  }
  // Mean cosine within groups minus that between groups.
  double Contrast() const {
    double within = 0, between = 0, n_within = 0, n_between = 0;
    for (uint32_t a = 0; a < kWords; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        double dot = 0, aa = 0, bb = 0;
        for (int64_t k = 0; k < params.dim; ++k) {
          dot += static_cast<double>(input.row(a)[k]) * input.row(b)[k];
          aa += static_cast<double>(input.row(a)[k]) * input.row(a)[k];
          bb += static_cast<double>(input.row(b)[k]) * input.row(b)[k];
        }
        const bool same = a % kGroups == b % kGroups;
        (same ? within : between) += dot / std::sqrt(aa * bb);
        (same ? n_within : n_between) += 1;
      }
    }
    return within / n_within - between / n_between;
  }

  Params params;
  Sampler sampler;
  Matrix input, output;
  RowLocks locks;
};

Params SmallParams() {
  Params params;
  params.dim = 24;
  params.sample = 0;
  params.min_count = 1;
  return params;
}

std::vector<uint32_t> Items(size_t sentences, uint64_t seed) {
  std::vector<uint32_t> items;
  for (const auto& sentence : PlantedSentences(sentences, seed)) {
    items.insert(items.end(), sentence.begin(), sentence.end());
    items.push_back(data::kSentenceEnd);
  }
  return items;
}

void TrainAll(Trainer& trainer, std::span<const uint32_t> items, float alpha) {
  while (!items.empty()) {
    const size_t size = std::min(items.size(), Trainer::kBlockItems);
    trainer.Load(items.first(size));
    while (trainer.Train(100, alpha) > 0) {
    }
    items = items.subspan(size);
  }
}

class PlantedTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Cbow, PlantedTest, testing::Bool());

TEST_P(PlantedTest, LearnsWhichWordsStandTogether) {
  Params params = SmallParams();
  params.cbow = GetParam();
  Fixture fixture(params);
  const auto trainer = fixture.MakeTrainer(1);
  const auto items = Items(2000, 1);
  TrainAll(*trainer, items, 0.05f);
  const Trainer::Loss first = trainer->TakeLoss();
  for (int epoch = 0; epoch < 4; ++epoch) TrainAll(*trainer, items, 0.05f);
  const Trainer::Loss last = trainer->TakeLoss();
  EXPECT_EQ(trainer->words(), 5 * 2000 * 12u);
  EXPECT_GT(fixture.Contrast(), 0.5);
  ASSERT_GT(last.pairs, 0u);
  EXPECT_LT(last.sum / static_cast<double>(last.pairs),
            first.sum / static_cast<double>(first.pairs));
}

TEST(Trainer, ThreadsWithCopiesLearnTheSame) {
  for (const bool cbow : {false, true}) {
    Params params = SmallParams();
    params.cbow = cbow;
    Fixture fixture(params);
    // One after the other, so that the test is exact under every sanitizer; each has copies.
    const auto one = fixture.MakeTrainer(1);
    const auto two = fixture.MakeTrainer(2);
    const auto first = fixture.MakeCopies(kWords / 2);
    const auto second = fixture.MakeCopies(kWords / 2);
    one->UseCopies(first.get());
    two->UseCopies(second.get());
    const auto items = Items(500, 1);
    const auto others = Items(500, 2);
    for (int epoch = 0; epoch < 10; ++epoch) {
      TrainAll(*one, items, 0.05f);
      TrainAll(*two, others, 0.05f);
    }
    first->MergeAll();
    second->MergeAll();
    EXPECT_GT(fixture.Contrast(), 0.5) << cbow;
  }
}

// Sessions in which one item stands up to 80 times in a row: a wide window is then full of it, and
// as one step it would throw its row beyond every bound.
TEST(Trainer, RepeatedItemsInWideWindowsStayFinite) {
  constexpr uint32_t kItems = 100;
  std::vector<uint32_t> items;
  Random random = Random::Of(3, 0);
  while (items.size() < 30'000) {
    for (uint32_t n = 1 + random.Below(3); n > 0; --n)
      items.insert(items.end(), 1 + random.Below(80), random.Below(kItems));
    items.push_back(data::kSentenceEnd);
  }
  for (const bool hs : {false, true}) {
    for (const float alpha : {0.025f, 0.2f}) {
      Params params = SmallParams();
      params.window = 30;
      params.hs = hs;
      params.alpha = static_cast<double>(alpha);
      Fixture fixture(params, std::vector<uint64_t>(kItems, 300));
      const HuffmanTree tree(std::vector<uint64_t>(kItems, 300));
      TrainingSet set = fixture.Set();
      set.tree = &tree;
      const auto trainer =
          std::move(*Trainer::Make(set, Random::Of(7, 1), ExchangePolicy(params, 1)));
      for (int epoch = 0; epoch < 3; ++epoch) TrainAll(*trainer, items, alpha);
      for (uint32_t item = 0; item < kItems; ++item) {
        for (const Matrix* const rows : {&fixture.input, &fixture.output}) {
          float square = 0;
          for (int64_t k = 0; k < params.dim; ++k)
            square += rows->row(item)[k] * rows->row(item)[k];
          ASSERT_LT(square, 200) << item << " hs " << hs << " alpha " << alpha;  // also not NaN
        }
      }
      EXPECT_TRUE(std::isfinite(trainer->TakeLoss().sum));
    }
  }
}

TEST(Trainer, SameRandomStateSameModel) {
  Fixture first(SmallParams());
  Fixture second(SmallParams());
  const auto items = Items(300, 1);
  const auto whole = first.MakeTrainer(1);
  TrainAll(*whole, items, 0.05f);

  // The second stops in the middle, at a block's end, and another trainer goes on.
  const auto early = second.MakeTrainer(1);
  const std::span<const uint32_t> all = items;
  const size_t half = 2 * Trainer::kBlockItems;
  TrainAll(*early, all.first(half), 0.05f);
  const auto late = second.MakeTrainer(9);
  late->set_random(early->random());
  TrainAll(*late, all.subspan(half), 0.05f);
  for (uint32_t row = 0; row < kWords; ++row) {
    ASSERT_EQ(std::memcmp(first.input.row(row), second.input.row(row), 24 * sizeof(float)), 0);
  }
}

TEST(Trainer, TinyVocabulariesAndSentences) {
  for (const size_t words : {1u, 2u, 3u, 7u}) {
    Params params = SmallParams();
    params.negative = 10;
    Fixture fixture(params, std::vector<uint64_t>(words, 5));
    const auto trainer = fixture.MakeTrainer(1);
    const auto copies = fixture.MakeCopies(std::min<uint32_t>(2, static_cast<uint32_t>(words)));
    trainer->UseCopies(copies.get());
    std::vector<uint32_t> items;
    for (uint32_t i = 0; i < 200; ++i) {
      items.push_back(i % static_cast<uint32_t>(words));
      if (i % 5 == 4 || i % 7 == 0) items.push_back(data::kSentenceEnd);
    }
    TrainAll(*trainer, items, 0.05f);
    trainer->Load({});
    EXPECT_EQ(trainer->Train(1, 0.05f), 0u);
    copies->MergeAll();
    EXPECT_EQ(trainer->words(), 200u);
    for (uint32_t row = 0; row < words; ++row) {
      for (int k = 0; k < 24; ++k) ASSERT_TRUE(std::isfinite(fixture.input.row(row)[k]));
    }
  }
}

TEST(Trainer, TellsWhichRowsAreDue) {
  Params params = SmallParams();
  Fixture fixture(params);
  const ExchangePolicy workers(params, 2);
  const auto trainer = std::move(*Trainer::Make(fixture.Set(), Random::Of(7, 1), workers));
  const uint16_t due = workers.UsesUntilDue(kInput, 0.05);
  ASSERT_GT(due, 2);
  // Word 3 occurs just often enough, the others do not.
  std::vector<uint32_t> items;
  for (uint32_t i = 0; i < due; ++i) {
    items.push_back(3);
    items.push_back(i % 2 == 0 ? 4 : 5);
  }
  items.push_back(data::kSentenceEnd);
  trainer->Load(items);
  EXPECT_EQ(trainer->Train(UINT32_MAX, 0.05f), 2u * due);
  ASSERT_EQ(trainer->due(kInput).size(), 1u);
  EXPECT_EQ(trainer->due(kInput)[0], 3u);
  EXPECT_FALSE(trainer->uses(kInput).TakeUsed(3));  // starts again
  EXPECT_TRUE(trainer->uses(kInput).TakeUsed(4));
  EXPECT_FALSE(trainer->uses(kInput).TakeUsed(4));
  EXPECT_FALSE(trainer->uses(kInput).TakeUsed(30));
}

}  // namespace
}  // namespace shoal::learn::word2vec
