#include "controller/files/line_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace shoal::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

LinePattern Compile(std::string_view text, bool ignore_case = false) {
  return std::move(LinePattern::Compile(text, ignore_case)).value();
}

std::vector<std::string> Lines(const LinePattern& pattern, std::string_view text) {
  std::vector<std::string> lines;
  pattern.FindLines(text, [&](size_t offset, std::string_view line) {
    EXPECT_EQ(text.substr(offset, line.size()), line);
    EXPECT_TRUE(offset == 0 || text[offset - 1] == '\n');
    lines.emplace_back(line);
    return true;
  });
  return lines;
}

TEST(LinePattern, FindsLines) {
  const std::string text = "step 1 loss=0.5\nstep 2 loss=nan\n\nError: no memory\nlast";
  EXPECT_THAT(Lines(Compile("loss=nan"), text), ElementsAre("step 2 loss=nan"));
  EXPECT_THAT(Lines(Compile("loss=\\d"), text), ElementsAre("step 1 loss=0.5"));
  EXPECT_THAT(Lines(Compile("nan|Error"), text),
              ElementsAre("step 2 loss=nan", "Error: no memory"));
  EXPECT_THAT(Lines(Compile("^$"), text), ElementsAre(""));
  EXPECT_THAT(Lines(Compile("^step"), text), ElementsAre("step 1 loss=0.5", "step 2 loss=nan"));
  EXPECT_THAT(Lines(Compile("t$"), text), ElementsAre("last"));
  EXPECT_THAT(Lines(Compile("\\Astep \\d"), text),
              ElementsAre("step 1 loss=0.5", "step 2 loss=nan"));
  EXPECT_THAT(Lines(Compile("ERROR", true), text), ElementsAre("Error: no memory"));
  EXPECT_THAT(Lines(Compile("(?i)ERROR"), text), ElementsAre("Error: no memory"));
  EXPECT_THAT(Lines(Compile("absent"), text), IsEmpty());
  EXPECT_THAT(Lines(Compile(""), "a\nb\n"), ElementsAre("a", "b"));
}

TEST(LinePattern, NeverMatchesAcrossLines) {
  EXPECT_THAT(Lines(Compile("a\\s+b"), "a\nb\na b\n"), ElementsAre("a b"));
  EXPECT_THAT(Lines(Compile("a[^x]b"), "a\nb\nayb\n"), ElementsAre("ayb"));
  EXPECT_THAT(Lines(Compile("(?s)a.b"), "a\nb\nayb\n"), ElementsAre("ayb"));
}

TEST(LinePattern, LinesNeedNotBeUtf8) {
  EXPECT_THAT(Lines(Compile("bad: .*end"), "bad: \xff\xfe end\nbad: end\n"),
              ElementsAre("bad: end"));
  EXPECT_THAT(Lines(Compile("bad"), "\xff bad \x80\n"), ElementsAre("\xff bad \x80"));
  EXPECT_THAT(Lines(Compile("é+"), "caf\xc3\xa9\n"), ElementsAre("café"));
  EXPECT_THAT(Lines(Compile("a"), std::string_view("\0a\0\n", 4)),
              ElementsAre(std::string("\0a\0", 3)));
}

TEST(LinePattern, StopsWhenTold) {
  int calls = 0;
  Compile("a").FindLines("a\na\na\n", [&](size_t, std::string_view) { return ++calls < 2; });
  EXPECT_EQ(calls, 2);
}

TEST(LinePattern, BadOnesAreExplained) {
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"(", "missing )"},
           {"[a", "missing ]"},
           {"*", "no argument for repetition"},
           {"a{1000000}", "invalid repetition size"},
           {"\\", "trailing \\"},
           {"(?<=a)b", "invalid perl operator"},
           {"(a)\\1", "invalid escape sequence"},
           {"\xff", "UTF-8"},
           {"a\nb", "line feed"},
           {std::string(5000, 'a'), "5000 bytes"},
           {"((((((a{100}){100}){100}){100}){100}){100})", "is not valid"}}) {
    const auto compiled = LinePattern::Compile(text);
    ASSERT_FALSE(compiled.ok()) << text;
    EXPECT_EQ(compiled.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(compiled.status().message(), HasSubstr(part));
  }
}

// A pattern that takes exponential time where alternatives are tried one after the other.
TEST(LinePattern, TakesLinearTime) {
  const std::string line(100'000, 'a');
  EXPECT_THAT(Lines(Compile("(a*)*(a*)*(a*)*b"), line + "\n"), IsEmpty());
}

TEST(RequiredLiteral, IsInEveryMatch) {
  EXPECT_EQ(RequiredLiteral("loss=nan"), "loss=nan");
  EXPECT_EQ(RequiredLiteral("a.*longer"), "longer");
  EXPECT_EQ(RequiredLiteral("loss=\\d+"), "loss=");
  EXPECT_EQ(RequiredLiteral("a\\[bc"), "a[bc");
  EXPECT_EQ(RequiredLiteral("abc?"), "ab");
  EXPECT_EQ(RequiredLiteral("abé*"), "ab");
  EXPECT_EQ(RequiredLiteral("abc{0,2}"), "ab");
  EXPECT_EQ(RequiredLiteral("ab+c"), "ab");
  EXPECT_EQ(RequiredLiteral("ab|cd"), "");
  EXPECT_EQ(RequiredLiteral("(ab)?"), "");
  EXPECT_EQ(RequiredLiteral("^error$"), "error");
  EXPECT_EQ(RequiredLiteral("[abc]def"), "");
}

// Blocks and single lines give the same for patterns put together by chance.
TEST(LinePattern, BlocksAreSearchedAsLinesAre) {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"a",    "b",   "ab",     ".",     "a*",  "b?",
                                          "^",    "$",   "[ab]",   "(a|b)", "\\s", "c+",
                                          "a{2}", "\\.", "b{0,1}", "é"};
  const std::vector<std::string> pieces = {"a", "b", "c", "aab", "\n", " ", ".", "é", "\xff", "ab"};
  const auto pick = [&](const auto& of) { return of[random() % of.size()]; };
  for (int round = 0; round < 2000; ++round) {
    std::string pattern;
    for (size_t i = 0; i < 1 + random() % 4; ++i) pattern += pick(parts);
    const auto compiled = LinePattern::Compile(pattern);
    if (!compiled.ok()) continue;
    std::string text;
    for (size_t i = 0; i < random() % 30; ++i) text += pick(pieces);
    std::vector<std::string> expected;
    const auto alone = LinePattern::Compile("(?:" + pattern + ")");
    ASSERT_TRUE(alone.ok());
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (alone->Matches(text.substr(at, end - at))) expected.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    EXPECT_EQ(Lines(*compiled, text), expected) << pattern << " in " << text;
  }
}

}  // namespace
}  // namespace shoal::controller
