#include "data/gate/table_filter.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "data/examples/csv.h"
#include "data/gate/line_writer.h"

namespace shoal::data {
namespace {

void AppendCell(std::string_view cell, char delimiter, std::string* line) {
  const bool blank = !cell.empty() && (cell.front() == ' ' || cell.back() == ' ' ||
                                       cell.front() == '\t' || cell.back() == '\t');
  const bool plain = !blank && cell.find_first_of("\"\r\n") == std::string_view::npos &&
                     cell.find(delimiter) == std::string_view::npos;
  if (plain) {
    line->append(cell);
    return;
  }
  line->push_back('"');
  for (const char c : cell) {
    if (c == '"') line->push_back('"');
    // A line end within a cell would end the record for all readers of lines.
    line->push_back(c == '\n' || c == '\r' ? ' ' : c);
  }
  line->push_back('"');
}

Cell CellOf(const json::value* value, std::string* room) {
  if (value == nullptr || value->is_null()) return Cell::Null();
  if (value->is_bool()) return Cell::Of(value->get_bool());
  if (value->is_int64()) return Cell::Of(value->get_int64());
  if (value->is_uint64()) return Cell::Of(static_cast<double>(value->get_uint64()));
  if (value->is_double()) return Cell::Of(value->get_double());
  if (value->is_string()) return Cell::Of(std::string_view(value->get_string()));
  *room = ToText(*value);
  return Cell::Of(std::string_view(*room));
}

json::value Masked(const Mask& mask, const std::string& key, const json::value& value) {
  if (mask.kind == MaskKind::kNone) return value;
  if (mask.kind == MaskKind::kNull || value.is_null()) return nullptr;
  const std::string text = value.is_string() ? std::string(value.get_string()) : ToText(value);
  return json::value(MaskText(mask, key, text));
}

}  // namespace

// Where the cells of a line of the file belong.
struct TableFilter::Layout {
  static constexpr size_t kNowhere = SIZE_MAX;
  std::vector<size_t> column_of;  // by cell of the file: the table's column
  bool whole = false;             // lines are given as they are
};

Result<TableFilter> TableFilter::Make(const GateTable* table, std::string hash_key) {
  TableFilter filter(table, std::move(hash_key));
  if (!table->rows.empty()) {
    TRY_ASSIGN(filter.rows_, Predicate::Parse(table->rows, table->columns, kJoinedLimits));
  }
  return filter;
}

Result<TableFilter::Layout> TableFilter::LayoutOf(const std::string& file,
                                                  const std::vector<std::string>& header) const {
  Layout layout;
  layout.column_of.assign(header.size(), Layout::kNowhere);
  const auto need = [&](size_t column) -> Status {
    const std::string& name = table_->columns[column].name;
    const auto found = std::ranges::find(header, name);
    if (found == header.end())
      return InvalidArgument(file + ": got no column " + EscapedUtf8(name) + ", which " +
                             table_->table + " has; its files must have all columns of the table");
    if (std::ranges::find(found + 1, header.end(), name) != header.end())
      return InvalidArgument(file + ": two columns are called " + EscapedUtf8(name));
    layout.column_of[static_cast<size_t>(found - header.begin())] = column;
    return Status::Ok();
  };
  for (const size_t column : table_->given) TRY(need(column));
  for (const size_t column : rows_.columns()) TRY(need(column));
  layout.whole = header.size() == table_->given.size() &&
                 std::ranges::is_sorted(layout.column_of) &&
                 std::ranges::find(layout.column_of, Layout::kNowhere) == layout.column_of.end() &&
                 std::ranges::all_of(table_->masks, [](const Mask& m) { return m == Mask(); });
  return layout;
}

Result<FilterCounts> TableFilter::RunTable(RecordReader* reader, const std::string& file,
                                           const WriteBytes& write) const {
  const char delimiter = table_->format == RecordFormat::kTsv ? '\t' : ',';
  FilterCounts counts;
  LineWriter lines(&write);
  Layout layout;
  std::vector<std::string> texts(table_->columns.size());
  std::vector<Cell> row(table_->columns.size());
  Record record;
  std::string room;
  std::string_view cell;
  for (bool first = true;; first = false) {
    TRY_ASSIGN(const bool more, reader->Next(&record));
    if (first && !reader->columns().empty()) {
      TRY_ASSIGN(layout, LayoutOf(file, reader->columns()));
      for (size_t i = 0; i < table_->given.size(); ++i) {
        if (i > 0) lines.text()->push_back(delimiter);
        AppendCell(table_->columns[table_->given[i]].name, delimiter, lines.text());
      }
      lines.text()->push_back('\n');
    }
    if (!more) break;
    ++counts.read;
    const char* at = record.bytes.data();
    const char* const end = at + record.bytes.size();
    for (const size_t column : layout.column_of) {
      if (at > end || !NextCell(&at, end, delimiter, &room, &cell)) break;
      if (column != Layout::kNowhere) texts[column].assign(cell);
    }
    for (const size_t column : rows_.columns())
      row[column] = ParseCell(texts[column], table_->columns[column].type);
    if (!rows_.Accepts(row)) continue;
    ++counts.given;
    if (layout.whole) {
      lines.text()->append(record.bytes);
    } else {
      for (size_t i = 0; i < table_->given.size(); ++i) {
        if (i > 0) lines.text()->push_back(delimiter);
        const std::string& text = texts[table_->given[i]];
        const Mask& mask = table_->masks[i];
        const bool hidden = mask.kind != MaskKind::kNone && !text.empty();
        AppendCell(hidden ? MaskText(mask, hash_key_, text) : text, delimiter, lines.text());
      }
    }
    lines.text()->push_back('\n');
    TRY(lines.Next());
  }
  TRY(lines.Flush());
  return counts;
}

Result<FilterCounts> TableFilter::RunJson(RecordReader* reader, const WriteBytes& write) const {
  FilterCounts counts;
  LineWriter lines(&write);
  std::vector<std::string> rooms(table_->columns.size());
  std::vector<Cell> row(table_->columns.size());
  Record record;
  for (;;) {
    TRY_ASSIGN(const bool more, reader->Next(&record));
    if (!more) break;
    ++counts.read;
    TRY_ASSIGN(const json::object object, ParseJsonObject(record.bytes));
    for (const size_t column : rows_.columns())
      row[column] = CellOf(object.if_contains(table_->columns[column].name), &rooms[column]);
    if (!rows_.Accepts(row)) continue;
    ++counts.given;
    json::object given;
    for (size_t i = 0; i < table_->given.size(); ++i) {
      const std::string& name = table_->columns[table_->given[i]].name;
      if (const json::value* const value = object.if_contains(name); value != nullptr)
        given[name] = Masked(table_->masks[i], hash_key_, *value);
    }
    lines.text()->append(ToText(given));
    lines.text()->push_back('\n');
    TRY(lines.Next());
  }
  TRY(lines.Flush());
  return counts;
}

RecordFormat FilteredFormat(RecordFormat format) {
  return format == RecordFormat::kParquet ? RecordFormat::kJsonLines : format;
}

Result<FilterCounts> TableFilter::Run(const Corpus& corpus, const WriteBytes& write) const {
  if (table_->format == RecordFormat::kParquet) return RunParquet(corpus.files().front(), write);
  RecordReader reader(corpus, table_->format);
  if (table_->format == RecordFormat::kJsonLines) return RunJson(&reader, write);
  return RunTable(&reader, corpus.files().front().path.string(), write);
}

}  // namespace shoal::data
