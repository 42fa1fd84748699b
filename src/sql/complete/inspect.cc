#include "sql/complete/inspect.h"

#include <algorithm>
#include <array>
#include <utility>

#include "learn/algorithm.h"
#include "learn/params/params.h"
#include "sql/cluster/cluster_params.h"
#include "sql/statements/statements.h"
#include "sql/syntax/lexer.h"
#include "sql/training/train_plan.h"

namespace shoal::sql {
namespace {

constexpr size_t kMaxValue = 1000;  // shown bytes of a variable

constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kStatements = {{
    {"set", "set NAME = \"VALUE\";\nSets a variable, which ${NAME} stands for."},
    {"load", "load FORMAT.`path` [where NAME=\"VALUE\" and …] as TABLE;\nMakes a table of files."},
    {"select", "select … as TABLE;\nA query in DuckDB's SQL over the tables of the session."},
    {"with", "with … select … as TABLE;\nA query in DuckDB's SQL over the tables of the session."},
    {"train",
     "train TABLE as ALGORITHM.`path` [where NAME=\"VALUE\" and …] [as RESULT];\n"
     "Trains a model with an ordinary job."},
    {"run", "run TABLE as ALGORITHM.`path` [where …] [as RESULT];\nThe same as train."},
    {"predict",
     "predict TABLE as ALGORITHM.`path` [where …] [as RESULT];\nAdds predictions to the rows."},
    {"register", "register ALGORITHM.`path` as NAME;\nMakes a model a function of queries."},
    {"connect", "connect FORMAT where url=\"/directory\" as NAME;\nNames a directory of tables."},
    {"create", "create [or replace] table TABLE as select …;\nThe same as select … as TABLE."},
    {"save",
     "save [overwrite|append|errorIfExists|ignore] TABLE as FORMAT.`path`;\n"
     "Writes the rows of a table."},
    {"include", "include file.`other.sql`;\nRuns another script."},
    {"drop", "drop table TABLE;\nForgets a table."},
}};

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string WordAt(std::string_view text, size_t cursor) {
  size_t begin = cursor, end = cursor;
  while (begin > 0 && IsWordByte(text[begin - 1])) --begin;
  while (end < text.size() && IsWordByte(text[end])) ++end;
  return std::string(text.substr(begin, end - begin));
}

std::string OfTable(const std::string& name, const Table& table) {
  std::string text = "table " + name + ", " + std::string(data::NameOf(table.format)) + ", of " +
                     table.origin + "\n";
  for (const data::SchemaColumn& column : table.columns) {
    const auto special = table.special.find(column.name);
    text += "  " + column.name + "  " +
            (special != table.special.end() ? special->second
                                            : std::string(data::NameOf(column.type))) +
            "\n";
  }
  return text;
}

void AddParams(std::span<const learn::Param> params, std::string* text) {
  for (const learn::Param& param : params) {
    if (param.retired) continue;
    *text += "  " + std::string(param.name);
    if (!param.default_text.empty()) *text += " [" + std::string(param.default_text) + "]";
    *text += "  " + std::string(param.doc) + "\n";
  }
}

std::string OfAlgorithm(const SqlAlgorithm& algorithm) {
  const learn::Algorithm* const trainer = learn::FindAlgorithm(algorithm.learn);
  std::string text =
      std::string(algorithm.name) + ": " + std::string(algorithm.doc) + "\nparameters:\n";
  if (trainer != nullptr) AddParams(trainer->params, &text);
  AddParams(learn::CommonParams(), &text);
  text += "and of the job:";
  for (const std::string& name : TrainJobParams()) text += " " + name;
  return text + "\n";
}

std::string ListOf(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

std::string Inspect(std::string_view text, size_t cursor, const SessionState& state) {
  const std::string word = WordAt(text, std::min(cursor, text.size()));
  if (word.empty()) return "";
  if (const auto table = state.tables.find(word); table != state.tables.end())
    return OfTable(word, table->second);
  if (const auto function = state.functions.find(word); function != state.functions.end())
    return "function " + word + ", of the model " + function->second.model + "\n";
  if (const auto variable = state.variables.values().find(word);
      variable != state.variables.values().end())
    return "variable " + word + " = " + variable->second.substr(0, kMaxValue) + "\n";
  if (const auto kind = ClusterKindOf(word))
    return std::string(NameOf(*kind)) +
           ": runs the user's Python program\nparameters: " + ListOf(ClusterParamNames()) + "\n";
  if (const auto algorithm = FindSqlAlgorithm(word); algorithm.ok())
    return OfAlgorithm(**algorithm);
  for (const auto& [name, doc] : kStatements) {
    if (IsKeyword(word, name)) return std::string(doc) + "\n";
  }
  if (!ParseLoadFormat(word).ok()) return "";
  const std::vector<std::string> params = LoadParams(word);
  return "format " + word + (params.empty() ? "" : "\nparameters: " + ListOf(params)) + "\n";
}

}  // namespace shoal::sql
