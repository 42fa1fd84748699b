// The records of one object of a table as the job's user may see them: projected, masked, and
// without the rows that no grant gives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/catalog/predicate.h"
#include "data/corpus/corpus.h"
#include "data/gate/gate_plan.h"
#include "data/gate/line_writer.h"

namespace shoal::data {

struct FilterCounts {
  uint64_t read = 0;
  uint64_t given = 0;
};

// The format in which a part of a table of that format is given: its own, but JSON lines for
// Parquet.
RecordFormat FilteredFormat(RecordFormat format);

// Immutable; thread-safe. The table must outlive it.
class TableFilter {
 public:
  // InvalidArgument if the condition on rows cannot be parsed.
  static Result<TableFilter> Make(const GateTable* table, std::string hash_key);

  // Reads the one file of `corpus` and writes what is given to `write`, in FilteredFormat: a table
  // with its line of columns, JSON lines with the given fields in the table's order. Of Parquet
  // only the chunks of the given columns, and of those of the condition, are read. Memory: one
  // record, or one page of each of these columns. InvalidArgument for a malformed record, and for a
  // file that lacks a column; its errors contain no values.
  Result<FilterCounts> Run(const Corpus& corpus, const WriteBytes& write) const;

 private:
  TableFilter(const GateTable* table, std::string hash_key)
      : table_(table), hash_key_(std::move(hash_key)) {}
  struct Layout;
  Result<Layout> LayoutOf(const std::string& file, const std::vector<std::string>& header) const;
  Result<FilterCounts> RunTable(RecordReader* reader, const std::string& file,
                                const WriteBytes& write) const;
  Result<FilterCounts> RunJson(RecordReader* reader, const WriteBytes& write) const;
  Result<FilterCounts> RunParquet(const SourceFile& file, const WriteBytes& write) const;

  const GateTable* table_;
  std::string hash_key_;
  Predicate rows_;
};

}  // namespace shoal::data
