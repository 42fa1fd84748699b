#include "sql/complete/complete.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "sql/testing/fake_host.h"

namespace shoal::sql {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class Completions : public testing::Test {
 protected:
  Completions() {
    Table people;
    people.columns = {{"age", data::ColumnType::kInteger, 0}, {"town", data::ColumnType::kText, 0}};
    state_.tables["people"] = people;
    state_.functions["income_of"] = {"income_of", "fm", "/m"};
    state_.variables.Set("out", "/tmp");
  }
  // At the end of the text.
  std::vector<std::string> Of(const std::string& text) {
    last_ = Complete(text, text.size(), state_);
    return last_.candidates;
  }

  FakeHost host_;
  SessionState state_{&host_};
  Completion last_;
};

TEST_F(Completions, OfStatements) {
  EXPECT_THAT(Of("lo"), ElementsAre("load"));
  EXPECT_EQ(last_.begin, 0U);
  EXPECT_THAT(Of("set a='b;';\n  TR"), ElementsAre("train"));
  EXPECT_EQ(last_.begin, 14U);
  EXPECT_THAT(Of(""), Contains("select"));
  EXPECT_THAT(Of("!sh"), ElementsAre("show"));
  EXPECT_THAT(Of("!show mo"), ElementsAre("models"));
  EXPECT_THAT(Of("!desc p"), ElementsAre("people"));
}

TEST_F(Completions, OfTables) {
  EXPECT_THAT(Of("train p"), ElementsAre("people"));
  EXPECT_THAT(Of("load csv.`x` as other; predict o"), ElementsAre("other"));
  EXPECT_THAT(Of("select 1 as tmp; drop t"), ElementsAre("tmp"));
  EXPECT_THAT(Of("save over"), ElementsAre("overwrite"));
  EXPECT_THAT(Of("save overwrite pe"), ElementsAre("people"));
  EXPECT_THAT(Of("save overwrite people as cs"), ElementsAre("csv"));
}

TEST_F(Completions, OfAlgorithmsAndTheirParameters) {
  EXPECT_THAT(Of("train people as Log"), ElementsAre("LogisticRegression"));
  EXPECT_THAT(Of("train people as D"), ElementsAre("DTF", "DTFAlg"));
  EXPECT_THAT(Of("predict people as D"), IsEmpty());
  EXPECT_THAT(Of("train people as FM.`m` w"), ElementsAre("where"));
  EXPECT_THAT(Of("train people as FM.`m` where epo"), ElementsAre("epochs"));
  EXPECT_THAT(Of("train people as FM.`m` where epochs='1' and keepV"), ElementsAre("keepVersion"));
  EXPECT_THAT(Of("train people as DTFAlg.`m` where pythonS"), ElementsAre("pythonScriptPath"));
  EXPECT_THAT(Of("train people as FM.`m` where a="), ElementsAre("\"false\"", "\"true\""));
  EXPECT_THAT(Of("load csv.`x` where he"), ElementsAre("header"));
  EXPECT_THAT(Of("load cs"), ElementsAre("csv"));
}

TEST_F(Completions, OfQueries) {
  EXPECT_THAT(Of("select ag"), IsEmpty());
  EXPECT_THAT(Of("select people.t"), ElementsAre("town"));
  EXPECT_THAT(Of("select count(*) from people where ag"), ElementsAre("age"));
  EXPECT_THAT(Of("select income_"), ElementsAre("income_of"));
  EXPECT_THAT(Of("select '${o"), ElementsAre("out"));
}

TEST_F(Completions, OfPaths) {
  TempDir dir = *TempDir::Create("complete");
  std::ofstream(dir.path() / "people.csv") << "a\n";
  std::ofstream(dir.path() / ".hidden") << "a\n";
  std::filesystem::create_directory(dir.path() / "parts");
  const std::string folder = dir.path().string() + "/";
  EXPECT_THAT(Of("load csv.`" + folder), ElementsAre(folder + "parts/", folder + "people.csv`"));
  EXPECT_THAT(Of("load csv.`" + folder + "peo"), ElementsAre(folder + "people.csv`"));
}

// Whatever stands there, nothing is lost and the place is within the text.
TEST_F(Completions, OfAnything) {
  for (const std::string text : {"`", "'", "\"\"\"x", "select (", "!", "load csv.",
                                 "train x as y.`a` where `b", "/*", "${", "=", ";;"}) {
    for (size_t cursor = 0; cursor <= text.size(); ++cursor) {
      const Completion completion = Complete(text, cursor, state_);
      EXPECT_LE(completion.begin, cursor) << text;
    }
  }
}

}  // namespace
}  // namespace shoal::sql
