// Tokens of a script. The lexer holds no copy of the text; tokens with quotes have their text
// without them.
//
// The parser asks for one token after another; a query is scanned as a whole, since its quotes
// follow the rules of SQL and not those of the other statements.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sql/syntax/script_text.h"

namespace shoal::sql {

inline constexpr size_t kMaxLiteral = size_t{1} << 20;
inline constexpr size_t kMaxQueryDepth = 1000;

enum class TokenKind : uint8_t {
  kEnd,         // of the script
  kWord,        // letters, digits, '_', '-' and ${…}: names, keywords, numbers
  kQuotedName,  // `…`
  kString,      // "…", '…', """…""", '''…'''
  kSymbol,      // one of ; = . , !
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  Span span;
};

// The text of a query from its first word up to its semicolon.
struct QueryText {
  // Up to the name of the result, with a byte for each of the script: `names` as "names", comments
  // as blanks.
  std::string sql;
  Span span;
  std::string table;  // after the last "as"; empty if there is none
  Span table_span;
};

// Not thread-safe. Errors are InvalidArgument with the place.
class Lexer {
 public:
  explicit Lexer(const ScriptText& script) : script_(script), text_(script.text()) {}

  Result<Token> Next();
  // Scans a query that begins at `begin`, an offset that a token had, up to the semicolon or the
  // end of the script, which is the next token.
  // `named`: it may end with "as NAME".
  Result<QueryText> ScanQuery(size_t begin, bool named = true);
  // Scans an argument of a command, which ends at a blank or a semicolon: a string, a `name`, or
  // any other characters. kEnd at the end of the script, kSymbol for the semicolon.
  Result<Token> NextArgument();

 private:
  friend class QueryScanner;
  // Skips blanks and comments.
  Status SkipBlanks();
  Status SkipComment();
  // The end of the text, a string or a name in backquotes; else nothing is consumed but blanks.
  Result<std::optional<Token>> ScanSimple();
  Result<Token> ScanString(char quote);
  Result<Token> ScanQuotedName();
  Result<Token> ScanWord();
  Status CheckLength(size_t begin, size_t length, std::string_view what) const;
  bool StartsWith(std::string_view prefix) const { return text_.substr(at_).starts_with(prefix); }

  const ScriptText& script_;
  const std::string_view text_;
  size_t at_ = 0;
};

// Whether `word` is this keyword, in any case.
bool IsKeyword(std::string_view word, std::string_view keyword);

}  // namespace shoal::sql
