#include "data/datasets/row_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"
#include "data/formats/cell_number.h"
#include "data/formats/json_text.h"
#include "data/formats/tf_example.h"
#include "data/formats/tfrecord.h"

namespace shoal::data {
namespace {

constexpr size_t kShownBytes = 40;

bool IsList(BatchType type) { return type == BatchType::kNumbers || type == BatchType::kTexts; }

Status Lacks(RecordFormat format, const BatchColumn& column, const char* what) {
  return InvalidArgument(
      fmt::format("column {}: {}, which {} has not; leave it out by --columns, or convert to jsonl",
                  EscapedUtf8(column.name), what, NameOf(format)));
}

class JsonWriter final : public RowWriter {
 public:
  void BeginRow() override { row_.Begin(); }
  std::string EndRow() override {
    text_.append(row_.End());
    text_.push_back('\n');
    return "";
  }
  void Value(std::string_view name, const TableCell& cell) override { row_.Value(name, cell); }
  void List(std::string_view name, std::span<const TableCell> values) override {
    row_.List(name, values);
  }
  void LeftOut(std::string_view /*name*/) override {}

 private:
  JsonRow row_;
};

class TableWriter final : public RowWriter {
 public:
  TableWriter(std::vector<BatchColumn> columns, char delimiter)
      : columns_(std::move(columns)), delimiter_(delimiter), cells_(columns_.size()) {
    for (size_t i = 0; i < columns_.size(); ++i) places_[columns_[i].name] = i;
  }

  std::string Head() const override {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line.push_back(delimiter_);
      AppendCsvCell(EscapedUtf8(columns_[i].name), delimiter_, &line);
    }
    return line + "\n";
  }
  void BeginRow() override {
    for (std::string& cell : cells_) cell.clear();
    fault_.clear();
  }
  std::string EndRow() override {
    if (!fault_.empty()) return fault_;
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (i > 0) text_.push_back(delimiter_);
      text_.append(cells_[i]);
    }
    text_.push_back('\n');
    return "";
  }
  void Value(std::string_view name, const TableCell& cell) override {
    const auto found = places_.find(name);
    if (found == places_.end()) return;
    std::string& to = cells_[found->second];
    to.clear();
    const std::string wrong = AppendCsvCell(TextOf(cell, &room_), delimiter_, &to);
    if (!wrong.empty()) fault_ = "column " + EscapedUtf8(name) + ": " + wrong;
  }
  void List(std::string_view name, std::span<const TableCell> values) override {
    if (values.size() == 1) return Value(name, values.front());
    if (places_.contains(name) && !values.empty())
      fault_ = "column " + EscapedUtf8(name) + ": got a list, expected one value";
  }
  void LeftOut(std::string_view /*name*/) override {}

 private:
  const std::vector<BatchColumn> columns_;
  const char delimiter_;
  std::unordered_map<std::string_view, size_t> places_;
  std::vector<std::string> cells_;
  std::string room_;
  std::string fault_;
};

class TfExampleWriter final : public RowWriter {
 public:
  explicit TfExampleWriter(std::vector<BatchColumn> columns) : columns_(std::move(columns)) {
    for (const BatchColumn& column : columns_) places_[column.name] = &column;
  }
  void BeginRow() override {
    example_.clear();
    fault_.clear();
  }
  std::string EndRow() override {
    if (!fault_.empty()) return fault_;
    AppendTfRecord(EncodeTfExample(example_), &text_);
    return "";
  }
  void Value(std::string_view name, const TableCell& cell) override {
    if (cell.kind != TableCell::Kind::kMissing) List(name, std::span(&cell, 1));
  }
  void List(std::string_view name, std::span<const TableCell> values) override {
    const auto found = places_.find(name);
    if (found == places_.end()) return;
    const BatchColumn& column = *found->second;
    TfFeature& feature = example_[std::string(name)];
    const bool number = column.type == BatchType::kNumber || column.type == BatchType::kNumbers ||
                        column.type == BatchType::kBool;
    if (!number) return AddTexts(values, &feature);
    std::vector<int64_t> integers;
    std::vector<float> reals;
    for (const TableCell& cell : values) {
      const auto taken = NumberOf(cell);
      const bool whole = column.whole || column.type == BatchType::kBool;
      if (!taken || (whole && !taken->whole)) return Wrong(column, cell);
      integers.push_back(taken->integer);
      reals.push_back(
          static_cast<float>(taken->whole ? static_cast<double>(taken->integer) : taken->real));
    }
    if (column.whole || column.type == BatchType::kBool) {
      feature = std::move(integers);
    } else {
      feature = std::move(reals);
    }
  }
  void LeftOut(std::string_view /*name*/) override {}

 private:
  void AddTexts(std::span<const TableCell> values, TfFeature* feature) {
    std::vector<std::string> texts;
    for (const TableCell& cell : values) texts.emplace_back(TextOf(cell, &room_));
    *feature = std::move(texts);
  }
  void Wrong(const BatchColumn& column, const TableCell& cell) {
    fault_ = fmt::format("column {}: got {}, expected {}, as in the first records",
                         EscapedUtf8(column.name),
                         EscapedUtf8(TextOf(cell, &room_).substr(0, kShownBytes)),
                         column.whole ? "an integer" : "a number");
  }

  const std::vector<BatchColumn> columns_;
  std::unordered_map<std::string_view, const BatchColumn*> places_;
  TfExample example_;
  std::string room_;
  std::string fault_;
};

// The texts of one column as lines, such as to learn words of.
class TextWriter final : public RowWriter {
 public:
  void BeginRow() override { line_.clear(); }
  std::string EndRow() override {
    text_.append(line_);
    text_.push_back('\n');
    return "";
  }
  void Value(std::string_view /*name*/, const TableCell& cell) override {
    for (const char c : TextOf(cell, &room_)) line_.push_back(c == '\n' || c == '\r' ? ' ' : c);
  }
  void List(std::string_view name, std::span<const TableCell> values) override {
    for (const TableCell& cell : values) {
      Value(name, cell);
      line_.push_back(' ');
    }
  }
  void LeftOut(std::string_view /*name*/) override {}

 private:
  std::string line_;
  std::string room_;
};

class LibsvmWriter final : public RowWriter {
 public:
  void BeginRow() override {
    label_.clear();
    indices_.clear();
    values_.clear();
  }
  std::string EndRow() override {
    if (label_.empty()) return "it has no number `label`";
    if (indices_.size() != values_.size()) return "it has other numbers of indices and values";
    text_.append(label_);
    for (size_t i = 0; i < indices_.size(); ++i)
      text_.append(" ").append(indices_[i]).append(":").append(values_[i]);
    text_.push_back('\n');
    return "";
  }
  void Value(std::string_view name, const TableCell& cell) override {
    if (name == "label" && NumberOf(cell) && cell.kind != TableCell::Kind::kMissing)
      label_ = TextOf(cell, &room_);
    if (name != "label") List(name, std::span(&cell, 1));
  }
  void List(std::string_view name, std::span<const TableCell> values) override {
    std::vector<std::string>* const to =
        name == "indices" ? &indices_ : (name == "values" ? &values_ : nullptr);
    if (to == nullptr) return;
    for (const TableCell& cell : values)
      if (cell.kind != TableCell::Kind::kMissing && NumberOf(cell))
        to->emplace_back(TextOf(cell, &room_));
  }
  void LeftOut(std::string_view /*name*/) override {}

 private:
  std::string label_;
  std::vector<std::string> indices_, values_;
  std::string room_;
};

}  // namespace

std::string AppendCsvCell(std::string_view cell, char delimiter, std::string* line) {
  if (cell.find_first_of("\r\n") != std::string_view::npos)
    return "its text has a line end, which a cell cannot have";
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  const bool plain = cell.find('"') == std::string_view::npos &&
                     cell.find(delimiter) == std::string_view::npos &&
                     (cell.empty() || (!blank(cell.front()) && !blank(cell.back())));
  if (plain) {
    line->append(cell);
    return "";
  }
  line->push_back('"');
  for (const char c : cell) {
    if (c == '"') line->push_back('"');
    line->push_back(c);
  }
  line->push_back('"');
  return "";
}

Result<std::unique_ptr<RowWriter>> RowWriter::Make(RecordFormat format,
                                                   std::vector<BatchColumn> columns) {
  if (format == RecordFormat::kJsonLines)
    return std::unique_ptr<RowWriter>(std::make_unique<JsonWriter>());
  if (format == RecordFormat::kTfRecord)
    return std::unique_ptr<RowWriter>(std::make_unique<TfExampleWriter>(std::move(columns)));
  if (format == RecordFormat::kCsv || format == RecordFormat::kTsv) {
    for (const BatchColumn& column : columns)
      if (IsList(column.type)) return Lacks(format, column, "it has lists");
    const char delimiter = format == RecordFormat::kTsv ? '\t' : ',';
    return std::unique_ptr<RowWriter>(std::make_unique<TableWriter>(std::move(columns), delimiter));
  }
  if (format == RecordFormat::kLibsvm) {
    for (const char* const name : {"label", "indices", "values"}) {
      if (std::ranges::find(columns, name, &BatchColumn::name) == columns.end())
        return InvalidArgument(fmt::format(
            "libsvm is written of records with label, indices and values, and these have no {}",
            name));
    }
    return std::unique_ptr<RowWriter>(std::make_unique<LibsvmWriter>());
  }
  if (format == RecordFormat::kText) {
    if (columns.size() != 1)
      return InvalidArgument(fmt::format(
          "text is written of one column, and these are {}; name it by --columns", columns.size()));
    return std::unique_ptr<RowWriter>(std::make_unique<TextWriter>());
  }
  return InvalidArgument(
      fmt::format("format: {} is not written, expected csv, tsv, jsonl, "
                  "tfrecord, libsvm or text",
                  NameOf(format)));
}

}  // namespace shoal::data
