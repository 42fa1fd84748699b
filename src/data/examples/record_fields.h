// What makes a table of records that name their fields: the columns, and rows. Private to this
// room.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "data/examples/table.h"
#include "data/formats/fields.h"

namespace shoal::data {

// The columns that records have, in the order in which they come up: lists of numbers of up to n
// are n columns NAME.0, NAME.1, … if `categorical` does not name them and some record has more than
// one.
class ColumnFinder final : public FieldVisitor {
 public:
  // `categorical` as CsvOptions has it.
  explicit ColumnFinder(std::string_view categorical);
  void Value(std::string_view name, const TableCell& cell) override;
  void List(std::string_view name, std::span<const TableCell> values) override;
  void LeftOut(std::string_view name) override;

  std::vector<std::string> names() const;
  const std::set<std::string>& left_out() const { return left_out_; }

 private:
  struct Field {
    std::string name;
    size_t numbers = 1;  // the longest list of them
    bool texts = false;
  };
  Field* Find(std::string_view name);

  std::set<std::string> categorical_;
  std::vector<Field> fields_;
  std::unordered_map<std::string, size_t> places_;
  std::set<std::string> left_out_;
};

// Makes rows of records. Fields without a column are left out.
class RowAssembler final : public FieldVisitor {
 public:
  // Both must outlive it.
  RowAssembler(const CsvColumns& columns, RowSink* sink);
  // Starts a row of missing cells.
  void Begin();
  void Value(std::string_view name, const TableCell& cell) override;
  void List(std::string_view name, std::span<const TableCell> values) override;
  void LeftOut(std::string_view) override {}
  // Gives the row to the sink.
  RowFault End();
  // Names of fields that are no columns: the first ten.
  const std::set<std::string>& unknown() const { return unknown_; }

 private:
  size_t Find(std::string_view name);
  void NoteUnknown(std::string_view name);

  const CsvColumns& columns_;
  RowSink& sink_;
  std::vector<TableCell> cells_;
  std::vector<ListEntry> entries_;
  RowFault fault_;
  std::unordered_map<std::string_view, size_t> places_;
  size_t next_ = 0;  // where the next field probably belongs
  std::string element_;
  std::set<std::string> unknown_;
};

}  // namespace shoal::data
