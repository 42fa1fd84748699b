// Rows of tables, whatever their format: CSV, JSON lines, TFRecord and Parquet give cells in the
// order of the columns (csv.h), and a sink makes examples of them. So equal tables give equal
// examples. Private to this room, but for what reads labels and names.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/examples/examples.h"
#include "data/formats/fields.h"

namespace shoal::data {

struct ListEntry {
  size_t column = 0;
  TableCell cell;
};

struct TableRow {
  std::span<const TableCell> cells;  // one for each column
  std::span<const ListEntry> entries;
};

// What is wrong with a row.
struct RowFault {
  static constexpr size_t kNone = SIZE_MAX;
  size_t column = kNone;
  std::string got = {};
  std::string expected = {};
  bool any() const { return !expected.empty(); }
};

class RowSink {
 public:
  virtual ~RowSink() = default;
  // Takes the row, or refuses it without having changed anything. Throws std::bad_alloc.
  virtual RowFault Take(const TableRow& row) = 0;
};

// Appends examples to `set`. `options` and `set` must outlive it.
std::unique_ptr<RowSink> MakeExampleSink(const ExampleOptions& options, ExampleSet* set);

// Gives the first rows of a table to `visit` until it returns false, or about `bytes` bytes of text
// have been read. Rows that cannot be read end it. Errors as ExampleReader::Read.
Status VisitRows(const Corpus& corpus, const ExampleOptions& options, uint64_t bytes,
                 const std::function<bool(const TableRow&)>& visit);

}  // namespace shoal::data
