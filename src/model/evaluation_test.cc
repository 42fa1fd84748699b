// Search and evaluation against tests/golden/vectors, which numpy and scipy computed.
#include "model/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/file.h"
#include "base/json.h"

namespace shoal::model {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kGolden = SHOAL_GOLDEN_VECTORS;

json::object Expected() {
  return ParseJsonObject(ReadFile(kGolden / "expected.json", 1 << 20).value()).value();
}
VectorIndex Small() { return VectorIndex(ReadVectors(kGolden / "small.txt").value()); }

void ExpectSame(const AnalogySection& ours, const json::value& golden) {
  EXPECT_EQ(ours.right, golden.at("right").to_number<uint64_t>()) << ours.name;
  EXPECT_EQ(ours.answered, golden.at("answered").to_number<uint64_t>()) << ours.name;
  EXPECT_EQ(ours.asked, golden.at("asked").to_number<uint64_t>()) << ours.name;
  if (ours.answered > 0 && golden.as_object().contains("accuracy")) {
    EXPECT_DOUBLE_EQ(ours.accuracy(), golden.at("accuracy").as_double());
  }
}

TEST(Evaluate, PairsAgreeWithScipy) {
  const json::object expected = Expected();
  const PairSimilarity ours = EvaluatePairs(Small(), kGolden / "pairs.tsv").value();
  EXPECT_NEAR(ours.spearman, expected.at("pairs").at("spearman").as_double(), 1e-12);
  EXPECT_EQ(ours.pairs, expected.at("pairs").at("pairs").to_number<uint64_t>());
  EXPECT_EQ(ours.skipped, expected.at("pairs").at("skipped").to_number<uint64_t>());
}

TEST(Evaluate, AnalogiesAgreeWithNumpy) {
  const json::object expected = Expected();
  for (const auto& [name, limit] : {std::pair{"analogies", 0}, {"restricted", 30}}) {
    const AnalogyResults ours =
        EvaluateAnalogies(Small(), kGolden / "questions.txt", static_cast<uint64_t>(limit)).value();
    const json::value& golden = expected.at(name);
    ExpectSame(ours.total, golden.at("total"));
    ExpectSame(ours.semantic, golden.at("semantic"));
    ExpectSame(ours.syntactic, golden.at("syntactic"));
    ASSERT_EQ(ours.sections.size(), golden.at("sections").as_object().size());
    for (const AnalogySection& section : ours.sections) {
      ExpectSame(section, golden.at("sections").at(section.name));
    }
  }
}

TEST(Evaluate, SpearmanWithTiesAgreesWithScipy) {
  const json::value golden = Expected().at("spearman");
  const auto numbers = [&](const char* name) {
    std::vector<double> values;
    for (const json::value& v : golden.at(name).as_array()) values.push_back(v.to_number<double>());
    return values;
  };
  EXPECT_NEAR(Spearman(numbers("a"), numbers("b")), golden.at("rho").as_double(), 1e-12);
  EXPECT_TRUE(std::isnan(Spearman(std::vector<double>{1}, std::vector<double>{1})));
  EXPECT_TRUE(std::isnan(Spearman(std::vector<double>{1, 1}, std::vector<double>{1, 2})));
}

TEST(Evaluate, ReadsPairsWithCommasAndHeadingsAndNamesBadLines) {
  const TempDir temp = TempDir::Create().value();
  const auto similarity = [&](std::string_view text) {
    EXPECT_TRUE(WriteFileAtomically(temp.path() / "pairs", text, 0644, false).ok());
    return EvaluatePairs(Small(), temp.path() / "pairs");
  };
  const auto csv = similarity("Word 1,Word 2,Human (mean)\nw1,w2,7.5\r\nw3, w4,1\nw5,nobody,2\n");
  EXPECT_EQ(csv.value().pairs, 2u);
  EXPECT_EQ(csv.value().skipped, 1u);
  EXPECT_EQ(similarity("word1\tword2\tPOS\tSimLex999\nw1\tw2\tA\t1.5\n").value().pairs, 1u);
  EXPECT_THAT(similarity("w1\tw2\t3\nw1\tw2\tthree\n").status().message(),
              HasSubstr("pairs: line 2: there is no score"));
  EXPECT_THAT(similarity("w1\tw2\n").status().message(), HasSubstr("line 1: got 2 fields"));
  EXPECT_EQ(EvaluatePairs(Small(), temp.path() / "none").status().code(), Code::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(temp.path() / "q", ": s\na b c\n", 0644, false).ok());
  EXPECT_THAT(EvaluateAnalogies(Small(), temp.path() / "q", 0).status().message(),
              HasSubstr("line 2: got 3 words, expected 4"));
}

TEST(VectorIndex, NearestAgreesWithNumpy) {
  const VectorIndex index = Small();
  const json::value golden = Expected().at("nearest");
  const std::vector<std::string> words = {std::string(golden.at("word").as_string())};
  const auto near = NearestWords(index, words, 5).value();
  for (size_t i = 0; i < near.size(); ++i) {
    EXPECT_EQ(near[i].row, golden.at("rows").as_array()[i].to_number<uint64_t>());
    EXPECT_NEAR(near[i].similarity, golden.at("similarity").as_array()[i].as_double(), 1e-6);
  }
}

// Sizes that are no multiple of anything, against plain loops.
TEST(VectorIndex, SearchAgreesWithPlainLoops) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const auto& [rows, dim] :
       {std::pair<size_t, uint64_t>{1, 1}, {65, 7}, {333, 33}, {130, 100}}) {
    Vectors vectors;
    vectors.dim = dim;
    for (size_t i = 0; i < rows; ++i) {
      vectors.words.push_back(std::to_string(i));
      for (uint64_t j = 0; j < dim; ++j) vectors.values.push_back(normal(random));
    }
    const VectorIndex index(vectors);
    const size_t queries = 11;
    std::vector<float> q(queries * dim);
    std::vector<uint64_t> excluded(3 * queries), best(queries);
    for (float& value : q) value = normal(random);
    for (uint64_t& row : excluded) row = random() % rows;
    const uint64_t limit = rows - rows / 4;
    index.BestRows(q, excluded, limit, best);
    for (size_t i = 0; i < queries; ++i) {
      const std::span<const float> query(q.data() + i * dim, dim);
      const std::span<const uint64_t> out(excluded.data() + 3 * i, 3);
      double top = -INFINITY;
      uint64_t expected = 0;
      for (uint64_t r = 0; r < limit; ++r) {
        double dot = 0;
        for (uint64_t k = 0; k < dim; ++k) dot += double{query[k]} * index.unit(r)[k];
        const bool free = std::find(out.begin(), out.end(), r) == out.end();
        if (free && dot > top) {
          top = dot;
          expected = r;
        }
      }
      EXPECT_EQ(best[i], expected);
      const auto near = index.Nearest(query, 1, out);
      EXPECT_TRUE(limit != rows || near.empty() || near[0].row == expected);
    }
    EXPECT_LE(index.Nearest({q.data(), dim}, 10'000, {}).size(), rows);
  }
}

TEST(VectorIndex, FindsWordsAsWrittenThenWithoutCase) {
  const VectorIndex index = Small();
  EXPECT_EQ(index.Find("Paris"), 56u);
  EXPECT_EQ(index.Find("paris"), 57u);
  EXPECT_EQ(index.FindIgnoringCase("PARIS"), 56u);
  EXPECT_EQ(index.Find("france"), 58u);
  EXPECT_EQ(index.Find("NA\xc3\x8fVE"), 59u);
  EXPECT_EQ(index.Find("nobody"), std::nullopt);
}

TEST(VectorIndex, SuggestsTheNearestSpelling) {
  const VectorIndex index(Vectors{{"their", "there", "receive", "zebra"}, 1, {1, 2, 3, 4}});
  EXPECT_EQ(index.Suggest("thier"), "their");
  EXPECT_EQ(index.Suggest("ther"), "their");  // as near as "there", and more frequent
  EXPECT_EQ(index.Suggest("Recieve"), "receive");
  EXPECT_EQ(index.Suggest("qqqqq"), std::nullopt);
  const auto unknown = NearestWords(index, std::vector<std::string>{"zebr"}, 1);
  EXPECT_EQ(unknown.status().code(), Code::kNotFound);
  EXPECT_EQ(unknown.status().message(), "'zebr' is not in the vocabulary; did you mean 'zebra'?");
  EXPECT_EQ(Analogy(index, "their", "qqqqq", "zebra", 1).status().message(),
            "'qqqqq' is not in the vocabulary of 4 words");
}

TEST(VectorIndex, SetsNonFiniteValuesToZero) {
  const VectorIndex index(Vectors{{"a", "b", "c"}, 2, {NAN, 2, 0, 0, 3, INFINITY}});
  EXPECT_EQ(index.nonfinite_rows(), 2u);
  EXPECT_EQ(index.unit(0)[1], 1);
  EXPECT_EQ(index.unit(1)[0], 0);
  EXPECT_EQ(index.unit(2)[0], 1);
}

}  // namespace
}  // namespace shoal::model
