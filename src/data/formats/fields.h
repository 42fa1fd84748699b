// The fields of a record that names them, one after another: of JSON, tf.train.Example or Parquet.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace shoal::data {

// Valid until the next row.
struct TableCell {
  enum class Kind : uint8_t {
    kMissing,
    kParsed,   // `text`, which is a number if it reads as one: a cell of CSV, a number of JSON
    kText,     // `text`, even if it reads as a number; "true" or "false" of a boolean
    kInteger,  // `integer`
    kFloat,    // `real`, which is a 32-bit number
    kReal,     // `real`
    kList,     // the entries of the row that have this column
  };
  Kind kind = Kind::kMissing;
  std::string_view text = {};
  double real = 0;
  int64_t integer = 0;
  bool boolean = false;  // of kText: it is a boolean
};

// The text of a cell, numbers in their shortest form; empty for a missing cell and a list. May
// point into `room`.
std::string_view TextOf(const TableCell& cell, std::string* room);

// Gets what a record holds. Names and cells are valid until the call returns, but texts of cells
// until the next record.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void Value(std::string_view name, const TableCell& cell) = 0;
  // A list of values; empty ones too.
  virtual void List(std::string_view name, std::span<const TableCell> values) = 0;
  // A list of lists or objects, which no column takes.
  virtual void LeftOut(std::string_view name) = 0;
};

// Reads records. Not thread-safe.
class FieldReader {
 public:
  virtual ~FieldReader() = default;
  // Calls the visitor for each field: those of nested objects are called "OUTER.INNER". What is
  // wrong with a record that is malformed, else empty; the visitor may have been called before.
  virtual std::string Read(std::string_view record, FieldVisitor* visitor) = 0;
};
std::unique_ptr<FieldReader> MakeJsonFields();
std::unique_ptr<FieldReader> MakeTfExampleFields();

}  // namespace shoal::data
