// Parses lines of CSV into rows.
#include <fmt/format.h>

#include <vector>

#include "data/examples/csv.h"
#include "data/examples/example_parser.h"

namespace shoal::data {
namespace {

class CsvParser final : public ExampleParser {
 public:
  CsvParser(const CsvColumns& columns, RowSink* sink)
      : columns_(columns), sink_(*sink), cells_(columns.columns.size()) {
    for (TableCell& cell : cells_) cell.kind = TableCell::Kind::kParsed;
  }

  bool IsHeader(const char* text, const char* newline, ParseError* fault) override {
    if (columns_.header.empty()) return false;
    if (BareLine({text, static_cast<size_t>(newline - text)}) != columns_.header)
      *fault = {text, "the same columns in every file: " + columns_.header.substr(0, 100)};
    return true;
  }

  ParseError Parse(const char* text, const char* newline) override {
    const char* end = newline;
    while (end > text && IsBlank(end[-1]) && end[-1] != columns_.delimiter) --end;
    if (text == end) return {};
    quoted_.clear();
    size_t column = 0;
    for (const char* at = text; at <= end; ++column) {
      const char* const begin = at;
      std::string_view cell;
      if (!NextCell(&at, end, columns_.delimiter, &room_, &cell))
        return {begin, "a quoted cell that ends before its delimiter, on the same line"};
      if (column >= columns_.columns.size()) return WrongNumber(begin);
      cells_[column].text = cell.data() == room_.data() ? Keep(text, end) : cell;
    }
    if (column != columns_.columns.size()) return WrongNumber(text);
    RowFault fault = sink_.Take({cells_, {}});
    if (!fault.any()) return {};
    std::string got = fault.got.empty() && fault.column < columns_.columns.size()
                          ? "no value in " + columns_.schema.names[fault.column]
                          : "";
    return {BeginOf(fault.column, text, end), std::move(fault.expected), std::move(got)};
  }

 private:
  // The cell in `room_`, kept until the next line. What is kept is never longer than the line.
  std::string_view Keep(const char* text, const char* end) {
    quoted_.reserve(static_cast<size_t>(end - text) + 1);
    const size_t before = quoted_.size();
    quoted_ += room_;
    return std::string_view(quoted_).substr(before);
  }

  const char* BeginOf(size_t column, const char* text, const char* end) {
    const char* at = text;
    std::string_view cell;
    for (size_t i = 0; i < column && at <= end; ++i)
      (void)NextCell(&at, end, columns_.delimiter, &room_, &cell);
    while (at < end && IsBlank(*at)) ++at;
    return at;
  }

  ParseError WrongNumber(const char* at) const {
    return {at, fmt::format("{} columns in every line, as in the first", columns_.columns.size())};
  }

  const CsvColumns& columns_;
  RowSink& sink_;
  std::vector<TableCell> cells_;
  std::string room_;
  std::string quoted_;
};

}  // namespace

std::unique_ptr<ExampleParser> MakeCsvParser(const CsvColumns& columns, RowSink* sink) {
  return std::make_unique<CsvParser>(columns, sink);
}

}  // namespace shoal::data
