#include "sql/syntax/parser.h"

#include <utility>

#include "job/text/errors.h"

namespace shoal::sql {
namespace {

// At most this much of a token stands in a message.
constexpr size_t kShown = 40;

std::string Shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the script";
    case TokenKind::kString:
      return "a text";
    case TokenKind::kQuotedName:
    case TokenKind::kWord:
    case TokenKind::kSymbol:
      break;
  }
  const std::string quote = token.kind == TokenKind::kQuotedName ? "`" : "";
  return quote + token.text.substr(0, kShown) + (token.text.size() > kShown ? "…" : "") + quote;
}

bool IsDecimal(std::string_view text) {
  bool digit = false;
  for (const char c : text) {
    digit = digit || (c >= '0' && c <= '9');
    if ((c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E')
      return false;
  }
  return digit;
}

}  // namespace

const std::vector<std::string>& StatementKeywords() {
  static const std::vector<std::string> words = {
      "set",  "load",    "select",  "with",   "train", "predict", "register",
      "save", "include", "connect", "create", "drop",  "run"};
  return words;
}

Status Parser::Advance() {
  last_end_ = token_.span.end;
  TRY_ASSIGN(token_, lexer_.Next());
  return Status::Ok();
}

Status Parser::Unexpected(std::string_view expected,
                          const std::vector<std::string>& keywords) const {
  std::string sentence = "got " + Shown(token_) + ", expected " + std::string(expected);
  if (token_.kind == TokenKind::kWord)
    sentence += job::DidYouMean(token_.text.substr(0, kShown), keywords);
  return script_.Error(token_.span, sentence);
}

Status Parser::ExpectKeyword(std::string_view keyword) {
  if (!AtKeyword(keyword)) return Unexpected(keyword, {std::string(keyword)});
  return Advance();
}

Result<std::optional<Statement>> Parser::Next() {
  if (!std::exchange(begun_, true)) TRY(Advance());
  while (AtSymbol(';')) TRY(Advance());
  if (token_.kind == TokenKind::kEnd) return std::optional<Statement>();
  if (++statements_ > kMaxStatements)
    return script_.Error(
        token_.span,
        "this script has more than " + std::to_string(kMaxStatements) + " statements; divide it");
  Statement statement;
  statement.span.begin = token_.span.begin;
  TRY_ASSIGN(statement.body, ParseBody());
  statement.span.end = last_end_;
  if (token_.kind != TokenKind::kEnd && !AtSymbol(';'))
    return Unexpected("a semicolon after the statement", {"where", "as", "and"});
  return std::optional<Statement>(std::move(statement));
}

Result<StatementBody> Parser::ParseBody() {
  if (AtSymbol('!')) return ParseCommand();
  if (token_.kind != TokenKind::kWord) return Unexpected("a statement");
  if (AtKeyword("select") || AtKeyword("with")) return ParseSelect(token_.span.begin);
  using Parse = Result<StatementBody> (Parser::*)();
  static constexpr std::pair<std::string_view, Parse> kStatements[] = {
      {"set", &Parser::ParseSet},           {"load", &Parser::ParseLoad},
      {"train", &Parser::ParseTrain},       {"run", &Parser::ParseTrain},
      {"save", &Parser::ParseSave},         {"predict", &Parser::ParsePredict},
      {"drop", &Parser::ParseDrop},         {"include", &Parser::ParseInclude},
      {"register", &Parser::ParseRegister}, {"connect", &Parser::ParseConnect},
      {"create", &Parser::ParseCreate},
  };
  for (const auto& [keyword, parse] : kStatements) {
    if (!AtKeyword(keyword)) continue;
    TRY(Advance());
    return (this->*parse)();
  }
  return Unexpected(
      "a statement: set, load, select, train, predict, register, save, include, connect, create, "
      "drop or !command",
      StatementKeywords());
}

Result<Word> Parser::ParseName(std::string_view what) {
  if (token_.kind != TokenKind::kWord && token_.kind != TokenKind::kQuotedName)
    return Unexpected(what);
  if (token_.text.empty())
    return script_.Error(token_.span, "this name is empty, expected " + std::string(what));
  Word word{token_.text, token_.span};
  TRY(Advance());
  return word;
}

Result<std::optional<Word>> Parser::ParseAs() {
  if (!AtKeyword("as")) return std::optional<Word>();
  TRY(Advance());
  TRY_ASSIGN(Word name, ParseName("the name of a table"));
  return std::optional<Word>(std::move(name));
}

Result<Target> Parser::ParseTarget(std::string_view what, bool may_be_empty) {
  Target target;
  TRY_ASSIGN(target.kind, ParseName(what));
  if (!AtSymbol('.'))
    return Unexpected("a dot and a path, as in " + target.kind.text.substr(0, kShown) + ".`path`");
  TRY(Advance());
  if (token_.kind == TokenKind::kString)
    return script_.Error(token_.span, "got a text, expected a path in backquotes: `" +
                                          token_.text.substr(0, kShown) + "`");
  if (may_be_empty && token_.kind == TokenKind::kQuotedName && token_.text.empty()) {
    target.path = {"", token_.span};
    TRY(Advance());
    return target;
  }
  TRY_ASSIGN(target.path, ParseName("a path in backquotes"));
  return target;
}

Result<Word> Parser::ParseKey() {
  TRY_ASSIGN(Word key, ParseName("the name of a parameter"));
  while (AtSymbol('.')) {
    TRY(Advance());
    TRY_ASSIGN(const Word part, ParseName("the name of a parameter after the dot"));
    key.text += "." + part.text;
    key.span.end = part.span.end;
    if (key.text.size() > kMaxLiteral) return script_.Error(key.span, "this name is too long");
  }
  return key;
}

Result<Word> Parser::ParseValue() {
  const bool bare = token_.kind == TokenKind::kWord &&
                    (IsDecimal(token_.text) || AtKeyword("true") || AtKeyword("false"));
  if (token_.kind == TokenKind::kWord && !bare)
    return script_.Error(token_.span, "got " + Shown(token_) + ", expected a text in quotes: \"" +
                                          token_.text.substr(0, kShown) + "\"");
  if (token_.kind != TokenKind::kString && !bare) return Unexpected("a text in quotes");
  Word word{token_.text, token_.span};
  TRY(Advance());
  return word;
}

Result<Option> Parser::ParseOption() {
  Option option;
  TRY_ASSIGN(option.key, ParseKey());
  if (!AtSymbol('='))
    return Unexpected("= after the parameter " + option.key.text.substr(0, kShown));
  TRY(Advance());
  TRY_ASSIGN(option.value, ParseValue());
  return option;
}

Result<std::vector<Option>> Parser::ParseOptions() {
  std::vector<Option> options;
  if (!AtKeyword("where") && !AtKeyword("options")) return options;
  do {
    TRY(Advance());
    if (options.empty() && AtKeyword("and")) TRY(Advance());  // MLSQL permits `options and a="b"`
    if (options.size() == kMaxOptions)
      return script_.Error(token_.span, "this statement has more than " +
                                            std::to_string(kMaxOptions) + " parameters");
    TRY_ASSIGN(Option option, ParseOption());
    for (const Option& earlier : options) {
      if (earlier.key.text == option.key.text)
        return script_.Error(option.key.span, "the parameter " + option.key.text.substr(0, kShown) +
                                                  " is given twice");
    }
    options.push_back(std::move(option));
  } while (AtKeyword("and") || AtSymbol(','));
  return options;
}

Result<StatementBody> Parser::ParseSet() {
  SetStatement set;
  TRY_ASSIGN(set.name, ParseKey());
  if (!AtSymbol('=')) return Unexpected("= after the variable " + set.name.text.substr(0, kShown));
  TRY(Advance());
  if (token_.kind == TokenKind::kQuotedName)
    return script_.Error(token_.span,
                         "got a command in backquotes, expected a text in quotes; scripts run no "
                         "commands of a shell");
  TRY_ASSIGN(set.value, ParseValue());
  TRY_ASSIGN(set.options, ParseOptions());
  return StatementBody(std::move(set));
}

Result<StatementBody> Parser::ParseLoad() {
  LoadStatement load;
  TRY_ASSIGN(load.source, ParseTarget("a format"));
  TRY_ASSIGN(load.options, ParseOptions());
  TRY(ExpectKeyword("as"));
  TRY_ASSIGN(load.table, ParseName("the name of a table"));
  return StatementBody(std::move(load));
}

Result<StatementBody> Parser::ParseSelect(size_t begin) {
  TRY_ASSIGN(QueryText query, lexer_.ScanQuery(begin));
  if (query.table.empty())
    return script_.Error({begin, query.span.end},
                         "this query has no name for its result; end it with `as NAME`");
  TRY(Advance());
  last_end_ = query.span.end;
  return StatementBody(SelectStatement{{std::move(query.sql), query.span},
                                       {std::move(query.table), query.table_span}});
}

Result<StatementBody> Parser::ParseTrain() {
  TrainStatement train;
  TRY_ASSIGN(train.input, ParseName("the name of a table"));
  TRY(ExpectKeyword("as"));
  TRY_ASSIGN(train.model, ParseTarget("an algorithm", true));
  TRY_ASSIGN(train.options, ParseOptions());
  TRY_ASSIGN(train.result, ParseAs());
  return StatementBody(std::move(train));
}

Result<StatementBody> Parser::ParsePredict() {
  PredictStatement predict;
  TRY_ASSIGN(predict.input, ParseName("the name of a table"));
  TRY(ExpectKeyword("as"));
  TRY_ASSIGN(predict.model, ParseTarget("an algorithm"));
  TRY_ASSIGN(predict.options, ParseOptions());
  TRY_ASSIGN(predict.result, ParseAs());
  return StatementBody(std::move(predict));
}

Result<StatementBody> Parser::ParseRegister() {
  RegisterStatement made;
  TRY_ASSIGN(made.model, ParseTarget("an algorithm"));
  TRY(ExpectKeyword("as"));
  TRY_ASSIGN(made.function, ParseName("the name of a function"));
  TRY_ASSIGN(made.options, ParseOptions());
  return StatementBody(std::move(made));
}

Result<StatementBody> Parser::ParseConnect() {
  ConnectStatement connect;
  TRY_ASSIGN(connect.format, ParseName("a format"));
  TRY_ASSIGN(connect.options, ParseOptions());
  TRY(ExpectKeyword("as"));
  TRY_ASSIGN(connect.name, ParseName("the name of a connection"));
  return StatementBody(std::move(connect));
}

// create [or replace] [temporary] table|view NAME as QUERY
Result<StatementBody> Parser::ParseCreate() {
  if (AtKeyword("or")) {
    TRY(Advance());
    TRY(ExpectKeyword("replace"));
  }
  if (AtKeyword("temporary") || AtKeyword("temp")) TRY(Advance());
  if (!AtKeyword("table") && !AtKeyword("view"))
    return Unexpected("table or view, as in create table t as select …", {"table", "view"});
  TRY(Advance());
  SelectStatement select;
  TRY_ASSIGN(select.table, ParseName("the name of a table"));
  TRY(ExpectKeyword("as"));
  if (!AtKeyword("select") && !AtKeyword("with")) return Unexpected("a query", {"select", "with"});
  TRY_ASSIGN(QueryText query, lexer_.ScanQuery(token_.span.begin, false));
  select.query = {std::move(query.sql), query.span};
  TRY(Advance());
  last_end_ = query.span.end;
  return StatementBody(std::move(select));
}

Result<StatementBody> Parser::ParseSave() {
  static constexpr std::pair<std::string_view, SaveMode> kModes[] = {
      {"overwrite", SaveMode::kOverwrite},
      {"append", SaveMode::kAppend},
      {"errorifexists", SaveMode::kErrorIfExists},
      {"ignore", SaveMode::kIgnore}};
  SaveStatement save;
  for (const auto& [keyword, mode] : kModes) {
    if (!AtKeyword(keyword)) continue;
    save.mode = mode;
    TRY(Advance());
    break;
  }
  TRY_ASSIGN(save.table, ParseName("the name of a table"));
  if (!AtKeyword("as") && token_.kind == TokenKind::kWord) {
    // "save overwrit t as …": the mode is misspelt, or missing.
    return script_.Error(
        save.table.span,
        "got " + save.table.text.substr(0, kShown) +
            ", expected overwrite, append, errorIfExists, ignore or the name of a table, then as" +
            job::DidYouMean(save.table.text.substr(0, kShown),
                            {"overwrite", "append", "errorIfExists", "ignore"}));
  }
  TRY(ExpectKeyword("as"));
  TRY_ASSIGN(save.target, ParseTarget("a format"));
  TRY_ASSIGN(save.options, ParseOptions());
  return StatementBody(std::move(save));
}

Result<StatementBody> Parser::ParseInclude() {
  IncludeStatement include;
  TRY_ASSIGN(include.source, ParseTarget("file"));
  return StatementBody(std::move(include));
}

Result<StatementBody> Parser::ParseDrop() {
  if (AtKeyword("table")) TRY(Advance());
  DropStatement drop;
  TRY_ASSIGN(drop.table, ParseName("the name of a table"));
  return StatementBody(std::move(drop));
}

Result<StatementBody> Parser::ParseCommand() {
  CommandStatement command;
  TRY_ASSIGN(token_, lexer_.NextArgument());
  if (token_.kind != TokenKind::kWord) return Unexpected("the name of a command after !");
  command.name = {token_.text, token_.span};
  last_end_ = token_.span.end;
  for (;;) {
    TRY_ASSIGN(token_, lexer_.NextArgument());
    if (token_.kind == TokenKind::kEnd || token_.kind == TokenKind::kSymbol) break;
    if (command.arguments.size() == kMaxArguments)
      return script_.Error(token_.span, "this command has more than " +
                                            std::to_string(kMaxArguments) + " arguments");
    command.arguments.push_back({token_.text, token_.span});
    last_end_ = token_.span.end;
  }
  return StatementBody(std::move(command));
}

Result<size_t> CheckScript(const ScriptText& script) {
  Parser parser(script);
  for (size_t count = 0;; ++count) {
    TRY_ASSIGN(const std::optional<Statement> statement, parser.Next());
    if (!statement) return count;
  }
}

}  // namespace shoal::sql
