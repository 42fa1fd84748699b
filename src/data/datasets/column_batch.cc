#include "data/datasets/column_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "data/formats/cell_number.h"
#include "data/formats/csv_cells.h"

namespace shoal::data {
namespace {

using Kind = TableCell::Kind;

constexpr uint64_t kHeadRecords = 1000;
constexpr uint64_t kHeadBytes = 4 << 20;
constexpr uint8_t kMissingFlag = 2;
constexpr size_t kNoColumn = SIZE_MAX;
constexpr size_t kShownBytes = 40;
constexpr std::array<std::string_view, 5> kTypes = {"number", "text", "bool", "numbers", "texts"};

// Finds columns and their types.
class TypeFinder final : public RowTarget {
 public:
  explicit TypeFinder(bool bytes) : bytes_(bytes) {}
  void BeginRow() override {}
  std::string EndRow() override { return ""; }
  void Value(std::string_view name, const TableCell& cell) override { Add(name)->Take(cell); }
  void List(std::string_view name, std::span<const TableCell> values) override {
    Seen* const seen = Add(name);
    seen->list = true;
    for (const TableCell& cell : values) seen->Take(cell);
  }
  void LeftOut(std::string_view /*name*/) override {}

  std::vector<BatchColumn> Finish(const std::vector<std::string>& texts) const {
    std::vector<BatchColumn> columns;
    for (const Seen& seen : seen_) {
      const bool forced = std::ranges::find(texts, seen.name) != texts.end();
      const bool numbers = !forced && !seen.text && (seen.number || !seen.boolean);
      BatchType type = BatchType::kText;
      if (seen.list) {
        type = numbers ? BatchType::kNumbers : BatchType::kTexts;
      } else if (numbers) {
        type = BatchType::kNumber;
      } else if (!forced && !seen.text) {
        type = BatchType::kBool;
      }
      columns.push_back({seen.name, type, numbers && !seen.fraction, bytes_});
    }
    return columns;
  }
  size_t columns() const { return seen_.size(); }

 private:
  struct Seen {
    std::string name;
    bool text = false, number = false, boolean = false, list = false, fraction = false;
    void Take(const TableCell& cell) {
      if (cell.kind == Kind::kMissing) return;
      if (cell.boolean) {
        boolean = true;
      } else if (const auto taken = NumberOf(cell)) {
        number = true;
        fraction = fraction || !taken->whole;
      } else {
        text = true;
      }
    }
  };
  Seen* Add(std::string_view name) {
    const auto [found, fresh] = places_.try_emplace(std::string(name), seen_.size());
    if (fresh) seen_.push_back({.name = std::string(name)});
    return &seen_[found->second];
  }
  const bool bytes_;
  std::vector<Seen> seen_;
  std::unordered_map<std::string, size_t> places_;
};

template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

void PutSize(uint32_t size, std::string* to) {
  to->append(reinterpret_cast<const char*>(&size), sizeof size);
}

}  // namespace

std::string_view NameOf(BatchType type) { return kTypes[static_cast<size_t>(type)]; }

Result<std::vector<BatchColumn>> FindBatchColumns(
    const Corpus& corpus, RecordFormat format, const std::function<bool(std::string_view)>& wants,
    const std::vector<std::string>& texts) {
  TypeFinder finder(format == RecordFormat::kTfRecord);
  RowOptions options;
  options.max_bad = 1;
  options.wants = wants;
  TRY_ASSIGN(const auto rows, RowReader::Open(corpus, format, std::move(options)));
  for (uint64_t i = 0; i < kHeadRecords && rows->records().bytes_read() < kHeadBytes; ++i) {
    TRY_ASSIGN(const bool more, rows->NextRow(&finder));
    if (!more || finder.columns() > kMaxCsvColumns) break;
  }
  if (finder.columns() > kMaxCsvColumns)
    return ResourceExhausted(fmt::format("the records have more than {} columns", kMaxCsvColumns));
  std::vector<BatchColumn> columns = finder.Finish(texts);
  if (!columns.empty()) return columns;
  const auto& bad = rows->records().first_bad();
  return InvalidArgument(corpus.files().front().path.string() +
                         ": the first records have no column that is wanted" +
                         (bad.empty() ? "" : "; malformed: " + bad.front().text()));
}

ColumnBatch::ColumnBatch(std::vector<BatchColumn> columns)
    : columns_(std::move(columns)), values_(columns_.size()) {
  for (size_t i = 0; i < columns_.size(); ++i) places_[columns_[i].name] = i;
}

// Takes back what a row that did not end has added.
void ColumnBatch::Truncate(BatchType type, Column* column) const {
  if (type == BatchType::kBool) {
    column->flags.resize(rows_);
    return;
  }
  size_t elements = rows_;
  if (type == BatchType::kNumbers || type == BatchType::kTexts) {
    column->elements.resize(rows_);
    elements = rows_ == 0 ? 0 : column->elements.back();
  }
  if (type == BatchType::kNumber || type == BatchType::kNumbers) {
    column->numbers.integers.resize(elements);
    column->numbers.reals.resize(elements);
    return;
  }
  column->flags.resize(elements);
  column->ends.resize(elements);
  column->texts.resize(elements == 0 ? 0 : column->ends.back());
}

void ColumnBatch::BeginRow() {
  next_ = 0;
  fault_.clear();
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (values_[i].given) Truncate(columns_[i].type, &values_[i]);
    values_[i].given = false;
  }
}

std::string ColumnBatch::EndRow() {
  if (!fault_.empty()) return fault_;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!values_[i].given) AddMissing(i);
    values_[i].given = false;
  }
  ++rows_;
  return "";
}

size_t ColumnBatch::Find(std::string_view name) {
  if (next_ < columns_.size() && columns_[next_].name == name) return next_++;
  const auto found = places_.find(name);
  if (found == places_.end()) return kNoColumn;
  next_ = found->second + 1;
  return found->second;
}

void ColumnBatch::Wrong(size_t column, const TableCell& cell) {
  if (!fault_.empty()) return;
  const std::string_view text = cell.kind == Kind::kList ? "a list" : TextOf(cell, &room_);
  fault_ = fmt::format("column {}: got {}, expected {}", EscapedUtf8(columns_[column].name),
                       EscapedUtf8(text.substr(0, kShownBytes)),
                       columns_[column].type == BatchType::kBool ? "true or false" : "a number");
}

void ColumnBatch::AddNumber(const TableCell& cell, size_t column) {
  Numbers& numbers = values_[column].numbers;
  const auto number = NumberOf(cell);
  if (!number) Wrong(column, cell);
  // A fraction is marked by an integer that differs.
  const CellNumber taken = number.value_or(CellNumber{});
  numbers.integers.push_back(taken.whole ? taken.integer : std::numeric_limits<int64_t>::min());
  numbers.reals.push_back(taken.whole ? static_cast<double>(taken.integer) : taken.real);
}

void ColumnBatch::AddText(const TableCell& cell, Column* column) {
  const std::string_view text = TextOf(cell, &room_);
  column->texts.append(text);
  column->ends.push_back(column->texts.size());
  column->flags.push_back(cell.kind == Kind::kMissing ? kMissingFlag : 0);
  bytes_ += text.size();
}

void ColumnBatch::AddBool(const TableCell& cell, size_t column) {
  uint8_t flag = kMissingFlag;
  if (cell.boolean) {
    flag = cell.text == "true" ? 1 : 0;
  } else if (cell.kind != Kind::kMissing) {
    Wrong(column, cell);
  }
  values_[column].flags.push_back(flag);
}

void ColumnBatch::AddMissing(size_t column) {
  Column& values = values_[column];
  const BatchType type = columns_[column].type;
  if (type == BatchType::kNumber) {
    AddNumber({}, column);
  } else if (type == BatchType::kBool) {
    AddBool({}, column);
  } else if (type == BatchType::kText) {
    AddText({}, &values);
  } else {
    values.elements.push_back(values.elements.empty() ? 0 : values.elements.back());
  }
}

void ColumnBatch::Value(std::string_view name, const TableCell& cell) {
  const size_t column = Find(name);
  if (column == kNoColumn || values_[column].given) return;
  const BatchType type = columns_[column].type;
  if (type == BatchType::kNumbers || type == BatchType::kTexts)
    return List(name, std::span(&cell, cell.kind == Kind::kMissing ? 0 : 1));
  values_[column].given = true;
  if (type == BatchType::kNumber) {
    AddNumber(cell, column);
  } else if (type == BatchType::kBool) {
    AddBool(cell, column);
  } else {
    AddText(cell, &values_[column]);
  }
}

void ColumnBatch::List(std::string_view name, std::span<const TableCell> values) {
  const size_t column = Find(name);
  if (column == kNoColumn || values_[column].given) return;
  Column& to = values_[column];
  const BatchType type = columns_[column].type;
  if (type != BatchType::kNumbers && type != BatchType::kTexts) {
    to.given = true;
    AddMissing(column);
    Wrong(column, {.kind = Kind::kList});
    return;
  }
  to.given = true;
  to.elements.push_back((to.elements.empty() ? 0 : to.elements.back()) + values.size());
  for (const TableCell& cell : values) {
    if (type == BatchType::kNumbers) {
      AddNumber(cell, column);
    } else {
      AddText(cell, &to);
    }
  }
  bytes_ += values.size() * sizeof(double);
}

void ColumnBatch::TakeFrame(std::string_view position, std::string* to) {
  BeginRow();
  json::array heads;
  std::string body;
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = values_[i];
    const BatchType type = columns_[i].type;
    json::array sizes;
    const auto put = [&](std::string_view bytes) {
      sizes.push_back(bytes.size());
      body.append(bytes);
    };
    std::string_view stored = "flags";
    if (type == BatchType::kNumber || type == BatchType::kNumbers) {
      const Numbers& numbers = column.numbers;
      bool whole = true;
      for (size_t k = 0; whole && k < numbers.reals.size(); ++k)
        whole = numbers.reals[k] == static_cast<double>(numbers.integers[k]);
      stored = whole ? "int64" : "float64";
      put(whole ? BytesOf(numbers.integers) : BytesOf(numbers.reals));
    } else {
      put(BytesOf(column.flags));
    }
    if (type == BatchType::kText || type == BatchType::kTexts) {
      stored = "utf8";
      put(BytesOf(column.ends));
      put(column.texts);
    }
    if (type == BatchType::kNumbers || type == BatchType::kTexts) put(BytesOf(column.elements));
    heads.push_back(json::object{{"name", EscapedUtf8(columns_[i].name)},
                                 {"type", NameOf(type)},
                                 {"stored", stored},
                                 {"bytes", columns_[i].bytes},
                                 {"sizes", std::move(sizes)}});
    column = {};
  }
  const std::string head = ToText(json::object{
      {"rows", rows_}, {"position", std::string(position)}, {"columns", std::move(heads)}});
  PutSize(static_cast<uint32_t>(head.size()), to);
  to->append(head);
  to->append(body);
  rows_ = bytes_ = 0;
}

}  // namespace shoal::data
