#include "import/slurm/shell_script.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace shoal::importer {
namespace {

bool IsNameBegin(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Keywords after which another command begins.
constexpr std::string_view kBefore[] = {"if", "then", "else", "elif", "do",   "while", "until",
                                        "!",  "{",    "time", "exec", "eval", "nohup", "command"};
// Commands whose words are names of variables.
constexpr std::string_view kDeclares[] = {"export",  "local",   "declare",   "readonly",
                                          "typeset", "read",    "for",       "select",
                                          "getopts", "mapfile", "readarray", "let"};

template <size_t n>
bool IsIn(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The name in "NAME=…", "NAME+=…" or "NAME[1]=…", or the whole word.
std::string NameAt(std::string_view word) {
  size_t end = 0;
  while (end < word.size() && IsNameChar(word[end])) ++end;
  return word.empty() || !IsNameBegin(word[0]) ? "" : std::string(word.substr(0, end));
}

bool IsAssignment(std::string_view word) {
  const size_t name = NameAt(word).size();
  if (name == 0) return false;
  const std::string_view rest = word.substr(name);
  return rest.starts_with('=') || rest.starts_with("+=") ||
         (rest.starts_with('[') && rest.find("]=") != std::string_view::npos);
}

// Scans a script character by character, with the shell's quoting rules.
class ShellScanner {
 public:
  explicit ShellScanner(std::string_view text) : text_(text) {}

  ShellScript Read() {
    while (at_ < text_.size()) Step(text_[at_]);
    EndCommand();
    return std::move(out_);
  }

 private:
  // State outside of $( … ), restored behind it.
  struct Outer {
    char quote = 0;
    std::string word;
    bool in_word = false;
    ShellCommand command;
  };

  void Step(char c) {
    if (quote_ == '\'') return InSingle(c);
    if (c == '\\') return Escape();
    if (c == '$') return Dollar();
    if (arithmetic_ > 0 && text_.substr(at_).starts_with("))")) {
      --arithmetic_;
      at_ += 2;
      return;
    }
    if (c == '\'' && quote_ == 0) return Quote(c);
    if (c == '"') return Quote(quote_ == 0 ? c : '\0');
    if (quote_ == '"') return AppendChar(c);
    if (c == '#' && !in_word_) return SkipLine();
    if (text_.substr(at_).starts_with("<<") && arithmetic_ == 0) return HereDocument();
    if (c == ')' && !outer_.empty()) return EndCapture();
    if (c == '(' && text_.substr(at_ + 1).starts_with(')') && !word_.ends_with('='))
      function_begins_ = true;
    if (c == '\n') return NewLine();
    if ((c == ' ' || c == '\t') && arithmetic_ > 0) return AppendChar(c);
    if (c == ' ' || c == '\t' || c == '\r') return EndWord(), Next();
    if (c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '`')
      return EndCommand(), Next();
    AppendChar(c);
  }

  void Next() { ++at_; }
  void AppendChar(char c) {
    if (c == '\n') ++line_;
    word_ += c;
    in_word_ = true;
    ++at_;
  }
  void InSingle(char c) {
    if (c != '\'') return AppendChar(c);
    quote_ = 0;
    ++at_;
  }
  void Quote(char quote) {
    quote_ = quote;
    in_word_ = true;
    ++at_;
  }
  void Escape() {
    const bool line_break = at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
    if (line_break) {
      ++line_;
    } else if (at_ + 1 < text_.size()) {
      word_ += text_[at_ + 1];
      in_word_ = true;
    }
    at_ += 2;
  }
  void SkipLine() { at_ = std::min(text_.find('\n', at_), text_.size()); }
  void NewLine() {
    EndCommand();
    ++line_;
    ++at_;
    while (!documents_.empty() && at_ < text_.size()) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view line = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
      ++line_;
      line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
      if (line == documents_.front()) documents_.erase(documents_.begin());
    }
  }
  void HereDocument() {
    if (text_.substr(at_).starts_with("<<<")) {  // the next word is the input
      at_ += 3;
      return;
    }
    at_ += 2;
    while (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == ' ')) ++at_;
    std::string name;
    for (; at_ < text_.size() &&
           std::string_view(" \t\n;&|<>()").find(text_[at_]) == std::string_view::npos;
         ++at_) {
      if (std::string_view("'\"\\").find(text_[at_]) == std::string_view::npos) name += text_[at_];
    }
    if (!name.empty()) documents_.push_back(name);
  }

  void Dollar() {
    const std::string_view rest = text_.substr(at_ + 1);
    if (rest.starts_with("((")) {  // arithmetic is not a command; its names are read as text
      ++arithmetic_;
      word_ += "$";
      in_word_ = true;
      at_ += 3;
      return;
    }
    if (rest.starts_with('(')) {
      outer_.push_back({quote_, word_, true, std::move(command_)});
      quote_ = 0;
      word_.clear();
      in_word_ = false;
      command_ = {};
      at_ += 2;
      return;
    }
    const bool braces = rest.starts_with('{');
    const std::string name = NameAt(rest.substr(braces ? 1 : 0));
    const std::string_view behind =
        rest.substr(std::min(rest.size(), name.size() + (braces ? 1 : 0)));
    const bool defaulted = braces && !behind.empty() &&
                           std::string_view(":-+=").find(behind[0]) != std::string_view::npos;
    // ${NAME:=value} also sets it.
    if (defaulted && (behind.starts_with(":=") || behind.starts_with('=')) && !name.empty())
      out_.assigned.insert(name);
    const char first = rest.size() > (braces ? 1U : 0U) ? rest[braces ? 1 : 0] : ' ';
    if (!name.empty() && !defaulted) out_.used.insert(name);
    if (name.empty() && !defaulted && !InFunction() &&
        (first == '@' || first == '*' || (first >= '1' && first <= '9')))
      out_.arguments = true;
    AppendChar('$');
  }

  void EndCapture() {
    EndCommand();
    Outer outer = std::move(outer_.back());
    outer_.pop_back();
    quote_ = outer.quote;
    word_ = outer.word + "$()";
    in_word_ = true;
    command_ = std::move(outer.command);
    ++at_;
  }

  void Assign(const std::string& word) {
    const std::string name = NameAt(word);
    out_.assigned.insert(name);
    const std::string_view behind = std::string_view(word).substr(name.size());
    if (behind.starts_with('=')) out_.values[name] = behind.substr(1);
    if (behind.starts_with("+=")) out_.values[name] += behind.substr(2);
  }

  // Braces as words of their own enclose the body of a function or a group of commands.
  void ReadBrace(const std::string& word) {
    if (!command_.words.empty() && command_.words[0] == "function" && word == "{") {
      command_ = {};
      function_begins_ = true;
    }
    if (!command_.words.empty()) return;
    if (word == "{") braces_.push_back(std::exchange(function_begins_, false));
    if (word == "}" && !braces_.empty()) braces_.pop_back();
  }
  bool InFunction() const { return std::ranges::find(braces_, true) != braces_.end(); }

  void EndWord() {
    if (!in_word_) return;
    in_word_ = false;
    const std::string word = std::exchange(word_, "");
    ReadBrace(word);
    if (IsAssignment(word)) Assign(word);
    std::vector<std::string>& words = command_.words;
    if (words.empty() && (IsAssignment(word) || IsIn(kBefore, word))) return;
    if (words.empty()) command_.line = line_;
    if (!words.empty() && IsIn(kDeclares, words[0])) {
      const std::string name = NameAt(word);
      const bool first = words[0] != "for" || words.size() == 1;
      if (first && !name.empty()) out_.assigned.insert(name);
    }
    if (words.size() == 1 && word == "=") out_.assigned.insert(NameAt(words[0]));  // (( i = 0 ))
    words.push_back(word);
  }

  void EndCommand() {
    EndWord();
    command_.captured = !outer_.empty();
    if (!command_.words.empty()) out_.commands.push_back(std::move(command_));
    command_ = {};
  }

  const std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  char quote_ = 0;
  int arithmetic_ = 0;  // open $((
  std::string word_;
  bool in_word_ = false;
  ShellCommand command_;
  std::vector<Outer> outer_;
  bool function_begins_ = false;        // its name was read: "{" begins its body
  std::vector<bool> braces_;            // open ones; true: of a function
  std::vector<std::string> documents_;  // here-documents that begin after this line
  ShellScript out_;
};

}  // namespace

ShellScript ParseShellScript(std::string_view script) { return ShellScanner(script).Read(); }

}  // namespace shoal::importer
