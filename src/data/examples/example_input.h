// Makes examples of rows that come one by one, in requests and not in files: the same sinks and
// parsers as for files, so equal rows give equal examples. Used by src/serving.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/examples/examples.h"
#include "data/formats/fields.h"

namespace shoal::data {

// Not thread-safe.
class ExampleInput {
 public:
  // Examples are appended to `set`. Both outlive it; options.csv is not null for tables.
  ExampleInput(const ExampleOptions& options, ExampleSet* set);
  ~ExampleInput();
  ExampleInput(const ExampleInput&) = delete;
  ExampleInput& operator=(const ExampleInput&) = delete;

  // Of tables: a JSON object with a field for each column; columns that it lacks are missing cells.
  // InvalidArgument says what was got and expected.
  Status AddObject(std::string_view json);
  // Of tables: the same from cells, between Begin and End. Texts must live until End.
  void Begin();
  void Cell(std::string_view column, const TableCell& cell);
  Status End();
  // Of libsvm and libffm: a line with or without its label, which is not read. InvalidArgument.
  Status AddLine(std::string_view line);

  // Names that are no columns of the table, the first ten, of all rows so far.
  const std::set<std::string>& unknown() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace shoal::data
