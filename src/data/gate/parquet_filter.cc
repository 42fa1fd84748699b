// Rows of Parquet as the job's user may see them, as JSON lines. The bytes of columns that are
// neither given nor in the condition are not read.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "data/formats/json_text.h"
#include "data/gate/table_filter.h"
#include "data/parquet/parquet_rows.h"

namespace shoal::data {
namespace {

constexpr size_t kNotGiven = SIZE_MAX;

// As predicates see it: lists are texts, with which nothing compares.
Cell PredicateCell(const TableCell& cell) {
  switch (cell.kind) {
    case TableCell::Kind::kInteger:
      return Cell::Of(cell.integer);
    case TableCell::Kind::kFloat:
    case TableCell::Kind::kReal:
      return Cell::Of(cell.real);
    case TableCell::Kind::kParsed:
    case TableCell::Kind::kText:
      return cell.boolean ? Cell::Of(cell.text == "true") : Cell::Of(cell.text);
    case TableCell::Kind::kMissing:
    case TableCell::Kind::kList:
      break;
  }
  return Cell::Null();
}

// A column of the file that is read.
struct FileColumn {
  size_t column = 0;         // of the table
  size_t given = kNotGiven;  // its place among the given ones
};

// The cells of one row: texts of fields for those that are given, and cells for the condition.
class ParquetRow final : public FieldVisitor {
 public:
  ParquetRow(const GateTable& table, std::string_view key, std::vector<FileColumn> columns)
      : table_(table),
        key_(key),
        columns_(std::move(columns)),
        cells_(table.columns.size()),
        fields_(table.given.size()) {
    for (const size_t column : table.given) {
      std::string& name = names_.emplace_back();
      AppendJsonText(table.columns[column].name, &name);
      name += ':';
    }
  }

  void Begin() { next_ = 0; }
  std::span<const Cell> cells() const { return cells_; }

  void Value(std::string_view /*name*/, const TableCell& cell) override {
    const FileColumn& here = columns_[next_++];
    cells_[here.column] = PredicateCell(cell);
    if (here.given == kNotGiven) return;
    std::string& field = fields_[here.given];
    field.clear();
    const Mask& mask = table_.masks[here.given];
    if (mask.kind == MaskKind::kNone || cell.kind == TableCell::Kind::kMissing)
      return AppendJsonCell(cell, false, &field);
    Hide(mask, TextOf(cell, &room_), &field);
  }
  void List(std::string_view /*name*/, std::span<const TableCell> values) override {
    const FileColumn& here = columns_[next_++];
    cells_[here.column] = Cell::Of(std::string_view("[]"));
    if (here.given == kNotGiven) return;
    std::string& field = fields_[here.given];
    field.clear();
    AppendJsonList(values, false, &field);
    const Mask& mask = table_.masks[here.given];
    if (mask.kind == MaskKind::kNone) return;
    room_.swap(field);
    field.clear();
    Hide(mask, room_, &field);
  }
  void LeftOut(std::string_view /*name*/) override {}

  void AppendLine(std::string* to) const {
    to->push_back('{');
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (i > 0) to->push_back(',');
      to->append(names_[i]);
      to->append(fields_[i]);
    }
    to->append("}\n");
  }

 private:
  void Hide(const Mask& mask, std::string_view text, std::string* to) const {
    if (mask.kind == MaskKind::kNull) {
      to->append("null");
    } else {
      AppendJsonText(MaskText(mask, key_, text), to);
    }
  }

  const GateTable& table_;
  const std::string_view key_;
  const std::vector<FileColumn> columns_;
  std::vector<Cell> cells_;
  std::vector<std::string> names_;   // of the given columns, as JSON with ':'
  std::vector<std::string> fields_;  // of the given columns, as JSON
  std::string room_;
  size_t next_ = 0;
};

// Whether the column's name in the file is that of the table. Names of tables are UTF-8.
bool IsCalled(std::string_view column, const std::string& name) {
  return column == name || (!IsUtf8(column) && EscapedUtf8(column) == name);
}

// The file's columns that are read, in its order; each of `needed` once.
Result<std::vector<FileColumn>> ColumnsOf(const GateTable& table, const std::vector<size_t>& needed,
                                          const std::string& path, const ParquetRows& rows) {
  std::vector<FileColumn> columns;
  std::vector<bool> found(table.columns.size());
  for (const size_t index : rows.columns_read()) {
    const ParquetColumn& column = rows.footer().columns[index];
    const size_t of = *std::ranges::find_if(
        needed, [&](size_t one) { return IsCalled(column.name, table.columns[one].name); });
    if (found[of])
      return InvalidArgument(path + ": two columns are called " +
                             EscapedUtf8(table.columns[of].name));
    found[of] = true;
    const auto given = std::ranges::find(table.given, of);
    columns.push_back({of, given == table.given.end()
                               ? kNotGiven
                               : static_cast<size_t>(given - table.given.begin())});
  }
  for (const size_t column : needed)
    if (!found[column])
      return InvalidArgument(path + ": got no column " + EscapedUtf8(table.columns[column].name) +
                             ", which " + table.table +
                             " has; its files must have all columns of the table");
  return columns;
}

template <typename T>
std::optional<T> ValueOf(const std::string& bytes) {
  T value{};
  if (bytes.size() != sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// A bound as a cell; null where its order is not that of predicates. It lives as long as `bytes`.
Cell BoundOf(const ParquetColumn& column, const std::string& bytes) {
  if (column.meaning != ParquetMeaning::kPlain) return Cell::Null();
  switch (column.type) {
    case ParquetType::kInt32:
      if (const auto value = ValueOf<int32_t>(bytes)) return Cell::Of(int64_t{*value});
      break;
    case ParquetType::kInt64:
      if (const auto value = ValueOf<int64_t>(bytes)) return Cell::Of(*value);
      break;
    case ParquetType::kFloat:
      if (const auto value = ValueOf<float>(bytes)) return Cell::Of(double{*value});
      break;
    case ParquetType::kDouble:
      if (const auto value = ValueOf<double>(bytes)) return Cell::Of(*value);
      break;
    case ParquetType::kBytes:
      return Cell::Of(std::string_view(bytes));
    default:
      break;
  }
  return Cell::Null();
}

// What the footer knows of the values of a row group.
std::vector<CellRange> RangesOf(const ParquetRows& rows, const std::vector<FileColumn>& columns,
                                size_t group, size_t table_columns) {
  std::vector<CellRange> ranges(table_columns);
  const std::vector<size_t> read = rows.columns_read();
  for (size_t i = 0; i < read.size(); ++i) {
    const ParquetColumn& column = rows.footer().columns[read[i]];
    const ParquetBounds* const bounds = rows.footer().groups[group].chunks[read[i]].bounds.get();
    if (bounds == nullptr || column.repetitions > 0) continue;
    CellRange& range = ranges[columns[i].column];
    range.least = BoundOf(column, bounds->least);
    range.most = BoundOf(column, bounds->most);
    range.known = range.least.kind != CellKind::kNull && range.most.kind != CellKind::kNull;
    range.may_be_null = column.definitions > 0 && bounds->nulls != 0;
  }
  return ranges;
}

}  // namespace

Result<FilterCounts> TableFilter::RunParquet(const SourceFile& file,
                                             const WriteBytes& write) const {
  std::vector<size_t> needed = table_->given;
  needed.insert(needed.end(), rows_.columns().begin(), rows_.columns().end());
  const auto wants = [&](std::string_view name) {
    return std::ranges::any_of(
        needed, [&](size_t one) { return IsCalled(name, table_->columns[one].name); });
  };
  TRY_ASSIGN(const auto rows, ParquetRows::Open(file, wants, !rows_.empty()));
  TRY_ASSIGN(const std::vector<FileColumn> columns,
             ColumnsOf(*table_, needed, file.path.string(), *rows));
  ParquetRow row(*table_, hash_key_, columns);
  LineWriter lines(&write);
  FilterCounts counts;
  for (size_t group = 0; group < rows->footer().groups.size(); ++group) {
    const std::vector<CellRange> ranges = RangesOf(*rows, columns, group, table_->columns.size());
    if (!rows_.MayAccept(ranges)) {
      counts.read += rows->footer().groups[group].rows;
      continue;
    }
    TRY(rows->Enter(group));
    for (;;) {
      row.Begin();
      TRY_ASSIGN(const bool more, rows->Next(&row));
      if (!more) break;
      ++counts.read;
      if (!rows_.Accepts(row.cells())) continue;
      ++counts.given;
      row.AppendLine(lines.text());
      TRY(lines.Next());
    }
  }
  TRY(lines.Flush());
  return counts;
}

}  // namespace shoal::data
