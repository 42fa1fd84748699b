#include "sql/syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace shoal::sql {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
bool IsWordByte(char c) {
  return IsDigit(c) || (Lower(c) >= 'a' && Lower(c) <= 'z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// What stands for `\c` in a string; 0: the two characters themselves.
char Unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case '\\':
    case '"':
    case '\'':
    case '`':
      return c;
    default:
      return 0;
  }
}

}  // namespace

bool IsKeyword(std::string_view word, std::string_view keyword) {
  return word.size() == keyword.size() && std::equal(word.begin(), word.end(), keyword.begin(),
                                                     [](char a, char b) { return Lower(a) == b; });
}

Status Lexer::CheckLength(size_t begin, size_t length, std::string_view what) const {
  if (length <= kMaxLiteral) return Status::Ok();
  return script_.Error({begin, begin + 1}, "this " + std::string(what) + " has more than " +
                                               std::to_string(kMaxLiteral) +
                                               " bytes; put long content into a file");
}

Status Lexer::SkipComment() {
  if (StartsWith("--")) {
    at_ = std::min(text_.find('\n', at_), text_.size());
    return Status::Ok();
  }
  const size_t end = text_.find("*/", at_ + 2);
  if (end == text_.npos)
    return script_.Error({at_, at_ + 2}, "this comment is not closed; end it with */");
  at_ = end + 2;
  return Status::Ok();
}

Status Lexer::SkipBlanks() {
  while (at_ < text_.size()) {
    if (IsSpace(text_[at_])) {
      ++at_;
    } else if (StartsWith("--") || StartsWith("/*")) {
      TRY(SkipComment());
    } else {
      break;
    }
  }
  return Status::Ok();
}

Result<Token> Lexer::ScanString(char quote) {
  const size_t begin = at_;
  const std::string triple(3, quote);
  if (StartsWith(triple)) {
    const size_t end = text_.find(triple, at_ + 3);
    if (end == text_.npos)
      return script_.Error({begin, begin + 3}, "this text is not closed; end it with " + triple);
    TRY(CheckLength(begin, end - begin, "text"));
    at_ = end + 3;
    return Token{
        TokenKind::kString, std::string(text_.substr(begin + 3, end - begin - 3)), {begin, at_}};
  }
  std::string value;
  for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
    const char escaped =
        text_[at_] == '\\' && at_ + 1 < text_.size() ? Unescaped(text_[at_ + 1]) : 0;
    if (escaped != 0) ++at_;
    value += escaped != 0 ? escaped : text_[at_];
  }
  if (at_ >= text_.size()) {
    return script_.Error(
        {begin, begin + 1},
        fmt::format(
            "this text is not closed; end it with {0}, and write \\{0} for a quote within it",
            quote));
  }
  ++at_;
  TRY(CheckLength(begin, value.size(), "text"));
  return Token{TokenKind::kString, std::move(value), {begin, at_}};
}

Result<Token> Lexer::ScanQuotedName() {
  const size_t begin = at_;
  const size_t end = text_.find('`', at_ + 1);
  if (end == text_.npos)
    return script_.Error({begin, begin + 1}, "this name is not closed; end it with `");
  TRY(CheckLength(begin, end - begin, "name"));
  at_ = end + 1;
  return Token{
      TokenKind::kQuotedName, std::string(text_.substr(begin + 1, end - begin - 1)), {begin, at_}};
}

Result<Token> Lexer::ScanWord() {
  const size_t begin = at_;
  const bool number = IsDigit(text_[at_]) || text_[at_] == '-' || text_[at_] == '+';
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    const bool sign = c == '-' || c == '+';
    const bool of_number =
        number && (c == '.' || (sign && (at_ == begin || Lower(text_[at_ - 1]) == 'e')));
    const bool variable = StartsWith("${");
    if (!IsWordByte(c) && !of_number && !variable) break;
    if (!variable) continue;
    const size_t end = text_.find('}', at_);
    if (end == text_.npos)
      return script_.Error({at_, at_ + 2}, "this variable is not closed; end it with }");
    at_ = end;
  }
  TRY(CheckLength(begin, at_ - begin, "word"));
  return Token{TokenKind::kWord, std::string(text_.substr(begin, at_ - begin)), {begin, at_}};
}

Result<std::optional<Token>> Lexer::ScanSimple() {
  TRY(SkipBlanks());
  if (at_ >= text_.size())
    return std::optional<Token>(Token{TokenKind::kEnd, "", {text_.size(), text_.size()}});
  const char c = text_[at_];
  if (c != '"' && c != '\'' && c != '`') return std::optional<Token>();
  TRY_ASSIGN(Token token, c == '`' ? ScanQuotedName() : ScanString(c));
  return std::optional<Token>(std::move(token));
}

Result<Token> Lexer::Next() {
  TRY_ASSIGN(std::optional<Token> simple, ScanSimple());
  if (simple) return std::move(*simple);
  const size_t begin = at_;
  const char c = text_[begin];
  if (std::string_view(";=.,!").find(c) != std::string_view::npos) {
    ++at_;
    return Token{TokenKind::kSymbol, std::string(1, c), {begin, at_}};
  }
  const bool sign = (c == '-' || c == '+') && begin + 1 < text_.size() &&
                    (IsDigit(text_[begin + 1]) || text_[begin + 1] == '.');
  if (IsWordByte(c) || sign || StartsWith("${")) return ScanWord();
  const size_t length = std::max<size_t>(1, Utf8Length(text_.substr(begin)));
  return script_.Error(
      {begin, begin + length},
      "this character begins no word; names with special characters stand in `backquotes`");
}

Result<Token> Lexer::NextArgument() {
  TRY_ASSIGN(std::optional<Token> simple, ScanSimple());
  if (simple) return std::move(*simple);
  const size_t begin = at_;
  const char c = text_[begin];
  if (c == ';') {
    ++at_;
    return Token{TokenKind::kSymbol, ";", {begin, at_}};
  }
  while (at_ < text_.size() && !IsSpace(text_[at_]) && text_[at_] != ';') ++at_;
  TRY(CheckLength(begin, at_ - begin, "argument"));
  return Token{TokenKind::kWord, std::string(text_.substr(begin, at_ - begin)), {begin, at_}};
}

// Copies a query and finds its end, its parentheses and its last words. The copy has a character
// for each one of the script, so that places in it are places in the script.
class QueryScanner {
 public:
  QueryScanner(Lexer* lexer, size_t begin, bool may_be_named)
      : lexer_(*lexer), begin_(begin), may_be_named_(may_be_named) {
    lexer_.at_ = begin;
  }

  Result<QueryText> Scan() {
    while (lexer_.at_ < lexer_.text_.size() && lexer_.text_[lexer_.at_] != ';') {
      const size_t from = lexer_.at_;
      TRY(Step());
      TRY(lexer_.CheckLength(begin_, sql_.size() + (lexer_.at_ - from), "query"));
    }
    if (!open_.empty())
      return Error({open_.back(), open_.back() + 1}, "this parenthesis is not closed");
    QueryText query;
    query.span = {begin_, last_end_};
    if (named_ && may_be_named_) {
      query.table = last_word_;
      query.table_span = last_span_;
      sql_.resize(as_begin_ - begin_);
    }
    query.sql = std::move(sql_);
    return query;
  }

 private:
  Status Error(Span span, std::string_view sentence) const {
    return lexer_.script_.Error(span, sentence);
  }
  std::string_view ScannedFrom(size_t from) const {
    return lexer_.text_.substr(from, lexer_.at_ - from);
  }

  Status Step() {
    const size_t at = lexer_.at_;
    const char c = lexer_.text_[at];
    if (IsSpace(c) || lexer_.StartsWith("--") || lexer_.StartsWith("/*")) return AddBlanks();
    if (c == '`') return AddQuotedName();
    if (c == '\'' || c == '"') return AddQuoted(c);
    if (IsWordByte(c)) {
      TRY_ASSIGN(const Token word, lexer_.ScanWord());
      sql_ += word.text;
      AddWord(word.text, word.span, true);
      return Status::Ok();
    }
    return AddSymbol(c);
  }

  // Blanks and comments become blanks and line ends.
  Status AddBlanks() {
    const size_t from = lexer_.at_;
    TRY(lexer_.SkipBlanks());
    for (const char c : ScannedFrom(from)) sql_ += c == '\n' ? '\n' : ' ';
    return Status::Ok();
  }

  Status AddSymbol(char c) {
    const size_t at = lexer_.at_;
    if (c == '(') {
      if (open_.size() == kMaxQueryDepth)
        return Error({at, at + 1}, "more than " + std::to_string(kMaxQueryDepth) +
                                       " parentheses stand within each other");
      open_.push_back(at);
    }
    if (c == ')') {
      if (open_.empty()) return Error({at, at + 1}, "this parenthesis closes none");
      open_.pop_back();
    }
    ++lexer_.at_;
    sql_ += c;
    EndWords();
    return Status::Ok();
  }

  // `name` becomes "name".
  Status AddQuotedName() {
    TRY_ASSIGN(const Token name, lexer_.ScanQuotedName());
    if (name.text.find('"') != std::string::npos)
      return Error(name.span, "names in queries have no double quotes");
    sql_ += '"' + name.text + '"';
    AddWord(name.text, name.span, false);
    return Status::Ok();
  }

  // '…' and "…" of SQL: a quote within stands twice.
  Status AddQuoted(char quote) {
    const size_t begin = lexer_.at_;
    size_t at = begin + 1;
    for (;; ++at) {
      at = lexer_.text_.find(quote, at);
      if (at == std::string_view::npos)
        return Error(
            {begin, begin + 1},
            fmt::format(
                "this text is not closed; end it with {0}, and write {0}{0} for a quote within it",
                quote));
      if (at + 1 >= lexer_.text_.size() || lexer_.text_[at + 1] != quote) break;
      ++at;
    }
    lexer_.at_ = at + 1;
    const std::string_view all = ScannedFrom(begin);
    sql_ += all;
    if (quote == '"') {
      AddWord(std::string(all.substr(1, all.size() - 2)), {begin, at + 1}, false);
    } else {
      EndWords();
    }
    return Status::Ok();
  }

  // A word that may be a name, or a keyword if it is `bare`.
  void AddWord(const std::string& word, Span span, bool bare) {
    named_ = after_as_ && open_.empty();
    // "as" of a query's first word would leave nothing.
    after_as_ = bare && IsKeyword(word, "as") && span.begin > begin_;
    if (!named_ && after_as_) as_begin_ = span.begin;
    if (named_) after_as_ = false;
    last_word_ = word;
    last_span_ = span;
    last_end_ = span.end;
  }
  void EndWords() {
    named_ = after_as_ = false;
    last_end_ = lexer_.at_;
  }

  Lexer& lexer_;
  const size_t begin_;
  const bool may_be_named_;
  std::string sql_;
  std::vector<size_t> open_;
  bool after_as_ = false;  // the last word is "as"
  bool named_ = false;     // the last words are "as NAME"
  size_t as_begin_ = 0;
  std::string last_word_;
  Span last_span_;
  size_t last_end_ = 0;
};

Result<QueryText> Lexer::ScanQuery(size_t begin, bool named) {
  return QueryScanner(this, begin, named).Scan();
}

}  // namespace shoal::sql
