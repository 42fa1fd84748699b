#include "data/examples/record_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/examples/csv.h"

namespace shoal::data {
namespace {

using Kind = TableCell::Kind;
constexpr size_t kKeptNames = 10;

bool IsText(const TableCell& cell) { return cell.kind == Kind::kText; }

bool IsMissing(const TableCell& cell) { return cell.kind == Kind::kMissing; }

}  // namespace

ColumnFinder::ColumnFinder(std::string_view categorical) {
  while (!categorical.empty()) {
    const size_t comma = std::min(categorical.find(','), categorical.size());
    std::string_view name = categorical.substr(0, comma);
    categorical.remove_prefix(std::min(comma + 1, categorical.size()));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    categorical_.emplace(name);
  }
}

ColumnFinder::Field* ColumnFinder::Find(std::string_view name) {
  const auto [found, fresh] = places_.try_emplace(std::string(name), fields_.size());
  if (fresh) fields_.push_back({.name = found->first});
  return &fields_[found->second];
}

void ColumnFinder::Value(std::string_view name, const TableCell& cell) {
  Field* const field = Find(name);
  field->texts = field->texts || IsText(cell);
}

void ColumnFinder::List(std::string_view name, std::span<const TableCell> values) {
  Field* const field = Find(name);
  field->texts = field->texts || std::any_of(values.begin(), values.end(), IsText);
  field->numbers = std::max(field->numbers, values.size());
}

void ColumnFinder::LeftOut(std::string_view name) {
  if (left_out_.size() < kKeptNames) left_out_.emplace(name);
}

std::vector<std::string> ColumnFinder::names() const {
  std::vector<std::string> names;
  for (const Field& field : fields_) {
    if (field.texts || field.numbers == 1 || categorical_.contains(field.name)) {
      names.push_back(field.name);
      continue;
    }
    for (size_t i = 0; i < field.numbers && names.size() <= kMaxCsvColumns; ++i)
      names.push_back(fmt::format("{}.{}", field.name, i));
  }
  return names;
}

RowAssembler::RowAssembler(const CsvColumns& columns, RowSink* sink)
    : columns_(columns), sink_(*sink), cells_(columns.columns.size()) {
  for (size_t i = 0; i < columns.schema.names.size(); ++i)
    places_.try_emplace(columns.schema.names[i], i);
}

void RowAssembler::Begin() {
  std::fill(cells_.begin(), cells_.end(), TableCell());
  entries_.clear();
  fault_ = {};
  next_ = 0;
}

// CsvColumns::kNone if there is none.
size_t RowAssembler::Find(std::string_view name) {
  if (next_ < cells_.size() && columns_.schema.names[next_] == name) return next_++;
  const auto found = places_.find(name);
  if (found == places_.end()) return CsvColumns::kNone;
  next_ = found->second + 1;
  return found->second;
}

void RowAssembler::NoteUnknown(std::string_view name) {
  if (unknown_.size() < kKeptNames) unknown_.emplace(name);
}

// Of a field that comes twice the last value counts.
void RowAssembler::Value(std::string_view name, const TableCell& cell) {
  const size_t column = Find(name);
  if (column != CsvColumns::kNone) {
    cells_[column] = cell;
  } else if (!IsMissing(cell)) {
    NoteUnknown(name);
  }
}

void RowAssembler::List(std::string_view name, std::span<const TableCell> values) {
  const size_t column = Find(name);
  if (column != CsvColumns::kNone) {
    if (values.empty()) return;
    const bool names = std::any_of(values.begin(), values.end(), IsText) ||
                       columns_.columns[column].categorical || values.size() > 1;
    if (values.size() == 1 && !names) {
      cells_[column] = values.front();
      return;
    }
    if (!columns_.columns[column].categorical &&
        std::none_of(values.begin(), values.end(), IsText)) {
      if (!fault_.any()) {
        fault_ = {column, fmt::format("{} numbers in the list {}", values.size(), name),
                  "one, as in the first records; for numbers that are names of classes list the "
                  "column in categorical"};
      }
      return;
    }
    cells_[column] = {.kind = Kind::kList};
    std::erase_if(entries_, [&](const ListEntry& entry) { return entry.column == column; });
    for (const TableCell& value : values) entries_.push_back({column, value});
    return;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    element_ = name;
    element_ += '.';
    element_ += fmt::format_int(i).c_str();
    const size_t place = Find(element_);
    if (place != CsvColumns::kNone) {
      cells_[place] = values[i];
    } else if (i == 0) {
      return NoteUnknown(name);
    } else if (!fault_.any()) {
      fault_ = {CsvColumns::kNone, fmt::format("{} values in the list {}", values.size(), name),
                fmt::format("at most {}, as in the first records", i)};
    }
  }
}

RowFault RowAssembler::End() {
  RowFault fault = fault_.any() ? std::move(fault_) : sink_.Take({cells_, entries_});
  if (!fault.any()) return fault;
  const bool nothing = fault.got.empty();
  if (fault.column != RowFault::kNone)
    fault.got += fmt::format(" in {}", columns_.schema.names[fault.column]);
  fault.got = nothing ? "no value" + fault.got : "'" + fault.got + "'";
  return fault;
}

}  // namespace shoal::data
