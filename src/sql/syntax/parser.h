// Statements of a script, by recursive descent. The grammar is in docs/sql.md.
//
// The session asks for one statement after another, so that a script runs up to its first error,
// and calls CheckScript before, so that a script with an error does not run at all.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sql/syntax/ast.h"
#include "sql/syntax/lexer.h"

namespace shoal::sql {

inline constexpr size_t kMaxStatements = 100'000;
inline constexpr size_t kMaxOptions = 1000;
inline constexpr size_t kMaxArguments = 100;

// Not thread-safe. Memory: one statement. Errors are InvalidArgument with the place.
class Parser {
 public:
  // `script` must outlive the parser.
  explicit Parser(const ScriptText& script) : script_(script), lexer_(script) {}

  // The next statement; nothing at the end of the script.
  Result<std::optional<Statement>> Next();

 private:
  Result<StatementBody> ParseBody();
  Result<StatementBody> ParseSet();
  Result<StatementBody> ParseLoad();
  Result<StatementBody> ParseSelect(size_t begin);
  Result<StatementBody> ParseTrain();
  Result<StatementBody> ParsePredict();
  Result<StatementBody> ParseRegister();
  Result<StatementBody> ParseConnect();
  Result<StatementBody> ParseCreate();
  Result<StatementBody> ParseSave();
  Result<StatementBody> ParseInclude();
  Result<StatementBody> ParseDrop();
  Result<StatementBody> ParseCommand();

  // FORMAT.`path`
  Result<Target> ParseTarget(std::string_view what, bool may_be_empty = false);
  // [where key="value" and …]
  Result<std::vector<Option>> ParseOptions();
  Result<Option> ParseOption();
  Result<Word> ParseKey();
  Result<Word> ParseValue();
  // A word or a `name`.
  Result<Word> ParseName(std::string_view what);
  // [as NAME]
  Result<std::optional<Word>> ParseAs();

  Status Advance();
  bool AtSymbol(char symbol) const {
    return token_.kind == TokenKind::kSymbol && token_.text.front() == symbol;
  }
  bool AtKeyword(std::string_view keyword) const {
    return token_.kind == TokenKind::kWord && IsKeyword(token_.text, keyword);
  }
  Status ExpectKeyword(std::string_view keyword);
  // "got X, expected Y", with the keyword among `keywords` that X resembles.
  Status Unexpected(std::string_view expected, const std::vector<std::string>& keywords = {}) const;

  const ScriptText& script_;
  Lexer lexer_;
  Token token_;
  size_t last_end_ = 0;  // of the token before
  size_t statements_ = 0;
  bool begun_ = false;
};

// Parses the whole script and keeps nothing. Returns the number of its statements.
Result<size_t> CheckScript(const ScriptText& script);

// The words that statements begin with.
const std::vector<std::string>& StatementKeywords();

}  // namespace shoal::sql
