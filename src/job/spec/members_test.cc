// The members of a matrix and of a sweep.

#include "job/spec/members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace shoal::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<MatrixValues> Members(const Triggers& triggers) {
  auto members = MembersOf(triggers);
  EXPECT_TRUE(members.ok()) << members.status().message();
  return members.value_or({});
}

TEST(Members, AMatrixVariesItsLastParameterFastest) {
  Triggers triggers;
  triggers.matrix.parameters = {{"lr", {"0.1", "0.01"}}, {"dim", {"100", "300"}}};
  EXPECT_THAT(Members(triggers), ElementsAre(MatrixValues{{"lr", "0.1"}, {"dim", "100"}},
                                             MatrixValues{{"lr", "0.1"}, {"dim", "300"}},
                                             MatrixValues{{"lr", "0.01"}, {"dim", "100"}},
                                             MatrixValues{{"lr", "0.01"}, {"dim", "300"}}));
}

// The example of GitHub's documentation of `include`.
TEST(Members, IncludeIsThatOfGitHubsMatrix) {
  Triggers triggers;
  triggers.matrix.parameters = {{"fruit", {"apple", "pear"}}, {"animal", {"cat", "dog"}}};
  triggers.matrix.include = {{{"color", "green"}},
                             {{"color", "pink"}, {"animal", "cat"}},
                             {{"fruit", "apple"}, {"shape", "circle"}},
                             {{"fruit", "banana"}},
                             {{"fruit", "banana"}, {"animal", "cat"}}};
  EXPECT_THAT(
      Members(triggers),
      ElementsAre(
          MatrixValues{
              {"fruit", "apple"}, {"animal", "cat"}, {"color", "pink"}, {"shape", "circle"}},
          MatrixValues{
              {"fruit", "apple"}, {"animal", "dog"}, {"color", "green"}, {"shape", "circle"}},
          MatrixValues{{"fruit", "pear"}, {"animal", "cat"}, {"color", "pink"}},
          MatrixValues{{"fruit", "pear"}, {"animal", "dog"}, {"color", "green"}},
          MatrixValues{{"fruit", "banana"}}, MatrixValues{{"fruit", "banana"}, {"animal", "cat"}}));
}

TEST(Members, ExcludeTakesEveryCombinationThatItMatches) {
  Triggers triggers;
  triggers.matrix.parameters = {{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}};
  triggers.matrix.exclude = {{{"a", "1"}}, {{"a", "2"}, {"b", "y"}}};
  triggers.matrix.include = {{{"a", "1"}, {"b", "w"}}};
  EXPECT_THAT(Members(triggers), ElementsAre(MatrixValues{{"a", "2"}, {"b", "x"}},
                                             MatrixValues{{"a", "2"}, {"b", "z"}},
                                             MatrixValues{{"a", "1"}, {"b", "w"}}));
  triggers.matrix.exclude = {{{"a", "1"}}, {{"a", "2"}}};
  triggers.matrix.include.clear();
  EXPECT_THAT(MembersOf(triggers).status().message(), HasSubstr("no member"));
}

TEST(Members, ManyEntriesForManyCombinationsAreRefused) {
  Triggers triggers;
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back(std::to_string(i));
  triggers.matrix.parameters = {{"a", many}, {"b", many}};
  triggers.matrix.include.assign(51, {{"a", "1"}, {"c", "2"}});
  EXPECT_THAT(MembersOf(triggers).status().message(), HasSubstr("51 entries of include"));
}

TEST(Members, TooManyAreRefusedBeforeTheyAreMade) {
  Triggers triggers;
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back(std::to_string(i));
  for (const char* const name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"})
    triggers.matrix.parameters.emplace_back(name, many);
  EXPECT_THAT(MembersOf(triggers).status().message(), HasSubstr("expected at most 10000"));
  triggers.matrix.parameters.resize(2);
  EXPECT_EQ(Members(triggers).size(), 10'000u);
}

Triggers SweepOf(std::vector<SweepParameter> parameters, int trials) {
  Triggers triggers;
  triggers.sweep.objective = "loss";
  triggers.sweep.parameters = std::move(parameters);
  triggers.sweep.trials = trials;
  return triggers;
}

// Each kind fills its range evenly: a tenth of the draws in each tenth of it, within 5 standard
// deviations.
TEST(Members, DrawnValuesFillTheirRanges) {
  constexpr int kDraws = 10'000;
  const auto triggers = SweepOf({{"c", ParameterKind::kChoice, {"a", "b"}, 0, 0, 0},
                                 {"u", ParameterKind::kUniform, {}, -2, 3, 0},
                                 {"l", ParameterKind::kLogUniform, {}, 1e-4, 1e-1, 0},
                                 {"i", ParameterKind::kInteger, {}, 1, 10, 0},
                                 {"g", ParameterKind::kLogInteger, {}, 1, 1000, 0}},
                                kDraws);
  std::map<std::string, std::map<int, int>> tenths;
  for (const MatrixValues& member : Members(triggers)) {
    const double u = std::stod(member.at("u"));
    const double l = std::stod(member.at("l"));
    const double i = std::stod(member.at("i"));
    const double g = std::stod(member.at("g"));
    ASSERT_TRUE(u >= -2 && u <= 3 && l >= 1e-4 && l <= 1e-1 && g >= 1 && g <= 1000);
    ++tenths["u"][static_cast<int>((u + 2) / 5 * 10)];
    ++tenths["l"][static_cast<int>((std::log10(l) + 4) / 3 * 10)];
    ++tenths["i"][static_cast<int>(i) - 1];
    ++tenths["c"][member.at("c") == "a" ? 0 : 1];
    EXPECT_EQ(g, std::floor(g));
  }
  for (const char* const name : {"u", "l", "i"}) {
    for (int tenth = 0; tenth < 10; ++tenth)
      EXPECT_NEAR(tenths[name][tenth], kDraws / 10, 150) << name << tenth;
  }
  EXPECT_NEAR(tenths["c"][0], kDraws / 2, 250);
}

TEST(Members, ASeedDrawsTheSameValuesAlways) {
  auto triggers = SweepOf({{"lr", ParameterKind::kLogUniform, {}, 1e-4, 1e-1, 0}}, 3);
  triggers.sweep.seed = 7;
  // Written once: another machine or release must draw them too.
  EXPECT_THAT(Members(triggers), ElementsAre(ElementsAre(Pair("lr", "0.00673261")),
                                             ElementsAre(Pair("lr", "0.00205716")),
                                             ElementsAre(Pair("lr", "0.00331746"))));
  const auto three = Members(triggers);
  triggers.sweep.trials = 1000;
  auto more = Members(triggers);
  std::set<std::string> distinct;
  for (const MatrixValues& member : more) distinct.insert(member.at("lr"));
  EXPECT_EQ(distinct.size(), 1000u);
  more.resize(3);
  EXPECT_EQ(more, three);
  triggers.sweep.seed = 8;
  EXPECT_NE(Members(triggers)[0], three[0]);
}

TEST(Members, AGridHasTheEndsOfItsRanges) {
  auto triggers = SweepOf({{"lr", ParameterKind::kLogUniform, {}, 0.001, 0.1, 3},
                           {"n", ParameterKind::kInteger, {}, 1, 3, 5},
                           {"c", ParameterKind::kChoice, {"a"}, 0, 0, 0}},
                          0);
  triggers.sweep.search = SweepSearch::kGrid;
  const auto members = Members(triggers);
  ASSERT_EQ(members.size(), 9u);  // 1, 1.5, 2, 2.5, 3 are three whole numbers
  EXPECT_EQ(members[0], (MatrixValues{{"lr", "0.001"}, {"n", "1"}, {"c", "a"}}));
  EXPECT_EQ(members[8], (MatrixValues{{"lr", "0.1"}, {"n", "3"}, {"c", "a"}}));
  triggers.sweep.trials = 4;
  EXPECT_EQ(Members(triggers).size(), 4u);
}

TEST(Members, OneIsThatOfAll) {
  auto sweep = SweepOf({{"lr", ParameterKind::kLogUniform, {}, 1e-4, 1e-1, 3}}, 20);
  Triggers matrix;
  matrix.matrix.parameters = {{"a", {"1", "2", "3"}}, {"b", {"x", "y"}}};
  matrix.matrix.include = {{{"c", "z"}}};
  Triggers grid = sweep;
  grid.sweep.search = SweepSearch::kGrid;
  for (const Triggers& triggers : {sweep, grid, matrix}) {
    const auto all = Members(triggers);
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(*MemberOf(triggers, i), all[i]);
    EXPECT_EQ(MemberOf(triggers, all.size()).status().message(),
              "there is no member " + std::to_string(all.size()));
  }
}

TEST(Members, ThoseToCheckAreBounded) {
  const auto triggers = SweepOf({{"lr", ParameterKind::kLogUniform, {}, 1e-4, 1e-1, 0}}, 10'000);
  EXPECT_EQ(MembersToCheck(Members(triggers)).size(), 20u);
}

TEST(Members, ThoseToCheckHaveEveryValue) {
  Triggers triggers;
  triggers.matrix.parameters = {{"a", {"1", "2", "3"}}, {"b", {"x", "y"}}};
  EXPECT_THAT(MembersToCheck(Members(triggers)), ElementsAre(0, 1, 2, 4));
}

}  // namespace
}  // namespace shoal::job
