#include "sql/complete/complete.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "learn/algorithm.h"
#include "learn/params/params.h"
#include "sql/cluster/cluster_params.h"
#include "sql/statements/statements.h"
#include "sql/syntax/parser.h"
#include "sql/tables/save_table.h"
#include "sql/training/train_plan.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool StartsWithAnyCase(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return Lower(a) == Lower(b); });
}

bool IsNameByte(char c) {
  return (Lower(c) >= 'a' && Lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// What the statements before a place say, and where the unfinished one begins.
struct Before {
  Names tables;
  Names variables;
  size_t begin = 0;
};

void Collect(const Statement& statement, Before* before) {
  const auto add = [](Names* names, const Word& word) { names->push_back(word.text); };
  if (const auto* const load = std::get_if<LoadStatement>(&statement.body)) {
    add(&before->tables, load->table);
  } else if (const auto* const select = std::get_if<SelectStatement>(&statement.body)) {
    add(&before->tables, select->table);
  } else if (const auto* const train = std::get_if<TrainStatement>(&statement.body)) {
    if (train->result) add(&before->tables, *train->result);
  } else if (const auto* const predict = std::get_if<PredictStatement>(&statement.body)) {
    if (predict->result) add(&before->tables, *predict->result);
  } else if (const auto* const set = std::get_if<SetStatement>(&statement.body)) {
    add(&before->variables, set->name);
  }
}

Before ReadBefore(std::string_view text) {
  Before before;
  const ScriptText script("", std::string(text));
  Parser parser(script);
  for (;;) {
    Result<std::optional<Statement>> statement = parser.Next();
    if (!statement.ok() || !*statement) break;
    const size_t end = (*statement)->span.end;
    const size_t semicolon = text.find_first_not_of(" \t\r\n", end);
    // Without its semicolon it is the one that is written.
    if (semicolon == text.npos || text[semicolon] != ';') break;
    Collect(**statement, &before);
    before.begin = semicolon + 1;
  }
  return before;
}

// The tokens before the word at the cursor. Words of an unfinished text or name are left out.
Names TokensOf(std::string_view text) {
  const ScriptText script("", std::string(text));
  Lexer lexer(script);
  Names tokens;
  for (;;) {
    Result<Token> token = lexer.Next();
    if (!token.ok() || token->kind == TokenKind::kEnd) return tokens;
    tokens.push_back(std::move(token->text));
  }
}

bool Is(const Names& tokens, size_t index, std::string_view keyword) {
  return index < tokens.size() && IsKeyword(tokens[index], keyword);
}

class Completer {
 public:
  Completer(std::string_view text, size_t cursor, const SessionState& state)
      : text_(text.substr(0, cursor)), state_(state), before_(ReadBefore(text_)) {}

  Completion Run() {
    const std::string_view partial = text_.substr(before_.begin);
    size_t quote = 0;
    const bool quoted = InBackquotes(partial, &quote);
    size_t word = partial.size();
    while (!quoted && word > 0 && IsNameByte(partial[word - 1])) --word;
    if (quoted) word = quote + 1;
    prefix_ = partial.substr(word);
    tokens_ = TokensOf(partial.substr(0, quoted ? quote : word));
    completion_.begin = before_.begin + word;
    if (InDollarName(partial)) {
      AddVariables();
    } else if (quoted && After(".") && !IsQuery()) {
      AddPaths();
    } else {
      AddWords();
    }
    Names& all = completion_.candidates;
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    if (all.size() > kMaxCandidates) all.resize(kMaxCandidates);
    return std::move(completion_);
  }

 private:
  // Whether the text ends within `…, and where that begins.
  static bool InBackquotes(std::string_view text, size_t* begin) {
    bool open = false;
    char other = 0;  // the quote of a text
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (other != 0) {
        if (c == '\\') ++i;
        if (c == other) other = 0;
      } else if (c == '`') {
        open = !open;
        *begin = i;
      } else if (!open && (c == '"' || c == '\'')) {
        other = c;
      }
    }
    return open;
  }

  // "${na" before the cursor.
  bool InDollarName(std::string_view partial) {
    const size_t dollar = partial.rfind("${");
    if (dollar == partial.npos || partial.find('}', dollar) != partial.npos) return false;
    prefix_ = partial.substr(dollar + 2);
    completion_.begin = before_.begin + dollar + 2;
    return true;
  }

  bool After(std::string_view token) const { return !tokens_.empty() && tokens_.back() == token; }
  bool IsQuery() const {
    return Is(tokens_, 0, "select") || Is(tokens_, 0, "with") || Is(tokens_, 0, "create");
  }

  void Add(std::string_view candidate) {
    if (StartsWithAnyCase(candidate, prefix_)) completion_.candidates.emplace_back(candidate);
  }
  void AddAll(const Names& candidates) {
    for (const std::string& one : candidates) Add(one);
  }
  void AddTables() {
    for (const auto& [name, table] : state_.tables) Add(name);
    AddAll(before_.tables);
  }
  void AddVariables() {
    for (const auto& [name, value] : state_.variables.values()) Add(name);
    AddAll(before_.variables);
  }
  void AddAlgorithms() {
    for (const SqlAlgorithm& one : SqlAlgorithms()) Add(one.name);
  }

  // Entries of the directory that the path begins with.
  void AddPaths() {
    if (prefix_.find("://") != prefix_.npos) return;
    const size_t slash = prefix_.rfind('/');
    const std::string folder(slash == prefix_.npos ? "" : prefix_.substr(0, slash + 1));
    if (!state_.host->CheckPath(folder.empty() ? "." : folder).ok()) return;
    std::error_code ignored;  // what cannot be read has no completions
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored)) {
      const std::string name = entry.path().filename().string();
      const bool hidden = name.starts_with('.') && !prefix_.substr(folder.size()).starts_with('.');
      if (hidden || completion_.candidates.size() > kMaxCandidates) continue;
      Add(folder + name + (entry.is_directory(ignored) ? "/" : "`"));
    }
  }

  void AddWords() {
    if (tokens_.empty()) {
      AddAll(StatementKeywords());
      return;
    }
    if (tokens_.front() == "!") return AddCommand();
    if (IsQuery()) return AddQueryWords();
    if (After("=") && tokens_.size() > 2) {
      if (!Is(tokens_, 0, "set")) AddAll({"\"true\"", "\"false\""});
      return;
    }
    if (AtParameter()) return AddParameters();
    AddByPosition();
  }

  void AddCommand() {
    if (tokens_.size() == 1) {
      AddAll(CommandNames());
      AddVariables();
    } else if (Is(tokens_, 1, "show")) {
      AddAll(ShowLists());
    } else if (Is(tokens_, 1, "desc")) {
      AddTables();
    }
  }

  // Whether the next word is a parameter's name: after where, and, or a comma.
  bool AtParameter() const {
    const bool where = std::any_of(tokens_.begin(), tokens_.end(), [](const std::string& token) {
      return IsKeyword(token, "where") || IsKeyword(token, "options");
    });
    const size_t last = tokens_.size() - 1;
    return where && (Is(tokens_, last, "where") || Is(tokens_, last, "options") ||
                     Is(tokens_, last, "and") || After(",") || After("."));
  }

  // The word before a dot: of FORMAT.`path` and ALGORITHM.`path`.
  std::string Kind() const {
    for (size_t i = 1; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i + 1] == ".") return tokens_[i];
    }
    return "";
  }

  void AddParameters() {
    const std::string kind = Kind();
    if (Is(tokens_, 0, "load")) return AddAll(LoadParams(kind));
    if (Is(tokens_, 0, "predict")) return AddAll(PredictParams());
    if (Is(tokens_, 0, "set")) return Add("type");
    if (Is(tokens_, 0, "connect")) return Add("url");
    if (!Is(tokens_, 0, "train") && !Is(tokens_, 0, "run")) return;
    if (ClusterKindOf(kind)) return AddAll(ClusterParamNames());
    const Result<const SqlAlgorithm*> named = FindSqlAlgorithm(kind);
    if (!named.ok()) return;
    AddAll(TrainJobParams());
    const learn::Algorithm* const algorithm = learn::FindAlgorithm((*named)->learn);
    for (const learn::Param& param : algorithm->params) {
      if (!param.retired) Add(param.name);
    }
    for (const learn::Param& param : learn::CommonParams()) {
      if (!param.retired) Add(param.name);
    }
  }

  // By the statement and the number of words before.
  void AddByPosition() {
    const size_t count = tokens_.size();
    const bool target_done = count > 2 && tokens_[count - 2] == ".";
    if (After("as") || Is(tokens_, count - 1, "as")) return AddAfterAs();
    if (target_done) return AddAll({"where", "as"});
    if (Is(tokens_, 0, "load") || Is(tokens_, 0, "connect")) {
      if (count == 1) AddAll(LoadFormats());
    } else if (Is(tokens_, 0, "train") || Is(tokens_, 0, "run") || Is(tokens_, 0, "predict")) {
      if (count == 1) AddTables();
      if (count == 2) Add("as");
    } else if (Is(tokens_, 0, "register")) {
      if (count == 1) AddAlgorithms();
    } else if (Is(tokens_, 0, "save")) {
      if (count == 1) AddAll({"overwrite", "append", "errorIfExists", "ignore"});
      if (count <= 2) AddTables();
      if (count >= 2) Add("as");
    } else if (Is(tokens_, 0, "drop")) {
      if (count <= 2) AddTables();
    } else if (Is(tokens_, 0, "include")) {
      if (count == 1) Add("file");
    }
  }

  void AddAfterAs() {
    if (tokens_.size() > 4) return;  // the result's own name
    if (Is(tokens_, 0, "save")) return AddAll(SaveFormats());
    const bool algorithm =
        Is(tokens_, 0, "train") || Is(tokens_, 0, "run") || Is(tokens_, 0, "predict");
    if (!algorithm || tokens_.size() != 3) return;
    AddAlgorithms();
    if (!Is(tokens_, 0, "predict")) AddAll({"DTFAlg", "DTF", "PythonAlg"});
  }

  // Tables, functions and words of SQL, and the columns of those tables that the query names.
  void AddQueryWords() {
    if (tokens_.size() > 1 && After(".")) {
      const auto table = state_.tables.find(tokens_[tokens_.size() - 2]);
      if (table != state_.tables.end()) AddColumns(table->second);
      return;
    }
    static const Names words = {
        "select", "from", "where", "group", "by",   "order",   "having", "limit", "offset",
        "join",   "left", "using", "on",    "as",   "and",     "or",     "not",   "null",
        "is",     "in",   "like",  "case",  "when", "then",    "else",   "end",   "distinct",
        "count",  "sum",  "avg",   "min",   "max",  "between", "union",  "over"};
    AddAll(words);
    AddTables();
    for (const auto& [name, function] : state_.functions) Add(name);
    const std::string_view query = text_.substr(before_.begin);
    for (const auto& [name, table] : state_.tables) {
      if (query.find(name) != query.npos) AddColumns(table);
    }
  }
  void AddColumns(const Table& table) {
    for (const data::SchemaColumn& column : table.columns) Add(column.name);
  }

  const std::string_view text_;
  const SessionState& state_;
  const Before before_;
  std::string_view prefix_;
  Names tokens_;
  Completion completion_;
};

}  // namespace

Completion Complete(std::string_view text, size_t cursor, const SessionState& state) {
  return Completer(text, std::min(cursor, text.size()), state).Run();
}

}  // namespace shoal::sql
