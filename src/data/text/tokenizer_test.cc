#include "data/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <sys/resource.h>

#include <random>

#include "data/text/test_text.h"
#include "data/text/whitespace.h"

namespace shoal::data {
namespace {

using ::testing::HasSubstr;

Words Tokens(const std::string& text) {
  TextFiles files({text});
  return WordsOf(files.Open().value(), 0, 1).value();
}

TEST(Tokenizer, SplitsAtSpaceTabAndCarriageReturnAndEndsSentencesAtNewline) {
  EXPECT_EQ(Tokens("the quick\tfox\r\njumps"), (Words{"the", "quick", "fox", "", "jumps", ""}));
  EXPECT_EQ(Tokens("\n\n a \n\n\r\n b"), (Words{"a", "", "b", ""}));
  EXPECT_EQ(Tokens("\n \t\r\n"), Words{});
  EXPECT_EQ(Tokens("\xef\xbb\xbfhello"), (Words{"hello", ""}));
  EXPECT_EQ(Tokens("a\vb\fc \xc2\xa0x"), (Words{"a\vb\fc", "\xc2\xa0x", ""}));
}

TEST(Tokenizer, CutsLongWordsAsWord2vecDoesButNotInsideACharacter) {
  EXPECT_EQ(Tokens(std::string(98, 'a')), (Words{std::string(98, 'a'), ""}));
  EXPECT_EQ(Tokens(std::string(99, 'a') + " b"), (Words{std::string(98, 'a'), "b", ""}));
  EXPECT_EQ(Tokens(std::string(97, 'a') + "\xe2\x82\xac" + "zz"),
            (Words{std::string(97, 'a'), ""}));
  EXPECT_EQ(Tokens(std::string(200, '\x80')), (Words{std::string(98, '\x80'), ""}));
}

TEST(Tokenizer, FilesNeverJoinWords) {
  TextFiles files({"one tw", "o three"});
  EXPECT_EQ(WordsOf(files.Open().value(), 0, 1).value(),
            (Words{"one", "tw", "", "o", "three", ""}));
}

TEST(Tokenizer, SaysWhereATokenStands) {
  std::string text(300'000, ' ');
  text += "needle and";
  TextFiles files({"first file", text});
  const Corpus corpus = files.Open().value();
  Tokenizer tokenizer(corpus, corpus.MakeShard(0, 1).value());
  std::vector<Token> tokens(2);
  std::string place;
  for (;;) {
    const size_t got = tokenizer.Next(tokens).value();
    if (got == 0) break;
    for (size_t i = 0; i < got; ++i) {
      if (tokens[i].view() == "needle") place = tokenizer.PlaceOf(tokens[i]);
    }
  }
  EXPECT_EQ(place, files.paths()[1] + ", byte 300000");
}

TEST(Tokenizer, ReportsANulInTheMiddle) {
  std::string text(400'000, 'x');
  for (size_t i = 0; i < text.size(); i += 7) text[i] = ' ';
  text[333'333] = '\0';
  TextFiles files({text});
  const auto words = WordsOf(files.Open().value(), 0, 1);
  EXPECT_EQ(words.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(words.status().message(), HasSubstr("byte 333333 is NUL"));
}

// Memory must not grow with the text: 100 MB of one word, written as one gzip of 100 kB.
TEST(Tokenizer, AWordOf100MegabytesNeedsNoMemory) {
  TextFiles files;
  {
    std::string text(100'000'000, 'y');
    text += "\nend";
    files.Add(Gzip(text));
  }
  const Corpus corpus = files.Open().value();
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(WordsOf(corpus, 0, 1).value(), (Words{std::string(98, 'y'), "", "end", ""}));
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LE(after.ru_maxrss - before.ru_maxrss, 4096);  // KiB
}

// Masks of every byte at every place, as a plain loop has them.
void ExpectMasksOfAPlainLoop(std::mt19937_64& random) {
  std::vector<char> text(64 * 9 + 64);
  for (int round = 0; round < 200; ++round) {
    for (char& c : text)
      c = static_cast<char>(round % 2 == 0 ? random() : " \t\r\nab"[random() % 6]);
    const size_t shift = random() % 64;
    uint64_t spaces[9], newlines[9];
    ScanWhitespace(text.data() + shift, 9, spaces, newlines);
    for (size_t i = 0; i < 64 * 9; ++i) {
      const char c = text[shift + i];
      ASSERT_EQ(spaces[i / 64] >> i % 64 & 1, c == ' ' || c == '\t' || c == '\r' || c == '\n');
      ASSERT_EQ(newlines[i / 64] >> i % 64 & 1, c == '\n');
    }
  }
}

TEST(Whitespace, MasksAreThoseOfAPlainLoopOnEveryInstructionSet) {
  std::mt19937_64 random(1);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ExpectMasksOfAPlainLoop(random);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(Utf8, AcceptsWhatTheStandardAcceptsAndNothingElse) {
  for (const char* good :
       {"", "plain", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "na\xc3\xafve"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82", "caf\xe9"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

}  // namespace
}  // namespace shoal::data
