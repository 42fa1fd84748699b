#include "sql/tables/row_writer.h"

#include <charconv>

#include "data/datasets/row_writer.h"

namespace shoal::sql {
namespace {

using data::RecordFormat;

// A text as the number that its column's type says, if it is one.
json::value TypedValue(const json::value& value, data::ColumnType type) {
  if (!value.is_string()) return value;
  const json::string& text = value.get_string();
  const char* const end = text.data() + text.size();
  if (type == data::ColumnType::kInteger) {
    int64_t integer = 0;
    const auto parsed = std::from_chars(text.data(), end, integer);
    if (parsed.ec == std::errc() && parsed.ptr == end) return integer;
  }
  if (type == data::ColumnType::kFloat || type == data::ColumnType::kInteger) {
    double number = 0;
    const auto parsed = std::from_chars(text.data(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end && number - number == 0) return number;
  }
  return value;
}

}  // namespace

std::string ValueText(const json::value& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return std::string(value.get_string());
  if (value.is_double()) {
    char room[32];
    const auto end = std::to_chars(room, room + sizeof(room), value.get_double());
    return std::string(room, end.ptr);
  }
  return ToText(value);
}

Result<std::string> CellOf(RecordFormat format, const std::string& text) {
  std::string cell;
  const char delimiter = format == RecordFormat::kTsv ? '\t' : ',';
  const std::string wrong = data::AppendCsvCell(text, delimiter, &cell);
  if (!wrong.empty())
    return InvalidArgument("the value '" + text.substr(0, 40) + "': " + wrong +
                           "; save the table as json");
  return cell;
}

std::string HeaderLine(RecordFormat format, const std::vector<std::string>& names) {
  if (format != RecordFormat::kCsv && format != RecordFormat::kTsv) return "";
  std::string line;
  for (const std::string& name : names) {
    if (!line.empty()) line += format == RecordFormat::kCsv ? ',' : '\t';
    line += CellOf(format, name).value_or(name);
  }
  return line + "\n";
}

Status AppendRow(RecordFormat format, const std::vector<data::SchemaColumn>& columns,
                 const std::vector<json::value>& row, std::string* out) {
  if (format == RecordFormat::kJsonLines) {
    json::object object;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (!row[i].is_null()) object[columns[i].name] = TypedValue(row[i], columns[i].type);
    }
    *out += ToText(object) + "\n";
    return Status::Ok();
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) *out += format == RecordFormat::kTsv ? '\t' : ',';
    TRY_ASSIGN(const std::string cell, CellOf(format, ValueText(row[i])));
    // An empty line would be no record.
    const bool blank = cell.empty() && columns.size() == 1 && format == RecordFormat::kCsv;
    *out += blank ? "\"\"" : cell;
  }
  *out += '\n';
  return Status::Ok();
}

}  // namespace shoal::sql
