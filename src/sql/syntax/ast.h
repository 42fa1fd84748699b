// Statements as the parser gives them to the session. Texts still contain `${variables}`, which
// have their values only when the statement runs.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sql/syntax/script_text.h"

namespace shoal::sql {

// A name or a text and where it stands, with its quotes.
struct Word {
  std::string text;
  Span span;
};

// An assignment of `where`.
struct Option {
  Word key;  // "fitParam.0.epochs": parts joined by dots, without quotes
  Word value;
};

// FORMAT.`path` or ALGORITHM.`path`
struct Target {
  Word kind;
  Word path;
};

// set x = "…" [where type="…"];
struct SetStatement {
  Word name;
  Word value;
  std::vector<Option> options;
};

// load FORMAT.`path` [where …] as t;
struct LoadStatement {
  Target source;
  std::vector<Option> options;
  Word table;
};

// select … as t; or create table t as select …;
struct SelectStatement {
  Word query;  // without "as t"; a byte for each of the script (QueryText)
  Word table;
};

// train t as ALGORITHM.`path` [where …] [as result];
struct TrainStatement {
  Word input;
  Target model;
  std::vector<Option> options;
  std::optional<Word> result;
};

// predict t as ALGORITHM.`path` [where …] [as result];
struct PredictStatement {
  Word input;
  Target model;
  std::vector<Option> options;
  std::optional<Word> result;
};

// connect FORMAT where url="…" as name;
struct ConnectStatement {
  Word format;
  std::vector<Option> options;
  Word name;
};

// register ALGORITHM.`path` as f [where …];
struct RegisterStatement {
  Target model;
  Word function;
  std::vector<Option> options;
};

enum class SaveMode : uint8_t { kErrorIfExists, kOverwrite, kAppend, kIgnore };

// save [MODE] t as FORMAT.`path` [where …];
struct SaveStatement {
  SaveMode mode = SaveMode::kErrorIfExists;
  Word table;
  Target target;
  std::vector<Option> options;
};

// include file.`path`;
struct IncludeStatement {
  Target source;
};

// drop [table] t;
struct DropStatement {
  Word table;
};

// !name arguments…;
struct CommandStatement {
  Word name;
  std::vector<Word> arguments;
};

using StatementBody =
    std::variant<SetStatement, LoadStatement, SelectStatement, TrainStatement, PredictStatement,
                 RegisterStatement, ConnectStatement, SaveStatement, IncludeStatement,
                 DropStatement, CommandStatement>;

struct Statement {
  Span span;  // without the semicolon
  StatementBody body;
};

}  // namespace shoal::sql
