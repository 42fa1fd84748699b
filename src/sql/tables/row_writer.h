// Rows as lines of a file.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "sql/tables/table.h"

namespace shoal::sql {

// A value as people see it: texts without quotes, null as nothing, lists and objects as JSON.
std::string ValueText(const json::value& value);

// The first line of CSV and TSV; nothing for other formats.
std::string HeaderLine(data::RecordFormat format, const std::vector<std::string>& names);
// A cell of CSV or TSV. InvalidArgument for what a cell cannot hold: TSV has no quotes, and records
// are lines.
Result<std::string> CellOf(data::RecordFormat format, const std::string& text);

// Appends the line of a row to `out`, in CSV, TSV or JSON lines. Texts of columns of numbers become
// numbers in JSON. Errors as CellOf.
Status AppendRow(data::RecordFormat format, const std::vector<data::SchemaColumn>& columns,
                 const std::vector<json::value>& row, std::string* out);

}  // namespace shoal::sql
