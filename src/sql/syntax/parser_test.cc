#include "sql/syntax/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>

namespace shoal::sql {
namespace {

using testing::HasSubstr;

std::vector<Statement> Parse(const std::string& text) {
  const ScriptText script("a.sql", text);
  Parser parser(script);
  std::vector<Statement> statements;
  for (;;) {
    auto next = parser.Next();
    EXPECT_TRUE(next.ok()) << next.status().message();
    if (!next.ok() || !*next) return statements;
    statements.push_back(std::move(**next));
  }
}

std::string ErrorOf(const std::string& text) {
  const auto checked = CheckScript(ScriptText("a.sql", text));
  return checked.ok() ? "parsed" : checked.status().message();
}

template <typename Body>
const Body& Only(const std::vector<Statement>& statements) {
  EXPECT_EQ(statements.size(), 1u);
  return std::get<Body>(statements.at(0).body);
}

TEST(Parser, StatementsOfEachKind) {
  const auto load =
      Only<LoadStatement>(Parse("LOAD csv.`a b.csv` WHERE header = 'true' and `x.y`.z=\"1\" as t"));
  EXPECT_EQ(load.source.kind.text, "csv");
  EXPECT_EQ(load.source.path.text, "a b.csv");
  ASSERT_EQ(load.options.size(), 2u);
  EXPECT_EQ(load.options[1].key.text, "x.y.z");
  EXPECT_EQ(load.options[1].value.text, "1");
  EXPECT_EQ(load.table.text, "t");
  const auto train = Only<TrainStatement>(
      Parse("train t as FM.`/m` where `fitParam.0.epochs`=5 and fitParam.0.x=-1.5e-3 as r;"));
  EXPECT_EQ(train.options[0].key.text, "fitParam.0.epochs");
  EXPECT_EQ(train.options[1].key.text, "fitParam.0.x");
  EXPECT_EQ(train.options[1].value.text, "-1.5e-3");
  EXPECT_EQ(train.result->text, "r");
  EXPECT_EQ(Only<SaveStatement>(Parse("save Overwrite t as csv.`/o`;")).mode, SaveMode::kOverwrite);
  EXPECT_EQ(Only<SaveStatement>(Parse("save t as csv.`/o`;")).mode, SaveMode::kErrorIfExists);
  EXPECT_EQ(Only<SetStatement>(Parse("set a.b=\"\"\"x\"y\"\"\";")).value.text, "x\"y");
  EXPECT_EQ(Only<CommandStatement>(Parse("!show tables;")).arguments.at(0).text, "tables");
  EXPECT_EQ(Only<IncludeStatement>(Parse("include file.`b.sql`;")).source.path.text, "b.sql");
  EXPECT_EQ(Only<DropStatement>(Parse("drop table `t`;")).table.text, "t");
}

TEST(Parser, CommentsAndEmptyStatementsAreNothing) {
  EXPECT_EQ(Parse(";;-- one\n /* two ; */ ; -- three").size(), 0u);
  EXPECT_EQ(Parse("set /* a */ x -- b\n = 'c'; /* d */").size(), 1u);
}

TEST(Parser, TextsKnowEscapes) {
  EXPECT_EQ(Only<SetStatement>(Parse(R"(set x = 'a\'b\\\n\d"';)")).value.text, "a'b\\\n\\d\"");
  EXPECT_EQ(Only<SetStatement>(Parse("set x = '''a'b\\n''';")).value.text, "a'b\\n");
}

TEST(Parser, QueriesEndWithTheirName) {
  const auto select = Only<SelectStatement>(
      Parse("select a as b, ';' /* x */ from `my t` where c = 'it''s' -- d\n as out;"));
  EXPECT_EQ(select.table.text, "out");
  EXPECT_EQ(select.query.text,
            "select a as b, ';'         from \"my t\" where c = 'it''s'     \n ");
  EXPECT_EQ(
      Only<SelectStatement>(Parse("with a as (select 1 as x) select * from a as `o`")).table.text,
      "o");
  EXPECT_EQ(Only<SelectStatement>(Parse("select 'a' as b as c;")).query.text, "select 'a' as b ");
}

TEST(Parser, ErrorsPointAtTheirPlace) {
  EXPECT_EQ(
      ErrorOf("set a='1';\n  lod csv.`x` as t;"),
      "a.sql:2:3: got lod, expected a statement: set, load, select, train, predict, register, "
      "save, include, connect, create, drop or !command; did you mean 'load'?\n"
      "  2 |   lod csv.`x` as t;\n"
      "    |   ^~~");
  EXPECT_THAT(ErrorOf("load csv.`x`"),
              HasSubstr("a.sql:1:13: got the end of the script, expected as"));
  EXPECT_THAT(ErrorOf("load csv.\"x\" as t"),
              HasSubstr("a.sql:1:10: got a text, expected a path in backquotes: `x`"));
  EXPECT_THAT(ErrorOf("set é='1' b"), HasSubstr("a.sql:1:11: got b, expected a semicolon"));
  EXPECT_THAT(ErrorOf("set x='a"), HasSubstr("a.sql:1:7: this text is not closed"));
  EXPECT_THAT(ErrorOf("set x=\"\"\"a\""),
              HasSubstr("a.sql:1:7: this text is not closed; end it with \"\"\""));
  EXPECT_THAT(ErrorOf("/* a"), HasSubstr("a.sql:1:1: this comment is not closed"));
  EXPECT_THAT(ErrorOf("load csv.`a"), HasSubstr("a.sql:1:10: this name is not closed"));
  EXPECT_THAT(ErrorOf("select (1 as t;"), HasSubstr("a.sql:1:8: this parenthesis is not closed"));
  EXPECT_THAT(ErrorOf("select 1) as t;"), HasSubstr("a.sql:1:9: this parenthesis closes none"));
  EXPECT_THAT(ErrorOf("select 1;"), HasSubstr("end it with `as NAME`"));
  EXPECT_THAT(ErrorOf("set x = y;"),
              HasSubstr("a.sql:1:9: got y, expected a text in quotes: \"y\""));
  EXPECT_THAT(ErrorOf("set x = `ls`;"), HasSubstr("scripts run no commands of a shell"));
  EXPECT_THAT(ErrorOf("load csv.`x` where a='1' and a='2' as t;"),
              HasSubstr("a.sql:1:30: the parameter a is given twice"));
  EXPECT_THAT(ErrorOf("save overwrit t as csv.`x`;"), HasSubstr("did you mean 'overwrite'?"));
  EXPECT_THAT(ErrorOf("register FM.`x`;"), HasSubstr("expected as"));
  EXPECT_THAT(ErrorOf("create database x;"),
              HasSubstr("expected table or view, as in create table t as select"));
  EXPECT_THAT(ErrorOf("set x = \x01;"), HasSubstr("a.sql:1:9: this character begins no word"));
}

TEST(Parser, LongLinesAreCutAroundTheirPlace) {
  const std::string line = "set x='" + std::string(5000, 'a') + "' b;";
  const std::string error = ErrorOf(line);
  EXPECT_THAT(error, HasSubstr("a.sql:1:5010: got b"));
  EXPECT_LT(error.size(), 400u);
  const size_t shown = error.find('\n') + 1;
  const size_t marked = error.find('\n', shown) + 1;
  EXPECT_EQ(error[shown + error.find('^', marked) - marked], 'b');
}

TEST(Parser, HasLimits) {
  EXPECT_THAT(ErrorOf("set x='" + std::string(kMaxLiteral + 1, 'a') + "';"),
              HasSubstr("put long content into a file"));
  EXPECT_EQ(ErrorOf("set x='" + std::string(kMaxLiteral, 'a') + "';"), "parsed");
  EXPECT_THAT(ErrorOf("select " + std::string(kMaxQueryDepth + 1, '(') + ";"),
              HasSubstr("parentheses stand within each other"));
  std::string many;
  for (size_t i = 0; i <= kMaxStatements; ++i) many += "drop t;";
  EXPECT_THAT(ErrorOf(many), HasSubstr("this script has more than 100000 statements"));
  std::string options = "load csv.`x` where a='1'";
  for (size_t i = 0; i < kMaxOptions; ++i) options += " and a" + std::to_string(i) + "='1'";
  EXPECT_THAT(ErrorOf(options + " as t"), HasSubstr("more than 1000 parameters"));
}

TEST(Parser, NeverCrashes) {
  const bool good = rc::check("any bytes", [] {
    static constexpr char kCharacters[] =
        "set load select train as where and=.,;!'\"`-/*(){}$\n\\x1\xc3\xa9\0";
    const auto text = *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string(kCharacters, sizeof(kCharacters))));
    const auto checked = CheckScript(ScriptText("a.sql", text));
    RC_ASSERT(checked.ok() || !checked.status().message().empty());
  });
  EXPECT_TRUE(good);
}

}  // namespace
}  // namespace shoal::sql
