// Runs the files tests/lang/*.test against a session whose jobs are recorded and not run.
//
// A file is a sequence of blocks, separated by empty lines; lines that begin with '#' are comments.
//   requires duckdb    the rest of the file is skipped where DuckDB's library is not
//   file NAME          content of a file in ${dir}, up to the empty line
//   statement ok       statements that succeed
//   statement error    statements, "----", and what the error's message begins with
//   query              statements, "----", and what they show: a line of names, lines of values,
//                      separated by '|', and the notes as "note: …"
//   job                "----" is followed by lines that the last job's JSON contains
// `${dir}` in statements is a variable with a directory of the file's own; in expectations it is
// replaced, but not in the lines of the script that messages show. The script's name is "test".
//
// With SHOAL_REGENERATE=1 the test writes what it got for queries and errors into the files, where
// it differs from what was expected, for a person to judge. Queries of SQL run in this program
// (RunQueryProcess).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/file.h"
#include "job/spec/json.h"
#include "sql/query/duckdb_library.h"
#include "sql/query/query_process.h"
#include "sql/session/session.h"
#include "sql/tables/row_writer.h"
#include "sql/testing/fake_host.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string kind;
  size_t line = 0;  // of the kind
  std::string body;
  std::string expected;
  size_t expected_line = 0;  // of the first expected line; 0: there is none
};

std::vector<Block> ReadBlocks(const fs::path& path) {
  std::ifstream file(path);
  std::vector<Block> blocks;
  std::string line;
  bool open = false, after = false;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (line.starts_with('#') && !open) continue;
    if (line.empty()) {
      open = after = false;
      continue;
    }
    if (!open) {
      blocks.push_back({line, number, "", ""});
      open = true;
      continue;
    }
    if (line == "----" && !after) {
      after = true;
      continue;
    }
    if (after && blocks.back().expected_line == 0) blocks.back().expected_line = number;
    (after ? blocks.back().expected : blocks.back().body) += line + "\n";
  }
  return blocks;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// An expected message: without the line end at its end, and with the directory in its first line.
std::string ExpectedError(const std::string& text, const std::string& directory) {
  const size_t first = std::min(text.find('\n'), text.size());
  std::string error = Replaced(text.substr(0, first), "${dir}", directory) + text.substr(first);
  if (error.ends_with('\n')) error.pop_back();
  return error;
}

std::string TextOf(const FakeHost& host) {
  std::string text;
  for (const Grid& grid : host.shown) {
    for (size_t i = 0; i < grid.columns.size(); ++i) text += (i > 0 ? "|" : "") + grid.columns[i];
    text += "\n";
    for (const auto& row : grid.rows) {
      for (size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "|" : "") + ValueText(row[i]);
      text += "\n";
    }
    if (grid.more) text += "…\n";
  }
  for (const std::string& note : host.notes) text += "note: " + note + "\n";
  return text;
}

bool Regenerates() { return std::getenv("SHOAL_REGENERATE") != nullptr; }

// Replaces the expectations of a file's blocks by what they gave; `got` is by the block's line.
void Regenerate(const fs::path& path, const std::vector<Block>& blocks,
                const std::map<size_t, std::string>& got) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  file.close();
  std::string text;
  size_t next = 0;
  for (const Block& block : blocks) {
    const auto found = got.find(block.line);
    if (found == got.end() || block.expected_line == 0) continue;
    for (; next + 1 < block.expected_line; ++next) text += lines[next] + "\n";
    text += found->second;
    next += static_cast<size_t>(std::count(block.expected.begin(), block.expected.end(), '\n'));
  }
  for (; next < lines.size(); ++next) text += lines[next] + "\n";
  std::ofstream(path) << text;
}

class Language : public testing::TestWithParam<std::string> {
 protected:
  void RunBlock(const Block& block) {
    SCOPED_TRACE("line " + std::to_string(block.line));
    const std::string expected = Replaced(block.expected, "${dir}", dir_.path().string());
    if (block.kind == "requires duckdb") {
      if (!DuckDb::Open(FindDuckDbLibrary("")).ok())
        GTEST_SKIP() << "no libduckdb.so; script/bootstrap sql fetches it";
      return;
    }
    if (block.kind.starts_with("file ")) {
      std::ofstream(dir_.path() / block.kind.substr(5)) << block.body;
      return;
    }
    host_.shown.clear();
    host_.notes.clear();
    const Status status = session_.Run(std::make_shared<const ScriptText>("test", block.body));
    if (block.kind == "statement error") {
      ASSERT_FALSE(status.ok()) << block.body;
      const std::string error = ExpectedError(block.expected, dir_.path().string());
      if (Regenerates() && !status.message().starts_with(error)) {
        const std::string first = status.message().substr(0, status.message().find('\n'));
        got_[block.line] = Replaced(first, dir_.path().string(), "${dir}") + "\n";
        return;
      }
      EXPECT_THAT(status.message(), testing::StartsWith(error)) << block.body;
      return;
    }
    ASSERT_TRUE(status.ok()) << status.message();
    if (block.kind == "query") {
      got_[block.line] = Replaced(TextOf(host_), dir_.path().string(), "${dir}");
      if (Regenerates()) return;
      EXPECT_EQ(TextOf(host_), expected) << block.body;
    } else if (block.kind == "job") {
      ASSERT_FALSE(host_.jobs.empty());
      const std::string text = job::ToJsonText(host_.jobs.back());
      std::istringstream lines(expected);
      for (std::string line; std::getline(lines, line);)
        EXPECT_THAT(text, testing::HasSubstr(line));
    } else {
      ASSERT_EQ(block.kind, "statement ok");
    }
  }

  std::map<size_t, std::string> got_;  // expectations as they would be right, by lines of blocks
  TempDir dir_ = *TempDir::Create("shoal-lang");
  FakeHost host_;
  Session session_{&host_};
};

TEST_P(Language, BehavesAsItsFileSays) {
  session_.SetVariable("dir", dir_.path().string());
  const fs::path path = fs::path(SHOAL_LANGUAGE_TESTS) / GetParam();
  const auto blocks = ReadBlocks(path);
  ASSERT_FALSE(blocks.empty());
  host_.program = "/proc/self/exe";
  for (const Block& block : blocks) {
    RunBlock(block);
    if (IsSkipped()) return;
  }
  if (Regenerates()) Regenerate(path, blocks, got_);
}

std::vector<std::string> Files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(SHOAL_LANGUAGE_TESTS)) {
    if (entry.path().extension() == ".test") files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, Language, testing::ValuesIn(Files()),
                         [](const auto& file) { return fs::path(file.param).stem().string(); });

}  // namespace
}  // namespace shoal::sql

// The process of a query is this program too.
int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "sql-query") return shoal::sql::RunQueryProcess();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
