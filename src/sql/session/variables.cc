#include "sql/session/variables.h"

#include "job/text/errors.h"
#include "sql/syntax/lexer.h"

namespace shoal::sql {

Status Variables::Unknown(const ScriptText& script, const Word& word, std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, value] : values_) names.push_back(known);
  // The place of the variable within the word, if the word stands in the script as it is.
  Span span = word.span;
  const std::string written = "${" + std::string(name) + "}";
  const size_t at = script.text().substr(0, span.end).find(written, span.begin);
  if (at != std::string_view::npos) span = {at, at + written.size()};
  const std::string shown(name.substr(0, 64));
  if (shown.empty()) return script.Error(span, "this variable has no name");
  return script.Error(span, "the variable " + shown + " is not set; write `set " + shown +
                                " = \"…\";` before" + job::DidYouMean(shown, names));
}

Result<Word> Variables::Expand(const ScriptText& script, const Word& word) const {
  if (word.text.find("${") == std::string::npos) return word;
  Word expanded{"", word.span};
  std::string_view rest = word.text;
  while (!rest.empty()) {
    const size_t at = rest.find("${");
    expanded.text += rest.substr(0, at);
    if (at == std::string_view::npos) break;
    rest.remove_prefix(at + 2);
    if (expanded.text.ends_with('$')) {  // "$${": the two characters themselves
      expanded.text += '{';
      continue;
    }
    const size_t end = rest.find('}');
    if (end == std::string_view::npos)
      return script.Error(word.span,
                          "a variable in this text is not closed; end it with }, or write $${ for "
                          "the characters ${");
    const auto found = values_.find(std::string(rest.substr(0, end)));
    if (found == values_.end()) return Unknown(script, word, rest.substr(0, end));
    expanded.text += found->second;
    rest.remove_prefix(end + 1);
    if (expanded.text.size() > kMaxLiteral)
      return script.Error(word.span, "with its variables this text has more than " +
                                         std::to_string(kMaxLiteral) + " bytes");
  }
  return expanded;
}

Result<std::vector<Option>> Variables::Expand(const ScriptText& script,
                                              const std::vector<Option>& options) const {
  std::vector<Option> expanded;
  for (const Option& option : options) {
    TRY_ASSIGN(Word key, Expand(script, option.key));
    TRY_ASSIGN(Word value, Expand(script, option.value));
    expanded.push_back({std::move(key), std::move(value)});
  }
  return expanded;
}

}  // namespace shoal::sql
