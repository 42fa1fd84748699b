// The rows that a grant gives: a condition on the columns of a table, written by people.
//
//     country = 'DE' and (age >= 18 or age is null) and plan in ('pro', 'team')
//
// Comparisons (= != <> < <= > >=) of a column with a literal, in, is null, and, or, not. Columns
// are names, or "quoted" where they are no words. Literals are numbers, 'texts' and true or false.
// As in SQL, a comparison with null, and one of values of different kinds, is neither true nor
// false, and a row counts only if the whole is true. Conditions are bounded in length, depth and
// size.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/catalog/cell.h"
#include "data/datasets/schema.h"

namespace shoal::data {

inline constexpr size_t kMaxPredicateText = 4096;       // of one grant
inline constexpr size_t kMaxJoinedPredicate = 1 << 20;  // of several
inline constexpr size_t kMaxPredicateDepth = 64;
inline constexpr size_t kMaxPredicateNodes = 1024;

struct TypedColumn {
  std::string name;
  ColumnType type = ColumnType::kText;
  bool operator==(const TypedColumn&) const = default;
};

struct PredicateLimits {
  size_t text = kMaxPredicateText;
  size_t nodes = kMaxPredicateNodes;
};
// For a predicate that was joined from those of many grants.
inline constexpr PredicateLimits kJoinedLimits{kMaxJoinedPredicate, size_t{64} << 10};

// What is known of a column's values in many rows.
struct CellRange {
  bool known = false;  // all values but null, and but NaN, are from `least` to `most`
  Cell least = {};
  Cell most = {};
  bool may_be_null = true;
};

// Immutable; thread-safe; copies share it. An empty one is always true.
class Predicate {
 public:
  Predicate() = default;
  // InvalidArgument with the column of the text, from 1: an unknown column, a literal of another
  // type than the column's, a syntax error, a limit.
  static Result<Predicate> Parse(std::string_view text, std::span<const TypedColumn> columns,
                                 const PredicateLimits& limits = {});

  bool empty() const { return root_ == nullptr; }
  // Indexes of the columns that it reads, ascending.
  const std::vector<size_t>& columns() const { return columns_; }
  // `row`: a cell for each column of Parse; only those of columns() are read.
  bool Accepts(std::span<const Cell> row) const;
  // False if no row with values in these ranges is accepted. One for each column of Parse; only
  // those of columns() are read.
  bool MayAccept(std::span<const CellRange> columns) const;

  struct Node;

 private:
  std::shared_ptr<const Node> root_;
  std::vector<size_t> columns_;
};

}  // namespace shoal::data
