// Conditions of grants from any text: an error with its place, or one that can be evaluated, and
// whose negation accepts none of the rows that it accepts.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "data/catalog/predicate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal::data;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<TypedColumn> columns = {{"a", ColumnType::kInteger},
                                            {"b", ColumnType::kFloat},
                                            {"c", ColumnType::kText},
                                            {"d", ColumnType::kBool},
                                            {"e f", ColumnType::kNested}};
  const auto parsed = Predicate::Parse(text, columns);
  if (!parsed.ok()) {
    // The message tells where, or that it is too long.
    const std::string message = parsed.status().message();
    if (!message.starts_with("column ") && !message.starts_with("got a condition of "))
      std::abort();
    return 0;
  }
  const auto negated = Predicate::Parse("not (" + std::string(text) + ")", columns,
                                        {kMaxPredicateText + 16, kMaxPredicateNodes + 16});
  const std::vector<Cell> values = {Cell::Null(),         Cell::Of(true),
                                    Cell::Of(int64_t{0}), Cell::Of(INT64_MIN),
                                    Cell::Of(0.5),        Cell::Of(std::string_view("x"))};
  std::vector<Cell> row(columns.size());
  for (size_t i = 0; i < 36; ++i) {
    for (size_t column = 0; column < row.size(); ++column)
      row[column] = values[(i / (column % 2 == 0 ? 1 : 6) + column) % values.size()];
    const bool accepted = parsed->Accepts(row);
    // A condition of the deepest allowed nesting cannot be nested once more.
    if (negated.ok() && accepted && negated->Accepts(row)) std::abort();
    if (accepted != parsed->Accepts(row)) std::abort();
  }
  return 0;
}
