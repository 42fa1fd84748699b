#include <gtest/gtest.h>

#include <random>

#include "data/catalog/access.h"
#include "data/catalog/mask.h"
#include "data/catalog/predicate.h"
#include "data/catalog/table.h"

namespace shoal::data {
namespace {

const std::vector<TypedColumn> kColumns = {
    {"country", ColumnType::kText}, {"age", ColumnType::kInteger},   {"score", ColumnType::kFloat},
    {"paid", ColumnType::kBool},    {"odd name", ColumnType::kText}, {"list", ColumnType::kNested}};

std::vector<Cell> Row(std::string_view country, std::string_view age) {
  return {ParseCell(country, ColumnType::kText),
          ParseCell(age, ColumnType::kInteger),
          Cell::Of(0.5),
          Cell::Of(true),
          Cell::Of(std::string_view("a'b")),
          Cell::Null()};
}

bool Accepts(std::string_view text, const std::vector<Cell>& row) {
  const auto predicate = Predicate::Parse(text, kColumns);
  EXPECT_TRUE(predicate.ok()) << predicate.status().message();
  return predicate.ok() && predicate->Accepts(row);
}

std::string WhyNot(std::string_view text) {
  const auto predicate = Predicate::Parse(text, kColumns);
  return predicate.ok() ? "" : predicate.status().message();
}

TEST(PredicateTest, EvaluatesConditions) {
  const auto row = Row("DE", "18");
  EXPECT_TRUE(Accepts("country = 'DE'", row));
  EXPECT_TRUE(Accepts("country = 'DE' and (age >= 18.0 or age is null)", row));
  EXPECT_FALSE(Accepts("country = 'DE' and age > 18", row));
  EXPECT_TRUE(Accepts("country IN ('FR', 'DE') AND NOT age < 18", row));
  EXPECT_FALSE(Accepts("country not in ('FR', 'DE')", row));
  EXPECT_TRUE(Accepts("\"odd name\" = 'a''b' and paid = true and score <> 1e3", row));
  EXPECT_TRUE(Accepts("list is null and country is not null", row));
  EXPECT_TRUE(Accepts("country = 'FR' or country = 'XX' or age = 18 and paid = true", row));
}

TEST(PredicateTest, UnknownIsNotAccepted) {
  const auto row = Row("", "old");
  EXPECT_FALSE(Accepts("country = 'DE'", row));
  EXPECT_FALSE(Accepts("not country = 'DE'", row));
  EXPECT_FALSE(Accepts("age > 1", row));
  EXPECT_FALSE(Accepts("not age > 1", row));
  EXPECT_TRUE(Accepts("country is null and (age > 1 or paid = true)", row));
}

TEST(PredicateTest, ComparesIntegersExactly) {
  EXPECT_FALSE(Accepts("age = 9007199254740992", Row("", "9007199254740993")));
  EXPECT_TRUE(Accepts("age = 9007199254740993", Row("", "9007199254740993")));
}

TEST(PredicateTest, ErrorsNameTheirPlace) {
  EXPECT_EQ(WhyNot("county = 'DE'").substr(0, 52),
            "column 1: got county, expected a column of the table");
  EXPECT_EQ(WhyNot("country = 'DE' and age = 'x'"),
            "column 26: got x, expected a number: column age has the type integer");
  EXPECT_EQ(WhyNot("country = 5"),
            "column 11: got 5, expected a 'text' in quotes: column country has the type text");
  EXPECT_EQ(WhyNot("country = 'DE"), "column 11: the quote ' is not closed");
  EXPECT_EQ(WhyNot("country = 'DE' country"),
            "column 16: got country, expected `and`, `or` or the end");
  EXPECT_EQ(WhyNot("country = null"), "column 11: got null, expected a literal; write `is null`");
  EXPECT_EQ(WhyNot("(country = 'a'"), "column 15: got the end, expected `)`, `and` or `or`");
  EXPECT_EQ(WhyNot(""), "column 1: got the end, expected a column, `not` or `(`");
  EXPECT_EQ(WhyNot("age = 1; drop"),
            "column 8: got ;, expected a column, a literal or one of = != < <= > >= ( ) ,");
}

std::string RandomCondition(std::mt19937_64& random, int depth) {
  static const char* const kComparisons[] = {"=", "!=", "<", "<=", ">", ">="};
  const auto below = [&](uint64_t n) { return random() % n; };
  if (depth > 0 && below(3) > 0) {
    const std::string left = RandomCondition(random, depth - 1);
    if (below(3) == 0) return "not (" + left + ")";
    return "(" + left + ") " + (below(2) == 0 ? "and" : "or") + " (" +
           RandomCondition(random, depth - 1) + ")";
  }
  const auto number = [&] { return std::to_string(static_cast<int>(below(9)) - 2); };
  const auto text = [&] { return std::string("'") + static_cast<char>('a' + below(5)) + "'"; };
  switch (below(5)) {
    case 0:
      return "n in (" + number() + ", " + number() + ")";
    case 1:
      return below(2) == 0 ? "n is null" : "t is not null";
    case 2:
      return std::string("t ") + kComparisons[below(6)] + " " + text();
    case 3:
      return std::string("r ") + kComparisons[below(6)] + " " + number();
    default:
      return std::string("n ") + kComparisons[below(6)] + " " + number();
  }
}

// What bounds of columns exclude is never a row that is accepted, and often something is excluded.
TEST(PredicateTest, BoundsExcludeNoRowThatIsAccepted) {
  const std::vector<TypedColumn> columns = {
      {"n", ColumnType::kInteger}, {"t", ColumnType::kText}, {"r", ColumnType::kFloat}};
  std::mt19937_64 random(3);
  const std::string letters = "abcdef";
  int excluded = 0;
  for (int round = 0; round < 20'000; ++round) {
    const auto predicate = Predicate::Parse(RandomCondition(random, 3), columns);
    ASSERT_TRUE(predicate.ok());
    std::vector<CellRange> ranges(3);
    bool accepted = false;
    const auto low = static_cast<int64_t>(random() % 4);
    const size_t letter = random() % 3;
    ranges[0] = {true, Cell::Of(low), Cell::Of(low + 2), random() % 2 == 0};
    ranges[1] = {random() % 2 == 0, Cell::Of(std::string_view(letters).substr(letter, 1)),
                 Cell::Of(std::string_view(letters).substr(letter + 2, 1)), random() % 2 == 0};
    ranges[2] = {true, Cell::Of(0.0), Cell::Of(1.0), false};
    for (int i = 0; i < 20; ++i) {
      const auto null = [&](size_t column) {
        return ranges[column].may_be_null && random() % 4 == 0;
      };
      const Cell row[] = {
          null(0) ? Cell::Null() : Cell::Of(low + static_cast<int64_t>(random() % 3)),
          null(1) ? Cell::Null()
                  : Cell::Of(std::string_view(letters).substr(letter + random() % 3, 1)),
          random() % 4 == 0 ? Cell::Of(std::numeric_limits<double>::quiet_NaN())
                            : Cell::Of(static_cast<double>(random() % 3) / 2)};
      accepted = accepted || predicate->Accepts(row);
    }
    if (accepted) {
      ASSERT_TRUE(predicate->MayAccept(ranges));
    }
    excluded += predicate->MayAccept(ranges) ? 0 : 1;
  }
  EXPECT_GT(excluded, 1000);
}

TEST(PredicateTest, IsBounded) {
  EXPECT_NE(WhyNot(std::string(5000, ' ')), "");
  EXPECT_NE(WhyNot(std::string(1000, '(') + "age = 1"), "");
  std::string nots;
  for (int i = 0; i < 500; ++i) nots += "not ";
  EXPECT_NE(WhyNot(nots + "age = 1"), "");
  std::string wide = "age in (1";
  for (int i = 0; i < 1200; ++i) wide += ",1";
  EXPECT_NE(WhyNot(wide + ")"), "");
}

TEST(MaskTest, Masks) {
  EXPECT_EQ(MaskText({MaskKind::kTruncate, 3}, "", "héllo"), "hél");
  EXPECT_EQ(MaskText({MaskKind::kRedact, 0}, "", "Ada-42 é"), "xxx-nn x");
  EXPECT_EQ(MaskText({MaskKind::kNull, 0}, "", "Ada"), "");
  const std::string hash = MaskText({MaskKind::kHash, 0}, "key", "Ada");
  EXPECT_EQ(hash.size(), 32);
  EXPECT_NE(hash, MaskText({MaskKind::kHash, 0}, "other", "Ada"));
  EXPECT_EQ(TextOf(*ParseMask("truncate:12")), "truncate:12");
  EXPECT_FALSE(ParseMask("truncate:-1").ok());
  EXPECT_FALSE(ParseMask("sha").ok());
}

// ---- Access ---------------------------------------------------------------------------------

Table Clicks() {
  Table table;
  table.database = "ads";
  table.name = "clicks";
  table.owner = "kim";
  table.sources = {"/data/clicks.csv"};
  table.format = RecordFormat::kCsv;
  table.columns = {
      {"a", ColumnType::kInteger}, {"b", ColumnType::kInteger}, {"c", ColumnType::kText}};
  return table;
}

WallTime At(int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

TEST(AccessTest, RefusalNamesColumnAndGrant) {
  Table table = Clicks();
  table.grants.push_back({.id = "1", .principal = "team:red", .columns = {"a"}});
  const Asker ada{"ada", {"red"}};
  const std::vector<std::string> wanted = {"a", "c"};
  const auto refused = EffectiveAccess(table, {}, ada, wanted, At(1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kPermissionDenied);
  EXPECT_EQ(
      refused.status().message(),
      "column c of ads.clicks for ada (teams: red): there is no grant; its owner kim gives it: "
      "`shoal catalog grant ads.clicks --to user:ada --columns c`");
  const auto given = EffectiveAccess(table, {}, ada, {}, At(1));
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->columns, std::vector<size_t>{0});
  EXPECT_TRUE(given->restricted);
}

TEST(AccessTest, OwnerIsNotRestricted) {
  Table table = Clicks();
  table.tags["c"] = {"pii"};
  const std::vector<TagPolicy> policies = {{.tag = "pii"}};
  const auto access = EffectiveAccess(table, policies, {"kim", {}}, {}, At(1));
  ASSERT_TRUE(access.ok());
  EXPECT_FALSE(access->restricted);
}

TEST(AccessTest, TagsDenyOrMask) {
  Table table = Clicks();
  table.tags["c"] = {"pii"};
  table.grants.push_back({.id = "1", .principal = "everyone"});
  std::vector<TagPolicy> policies = {{.tag = "pii", .mask = {}, .except = {"team:legal"}}};
  const std::vector<std::string> wanted = {"c"};
  EXPECT_FALSE(EffectiveAccess(table, policies, {"ada", {}}, wanted, At(1)).ok());
  EXPECT_TRUE(EffectiveAccess(table, policies, {"ada", {"legal"}}, wanted, At(1)).ok());
  policies[0].mask = Mask{MaskKind::kHash, 0};
  const auto masked = EffectiveAccess(table, policies, {"ada", {}}, wanted, At(1));
  ASSERT_TRUE(masked.ok());
  EXPECT_EQ(masked->masks, std::vector<Mask>{(Mask{MaskKind::kHash, 0})});
}

// The definition at the head of access.h, value by value, for random tables and all rows.
struct Case {
  Table table;
  std::vector<TagPolicy> policies;
  Asker asker;
  std::vector<std::string> wanted;
  WallTime now;
};

Case RandomCase(std::mt19937_64& random) {
  const auto pick = [&](uint64_t count) { return random() % count; };
  const std::string principals[] = {"user:ada", "team:red", "everyone", "user:bob", "team:blue"};
  const std::string rows[] = {"", "", "a = 1", "b = 1", "a = 1 or b = 0", "not a = 0", "a is null"};
  const Mask masks[] = {{}, {MaskKind::kTruncate, 1}, {MaskKind::kHash, 0}, {MaskKind::kNull, 0}};
  Case one;
  one.table = Clicks();
  one.asker = {"ada", {"red"}};
  one.now = At(100);
  for (uint64_t i = pick(4); i > 0; --i) {
    Grant grant;
    grant.id = std::to_string(i);
    grant.principal = principals[pick(5)];
    for (const TypedColumn& column : one.table.columns)
      if (pick(2) == 0) grant.columns.push_back(column.name);
    grant.rows = rows[pick(7)];
    for (const std::string& column : grant.columns)
      if (pick(3) == 0) grant.masks[column] = masks[pick(4)];
    if (pick(4) == 0) grant.expires = At(pick(2) == 0 ? 100 : 101);
    one.table.grants.push_back(grant);
  }
  if (pick(2) == 0) one.table.tags["c"] = {"pii"};
  if (pick(2) == 0) one.table.masks["b"] = {masks[1 + pick(3)], {principals[pick(5)]}};
  if (pick(2) == 0) {
    TagPolicy policy{.tag = "pii", .mask = {}, .except = {}};
    if (pick(2) == 0) policy.mask = masks[1 + pick(3)];
    if (pick(2) == 0) policy.except = {principals[pick(5)]};
    one.policies.push_back(policy);
  }
  for (const TypedColumn& column : one.table.columns)
    if (pick(2) == 0) one.wanted.push_back(column.name);
  return one;
}

bool MeansAda(const std::string& principal) {
  return principal == "user:ada" || principal == "team:red" || principal == "everyone";
}
bool ExceptsAda(const std::set<std::string>& except) {
  return std::any_of(except.begin(), except.end(), MeansAda);
}

struct Verdict {
  bool readable = false;
  bool clear = false;  // some grant gives it unmasked
};

Verdict ValueVerdict(const Case& one, const std::string& column, const std::vector<Cell>& row) {
  Verdict verdict;
  for (const TagPolicy& policy : one.policies)
    if (!policy.mask && one.table.tags.contains(column) && !ExceptsAda(policy.except))
      return verdict;
  for (const Grant& grant : one.table.grants) {
    if (!MeansAda(grant.principal) || (grant.expires && *grant.expires <= one.now)) continue;
    const bool named =
        grant.columns.empty() || std::ranges::find(grant.columns, column) != grant.columns.end();
    if (!named) continue;
    if (!grant.rows.empty() && !Predicate::Parse(grant.rows, one.table.columns)->Accepts(row))
      continue;
    verdict.readable = true;
    const auto mask = grant.masks.find(column);
    if (mask == grant.masks.end() || mask->second == Mask()) verdict.clear = true;
  }
  for (const TagPolicy& policy : one.policies)
    if (policy.mask && one.table.tags.contains(column) && !ExceptsAda(policy.except))
      verdict.clear = false;
  const auto rule = one.table.masks.find(column);
  if (rule != one.table.masks.end() && !ExceptsAda(rule->second.except)) verdict.clear = false;
  return verdict;
}

std::vector<std::vector<Cell>> AllRows() {
  std::vector<std::vector<Cell>> rows;
  for (const std::string_view a : {"0", "1", "", "x"})
    for (const std::string_view b : {"0", "1", "", "x"})
      rows.push_back({ParseCell(a, ColumnType::kInteger), ParseCell(b, ColumnType::kInteger),
                      Cell::Of(std::string_view("t"))});
  return rows;
}

TEST(AccessTest, AgreesWithTheDefinitionValueByValue) {
  std::mt19937_64 random(17);
  int given = 0;
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Case one = RandomCase(random);
    const auto access = EffectiveAccess(one.table, one.policies, one.asker, one.wanted, one.now);
    if (!access.ok()) {
      ++refused;
      ASSERT_EQ(access.status().code(), Code::kPermissionDenied);
      // Some wanted column is readable in no row by no grant at all; without wanted ones, all are.
      bool some_missing = false;
      bool all_missing = true;
      for (const TypedColumn& column : one.table.columns) {
        Case everywhere = one;
        for (Grant& grant : everywhere.table.grants) grant.rows.clear();
        const bool readable = ValueVerdict(everywhere, column.name, AllRows()[0]).readable;
        const bool wanted = std::ranges::find(one.wanted, column.name) != one.wanted.end();
        some_missing = some_missing || (wanted && !readable);
        all_missing = all_missing && !readable;
      }
      ASSERT_TRUE(one.wanted.empty() ? all_missing : some_missing);
      continue;
    }
    ++given;
    Predicate rows;
    if (!access->rows.empty()) {
      const auto parsed = Predicate::Parse(access->rows, one.table.columns, kJoinedLimits);
      ASSERT_TRUE(parsed.ok()) << parsed.status().message();
      rows = *parsed;
    }
    for (const auto& row : AllRows()) {
      bool all_readable = true;
      for (size_t c = 0; c < access->columns.size(); ++c) {
        const std::string& column = one.table.columns[access->columns[c]].name;
        const Verdict verdict = ValueVerdict(one, column, row);
        all_readable = all_readable && verdict.readable;
        const bool shown = rows.Accepts(row) && access->masks[c] == Mask();
        ASSERT_TRUE(!shown || verdict.clear) << column;
      }
      ASSERT_EQ(rows.Accepts(row), all_readable);
    }
  }
  EXPECT_GT(given, 2000);
  EXPECT_GT(refused, 2000);
}

TEST(TableTest, RoundTripsAndIsChecked) {
  Table table = Clicks();
  table.credentials = "s3";
  table.tags["c"] = {"pii", "mail"};
  table.masks["b"] = {{MaskKind::kTruncate, 2}, {"team:legal"}};
  table.grants.push_back({.id = "7",
                          .principal = "user:ada",
                          .columns = {"a", "c"},
                          .rows = "a > 1",
                          .masks = {{"c", {MaskKind::kHash, 0}}},
                          .expires = At(5),
                          .by = "kim",
                          .made = At(1)});
  ASSERT_TRUE(CheckTable(table).ok()) << CheckTable(table).message();
  const auto again = TableFromJson(ToJson(table));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, table);

  Table bad = table;
  bad.grants[0].rows = "d = 1";
  EXPECT_EQ(CheckTable(bad).message().substr(0, 24), "rows: column 1: got d, e");
  bad = table;
  bad.grants[0].masks["b"] = {MaskKind::kNull, 0};
  EXPECT_FALSE(CheckTable(bad).ok());
  bad = table;
  bad.sources = {"relative.csv"};
  EXPECT_FALSE(CheckTable(bad).ok());
  bad = table;
  bad.grants[0].principal = "ada";
  EXPECT_FALSE(CheckTable(bad).ok());
  bad = table;
  bad.columns.push_back({"a", ColumnType::kText});
  EXPECT_FALSE(CheckTable(bad).ok());
}

}  // namespace
}  // namespace shoal::data
