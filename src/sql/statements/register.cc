// register ALGORITHM.`path` as f;
#include <algorithm>

#include "model/save_model.h"
#include "sql/session/option_list.h"
#include "sql/statements/statements.h"
#include "sql/training/predicted_values.h"
#include "sql/training/train_plan.h"

namespace shoal::sql {
namespace {

constexpr size_t kMaxFunctions = 1000;
constexpr size_t kMaxName = 64;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

// A name that queries can call without quotes.
bool IsFunctionName(const std::string& name) {
  const auto is_rest = [](char c) { return IsLetter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= kMaxName && IsLetter(name.front()) &&
         std::all_of(name.begin(), name.end(), is_rest);
}

}  // namespace

Result<StatementResult> Execute(const ScriptText& script, const RegisterStatement& statement,
                                SessionState* state) {
  TRY_ASSIGN(const Word kind, state->variables.Expand(script, statement.model.kind));
  TRY_ASSIGN(const Word path, state->variables.Expand(script, statement.model.path));
  TRY_ASSIGN(const Word function, state->variables.Expand(script, statement.function));
  TRY_ASSIGN(std::vector<Option> options, state->variables.Expand(script, statement.options));
  TRY(OptionList(script, std::move(options)).RefuseRest({}));
  const Result<const SqlAlgorithm*> algorithm = FindSqlAlgorithm(kind.text);
  if (!algorithm.ok()) return script.Locate(kind.span, algorithm.status());
  const std::string name = Lower(function.text);
  if (!IsFunctionName(name))
    return script.Error(function.span, "got the name " + function.text.substr(0, kMaxName) +
                                           ", expected letters, digits and _");
  if (state->functions.size() >= kMaxFunctions && !state->functions.contains(name))
    return script.Error(function.span, "this session has " + std::to_string(kMaxFunctions) +
                                           " functions; begin another");
  TRY(script.Locate(path.span, state->host->CheckPath(path.text)));
  const auto model = FindModel(path.text);
  if (!model.ok()) return script.Locate(path.span, model.status());
  const auto metadata = model::ReadModelMetadata(*model);
  if (!metadata.ok()) return script.Locate(path.span, metadata.status());
  const std::string trainer((*algorithm)->learn);
  TRY(script.Locate(path.span, CheckTrainer(*metadata, *model, trainer)));
  state->functions[name] = {name, trainer, model->string()};
  return StatementResult();
}

}  // namespace shoal::sql
