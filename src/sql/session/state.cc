#include "sql/session/state.h"

#include <vector>

#include "job/text/errors.h"

namespace shoal::sql {

Result<const Table*> SessionState::FindTable(const ScriptText& script, const Word& name) const {
  const auto found = tables.find(name.text);
  if (found != tables.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, table] : tables) names.push_back(known);
  const std::string shown = name.text.substr(0, 64);
  return script.Error(
      name.span, "there is no table " + shown +
                     (names.empty() ? "; `load FORMAT.`path` as " + shown + "` makes it" : "") +
                     job::DidYouMean(shown, names));
}

Status SessionState::PutTable(const ScriptText& script, const Word& name, Table table) {
  if (tables.size() >= kMaxTables && !tables.contains(name.text))
    return script.Error(name.span, "this session has " + std::to_string(kMaxTables) +
                                       " tables; remove one with `drop table NAME`");
  tables[name.text] = std::move(table);
  return Status::Ok();
}

Result<std::shared_ptr<const TempDir>> SessionState::MakeDirectory() {
  TRY_ASSIGN(TempDir made, TempDir::Create("shoal-sql"));
  return std::shared_ptr<const TempDir>(std::make_shared<TempDir>(std::move(made)));
}

}  // namespace shoal::sql
