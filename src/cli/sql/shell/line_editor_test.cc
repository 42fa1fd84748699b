#include "cli/sql/shell/line_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/sql/shell/shell.h"

namespace shoal::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The bytes of keys.
constexpr const char* kUp = "\x1b[A";
constexpr const char* kDown = "\x1b[B";
constexpr const char* kLeft = "\x1b[D";
constexpr const char* kHome = "\x1b[H";
constexpr const char* kWordLeft = "\x1b[1;5D";

class Editor : public testing::Test {
 protected:
  // What a person gets who presses these keys; the terminal is gone after the last one.
  std::string Type(const std::string& bytes) {
    size_t at = 0;
    written_.clear();
    EditorTerminal terminal{[&bytes, &at](bool) -> std::optional<char> {
                              if (at == bytes.size()) return std::nullopt;
                              return bytes[at++];
                            },
                            [this](std::string_view text) {
                              written_ += text;
                              return Status::Ok();
                            },
                            [] { return size_t{20}; }};
    LineEditor editor(terminal,
                      {"> ", ". ", IsCompleteInput,
                       [this](const std::string& text, size_t cursor) {
                         asked_ = text.substr(0, cursor);
                         return std::pair(asked_.rfind(' ') + 1, candidates_);
                       }},
                      &history_);
    std::string text;
    end_ = editor.Read(&text);
    return text;
  }

  History history_ = *History::Open("");
  std::vector<std::string> candidates_;
  std::string asked_, written_;
  EditEnd end_ = EditEnd::kEntered;
};

TEST_F(Editor, ReadsSeveralLines) {
  EXPECT_EQ(Type("select 1\ras t;\r"), "select 1\nas t;");
  EXPECT_EQ(Type("!show tables\r"), "!show tables");
  EXPECT_EQ(Type("set a=';\r';\r"), "set a=';\n';");
  EXPECT_EQ(Type("set a=\"\"\"\r;\r\"\"\";\r"), "set a=\"\"\"\n;\n\"\"\";");
  EXPECT_EQ(Type("\\timing\r"), "\\timing");
}

TEST_F(Editor, Edits) {
  EXPECT_EQ(Type(std::string("ac;") + kLeft + kLeft + "b\r"), "abc;");
  EXPECT_EQ(Type(std::string("b;") + kHome + "a\r"), "ab;");
  EXPECT_EQ(Type("abx\x7f;\r"), "ab;");
  EXPECT_EQ(Type("drop table\x17t;\r"), "drop t;");
  EXPECT_EQ(Type("a b\x15"
                 "c;\r"),
            "c;");
  EXPECT_EQ(Type(std::string("a; b") + kWordLeft + "\x0b\r"), "a; ");
  EXPECT_EQ(Type("drop é;\x7f\x7f"
                 "e;\r"),
            "drop e;");
  // Up and down go through the lines before they go through the history.
  EXPECT_EQ(Type(std::string("ab\rcd;") + kUp + "X" + kDown + "\r"), "abX\ncd;");
}

TEST_F(Editor, TakesPastedTextAsOneKey) {
  EXPECT_EQ(Type("\x1b[200~drop a;\r\ndrop b\x1b[31m\x1b\x1b[201~;\r"), "drop a;\ndrop b[31m;");
  EXPECT_EQ(Type("\x1b[200~drop"), "");
}

TEST_F(Editor, EndsAndGoesOn) {
  Type("abc\x03");
  EXPECT_EQ(end_, EditEnd::kInterrupted);
  Type("\x04");
  EXPECT_EQ(end_, EditEnd::kEndOfInput);
  Type("abc");
  EXPECT_EQ(end_, EditEnd::kEndOfInput);
  EXPECT_EQ(Type(std::string("abc;") + kHome + "\x04\r"), "bc;");
}

TEST_F(Editor, GoesThroughTheHistory) {
  ASSERT_TRUE(history_.Add("drop a;").ok());
  ASSERT_TRUE(history_.Add("drop\nb;").ok());
  ASSERT_TRUE(history_.Add(" secret;").ok());
  EXPECT_EQ(Type(std::string(kUp) + "\r"), "drop\nb;");
  EXPECT_EQ(Type(std::string(kUp) + kUp + kUp + "\r"), "drop a;");
  EXPECT_EQ(Type(std::string("own;") + kUp + kDown + "\r"), "own;");
  EXPECT_EQ(Type("\x12"
                 "p a\r\r"),
            "drop a;");
  EXPECT_EQ(Type("x;\x12"
                 "drop\x03\r"),
            "x;");
}

TEST_F(Editor, Completes) {
  candidates_ = {"LogisticRegression"};
  EXPECT_EQ(Type("train t as Lo\t;\r"), "train t as LogisticRegression;");
  EXPECT_EQ(asked_, "train t as Lo");
  candidates_ = {"keepVersion", "keep_optimizer"};
  EXPECT_EQ(Type("a k\t;\r"), "a keep;");
  EXPECT_THAT(written_, testing::Not(HasSubstr("keep_optimizer")));
  Type("a k\t\t;\r");
  EXPECT_THAT(written_, HasSubstr("keepVersion\r\nkeep_optimizer"));
  candidates_ = {};
  EXPECT_EQ(Type("a\t;\r"), "a;");
}

TEST(LayOut, CountsRowsAndColumns) {
  EditBuffer buffer;
  buffer.Set("0123456789\nab漢");
  buffer.Apply(KeyKind::kLeft);
  const Layout layout = LayOut(buffer, "> ", ". ", 10);
  EXPECT_EQ(layout.shown, "> 0123456789\r\n. ab漢");
  EXPECT_EQ((std::pair(layout.end.row, layout.end.column)), std::pair(size_t{2}, size_t{6}));
  EXPECT_EQ((std::pair(layout.cursor.row, layout.cursor.column)), std::pair(size_t{2}, size_t{4}));
  buffer.Set("01234567");  // a full row
  const Layout full = LayOut(buffer, "> ", ". ", 10);
  EXPECT_EQ((std::pair(full.cursor.row, full.cursor.column)), std::pair(size_t{1}, size_t{0}));
  EXPECT_THAT(full.shown, testing::EndsWith("\r\n"));
}

TEST(Histories, AreKeptInAFile) {
  TempDir dir = *TempDir::Create("history");
  const auto file = dir.path() / "home" / "sql_history";
  History first = *History::Open(file);
  ASSERT_TRUE(first.Add("select 'a\\n'\nas t;").ok());
  ASSERT_TRUE(first.Add("drop t;").ok());
  ASSERT_TRUE(first.Add("drop t;").ok());
  ASSERT_TRUE(first.Add(" password;").ok());
  EXPECT_THAT(History::Open(file)->entries(), ElementsAre("select 'a\\n'\nas t;", "drop t;"));
  const auto mode = std::filesystem::status(file).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  std::string many;
  for (size_t i = 0; i < 2 * kMaxHistory; ++i) many += "drop t" + std::to_string(i) + ";\n";
  ASSERT_TRUE(WriteFileAtomically(file, many).ok());
  const History last = *History::Open(file);
  ASSERT_EQ(last.entries().size(), kMaxHistory);
  EXPECT_EQ(last.entries().back(), "drop t19999;");
  EXPECT_LT(std::filesystem::file_size(file), many.size());
}

}  // namespace
}  // namespace shoal::cli
