// The command line: names, help, completion, suggestions for misspellings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <set>

#include "cli/jobs/job_text.h"
#include "cli/main.h"
#include "cli/terminal/line_splitter.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

int RunWith(std::vector<const char*> words) {
  words.insert(words.begin(), "shoal");
  return Main(static_cast<int>(words.size()), words.data());
}

// Exit code and standard error of a command line that must not start anything.
std::pair<int, std::string> Refused(const std::vector<const char*>& words) {
  testing::internal::CaptureStderr();
  const int code = RunWith(words);
  return {code, testing::internal::GetCapturedStderr()};
}

std::string Printed(const std::vector<const char*>& words) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunWith(words), 0);
  return testing::internal::GetCapturedStdout();
}

TEST(CommandLineTest, EveryCommandHasHelpWithExamples) {
  cli::Run unused;
  const std::shared_ptr<CLI::App> app = MakeApp(false, &unused);
  for (const CLI::App* sub : app->get_subcommands({})) {
    const std::string help = Printed({sub->get_name().c_str(), "--help"});
    EXPECT_THAT(help, HasSubstr("Usage"));
    if (sub->get_name() != "version") {
      EXPECT_THAT(help, HasSubstr("Examples:")) << sub->get_name();
    }
    // Those of `shoal --help` are not handed down.
    EXPECT_THAT(help, Not(HasSubstr("shoal logs -f JOB"))) << sub->get_name();
  }
  EXPECT_THAT(Printed({"train", "word2vec", "--help"}), HasSubstr("--min-count"));
}

TEST(CommandLineTest, MisspeltCommandIsAnsweredWithTheNearest) {
  const auto [code, text] = Refused({"trian"});
  EXPECT_EQ(code, 2);
  EXPECT_EQ(text, "shoal: there is no command \"trian\"; did you mean `shoal train`?\n");
  EXPECT_THAT(Refused({"xyzzy"}).second, HasSubstr("`shoal --help` lists them"));
}

TEST(CommandLineTest, MisspeltAlgorithmIsAnsweredWithTheNearest) {
  EXPECT_EQ(
      Refused({"train", "word3vec"}).second,
      "shoal: there is no command \"train word3vec\"; did you mean `shoal train word2vec`?\n");
  EXPECT_THAT(Refused({"train"}).second,
              HasSubstr("expected one of word2vec, linear, logistic, fm, ffm"));
}

TEST(CommandLineTest, FlagsThatContradictEachOtherNameNoLine) {
  const auto [code, text] = Refused({"train", "word2vec", "--data", "/dev/null", "--output", "/x",
                                     "--workers", "2", "--servers", "0"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, testing::StartsWith("shoal: roles.worker: got 2 workers without a server"));
}

TEST(CommandLineTest, MisspeltOptionIsAnsweredWithTheNearest) {
  const auto [code, text] =
      Refused({"train", "word2vec", "--data", "x", "--output", "y", "--worker", "2"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, HasSubstr("\"--worker\" is not expected; did you mean --workers?"));
}

TEST(CommandLineTest, MissingArgumentIsNamed) {
  const auto [code, text] = Refused({"run"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, HasSubstr("FILE"));
  EXPECT_THAT(text, HasSubstr("shoal run --help"));
}

TEST(CommandLineTest, MissingJobFileIsWrongUsage) {
  const auto [code, text] = Refused({"run", "/nowhere/job.yaml"});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(text, HasSubstr("/nowhere/job.yaml"));
}

TEST(CommandLineTest, CompletionKnowsEveryCommandAndFlag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = Printed({"completion", shell});
    for (const char* word : {"word2vec", "follow", "min-count", "jobs --ids"})
      EXPECT_THAT(script, HasSubstr(word)) << shell;
    EXPECT_THAT(script, testing::Not(HasSubstr("coordinator"))) << shell;
  }
}

TEST(NearestNameTest, FarOnesAreNotMeant) {
  EXPECT_EQ(NearestName("worker", {"workers", "servers"}), "workers");
  EXPECT_EQ(NearestName("lgos", {"logs", "jobs"}), "logs");
  EXPECT_EQ(NearestName("zzzzzz", {"logs", "jobs"}), "");
}

TEST(TableTest, ColumnsLineUp) {
  EXPECT_EQ(Table({{"A", "B"}, {"long", "x"}, {"ä", ""}}), "A     B\nlong  x\nä\n");
}

TEST(LineSplitterTest, LinesAreWholeAndTheRestComesAtTheEnd) {
  std::vector<std::string> lines;
  LineSplitter splitter([&](const rendezvous::LogKey& key, const std::string& line) {
    lines.push_back(std::to_string(key.index) + ":" + line);
  });
  splitter.Add({"w", 0, 0}, "on");
  splitter.Add({"w", 1, 0}, "x\n\n");
  splitter.Add({"w", 0, 0}, "e\ntwo");
  EXPECT_THAT(lines, testing::ElementsAre("1:x", "1:", "0:one"));
  splitter.Finish();
  EXPECT_EQ(lines.back(), "0:two");
}

}  // namespace
}  // namespace shoal::cli
