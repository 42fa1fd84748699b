// load FORMAT.`path` [where …] as t;
#include <fcntl.h>

#include <algorithm>

#include "base/output_file.h"
#include "data/formats/csv_cells.h"
#include "sql/session/option_list.h"
#include "sql/statements/statements.h"
#include "sql/syntax/lexer.h"
#include "sql/tables/row_writer.h"

namespace shoal::sql {
namespace {

using data::RecordFormat;

struct CsvOptions {
  bool header = true;
  RecordFormat format = RecordFormat::kCsv;  // kTsv for a tab
};

Result<CsvOptions> TakeCsvOptions(RecordFormat format, OptionList* options) {
  CsvOptions csv{true, format};
  TRY_ASSIGN(csv.header, options->TakeFlag("header", true));
  TRY(options->TakeFlag("inferSchema", true).status());  // types are always inferred
  for (const char* const name : {"delimiter", "sep"}) {
    const auto option = options->Take(name);
    if (!option) continue;
    const std::string& text = option->value.text;
    if (text != "," && text != "\t")
      return options->script().Error(
          option->value.span,
          "got the delimiter '" + text.substr(0, 16) + "', expected a comma, or \"\\t\" for a tab");
    csv.format = text == "," ? RecordFormat::kCsv : RecordFormat::kTsv;
  }
  return csv;
}

// "_c0,_c1,…" for as many columns as the line has.
Result<std::string> MadeHeader(RecordFormat format, std::string_view line) {
  const char delimiter = format == RecordFormat::kCsv ? ',' : '\t';
  std::vector<std::string> names;
  std::string room;
  std::string_view cell;
  const char* at = line.data();
  const char* const end = at + line.size();
  while (at <= end && names.size() < data::kMaxCsvColumns) {
    if (!data::NextCell(&at, end, delimiter, &room, &cell))
      return InvalidArgument("the first line has a quote that is not closed");
    names.push_back("_c" + std::to_string(names.size()));
  }
  return HeaderLine(format, names);
}

// Copies the lines of files without a header below one, so that all statements can read them.
Result<Table> WithHeader(const Table& lines, RecordFormat format, Host* host) {
  TRY_ASSIGN(auto directory, SessionState::MakeDirectory());
  const std::string name = "lines." + std::string(data::NameOf(format));
  TRY_ASSIGN(const UniqueFd file, OpenFile(directory->path() / name, O_WRONLY | O_CREAT | O_EXCL));
  TRY_ASSIGN(TableReader reader, TableReader::Open(lines));
  data::Record record;
  constexpr size_t kBuffer = size_t{1} << 20;
  std::string buffer;
  for (bool first = true;; first = false) {
    TRY_ASSIGN(const bool more, reader.NextRecord(&record));
    if (!more) break;
    if (host->Stopped()) return Cancelled("stopped while it loaded");
    if (first) {
      TRY_ASSIGN(buffer, MadeHeader(format, record.bytes));
    }
    buffer += record.bytes;
    buffer += '\n';
    if (buffer.size() < kBuffer) continue;
    TRY(WriteAll(file.get(), buffer));
    buffer.clear();
  }
  TRY(WriteAll(file.get(), buffer));
  return OpenSessionFile(format, std::move(directory), name);
}

// Whether the format is the text of a variable: jsonStr, csvStr, script.
bool IsVariableFormat(std::string_view kind) {
  return IsKeyword(kind, "jsonstr") || IsKeyword(kind, "csvstr") || IsKeyword(kind, "script");
}

// load jsonStr.`name` as t: the lines of a variable; script: one row with its text.
Result<Table> LoadVariable(std::string_view kind, const std::string& name,
                           const Variables& variables) {
  const auto found = variables.values().find(name);
  if (found == variables.values().end())
    return InvalidArgument("the variable " + name.substr(0, 64) + " is not set; `set " +
                           name.substr(0, 64) + " = '''…''';` sets it");
  const bool csv = IsKeyword(kind, "csvstr");
  TRY_ASSIGN(auto directory, SessionState::MakeDirectory());
  const std::string file = csv ? "variable.csv" : "variable.jsonl";
  const size_t begin = std::min(found->second.find_first_not_of("\r\n"), found->second.size());
  std::string lines = found->second.substr(begin) + "\n";
  if (IsKeyword(kind, "script")) lines = ToText(json::object{{"value", found->second}}) + "\n";
  TRY(WriteFileAtomically(directory->path() / file, lines, 0600, false));
  return OpenSessionFile(csv ? RecordFormat::kCsv : RecordFormat::kJsonLines, std::move(directory),
                         file);
}

// The table of a path, whose files must all be allowed: a pattern or a directory may hold links.
Result<Table> OpenAllowed(RecordFormat format, const std::string& path, const Host& host) {
  TRY(host.CheckPath(path));
  TRY_ASSIGN(Table table, OpenTable(format, path));
  for (const std::string& source : table.sources) TRY(host.CheckPath(source));
  return table;
}

Result<Table> Load(RecordFormat format, const CsvOptions& csv, const std::string& path,
                   Host* host) {
  if (csv.header) return OpenAllowed(format, path, *host);
  TRY_ASSIGN(const Table lines, OpenAllowed(RecordFormat::kText, path, *host));
  return WithHeader(lines, format, host);
}

// `name.people.csv` of a connection becomes a path, and its parameters those of the statement.
void ApplyConnection(const SessionState& state, const Word& kind, Word* path,
                     std::vector<Option>* options) {
  const size_t dot = path->text.find('.');
  if (dot == std::string::npos) return;
  const auto found = state.connections.find(path->text.substr(0, dot));
  if (found == state.connections.end() || !IsKeyword(kind.text, found->second.format)) return;
  std::string url = found->second.url;
  if (!url.ends_with('/')) url += '/';
  path->text = url + path->text.substr(dot + 1);
  for (const Option& option : found->second.options) {
    const bool given = std::any_of(options->begin(), options->end(), [&](const Option& one) {
      return one.key.text == option.key.text;
    });
    if (!given)
      options->push_back({{option.key.text, path->span}, {option.value.text, path->span}});
  }
}

// Makes what was loaded a table of the session.
Result<StatementResult> Put(const ScriptText& script, const LoadStatement& load,
                            Result<Table> loaded, SessionState* state) {
  if (!loaded.ok()) return script.Locate(load.source.path.span, loaded.status());
  TRY_ASSIGN(const Word kind, state->variables.Expand(script, load.source.kind));
  TRY_ASSIGN(const Word path, state->variables.Expand(script, load.source.path));
  TRY_ASSIGN(const Word name, state->variables.Expand(script, load.table));
  loaded->origin = kind.text + ".`" + path.text + "`";
  TRY(state->PutTable(script, name, std::move(*loaded)));
  return StatementResult{name.text, std::nullopt, false};
}

}  // namespace

std::vector<std::string> LoadParams(std::string_view format) {
  if (IsVariableFormat(format)) return {"header"};
  const Result<RecordFormat> known = ParseLoadFormat(std::string(format));
  const bool table = known.ok() && (*known == RecordFormat::kCsv || *known == RecordFormat::kTsv);
  if (!table) return {};
  return {"header", "delimiter", "sep", "inferSchema"};
}

Result<StatementResult> Execute(const ScriptText& script, const LoadStatement& load,
                                SessionState* state) {
  TRY_ASSIGN(const Word kind, state->variables.Expand(script, load.source.kind));
  TRY_ASSIGN(Word path, state->variables.Expand(script, load.source.path));
  TRY_ASSIGN(std::vector<Option> expanded, state->variables.Expand(script, load.options));
  ApplyConnection(*state, kind, &path, &expanded);
  OptionList options(script, std::move(expanded));
  if (IsVariableFormat(kind.text)) {
    TRY(options.TakeFlag("header", true).status());
    TRY(options.RefuseRest(LoadParams(kind.text)));
    return Put(script, load, LoadVariable(kind.text, path.text, state->variables), state);
  }
  const Result<RecordFormat> format = ParseLoadFormat(kind.text);
  if (!format.ok()) return script.Locate(kind.span, format.status());
  CsvOptions csv{true, *format};
  const bool table = *format == RecordFormat::kCsv || *format == RecordFormat::kTsv;
  if (table) {
    TRY_ASSIGN(csv, TakeCsvOptions(*format, &options));
  }
  TRY(options.RefuseRest(LoadParams(kind.text)));
  return Put(script, load, Load(csv.format, csv, path.text, state->host), state);
}

}  // namespace shoal::sql
