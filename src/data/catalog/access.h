// Who may read what of a table: a pure function of the table, its database's policies, the person
// and the time.
//
// A value (row, column) may be read if a grant to the person that has not expired names the column
// and accepts the row. A row is given if every column that was asked for may be read in it. Masks
// hide what may be read: a column is in clear only if that holds for all rows that are given.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "data/catalog/table.h"

namespace shoal::data {

struct Asker {
  std::string user;
  std::set<std::string> teams;
};

// Whether the principal stands for the person.
bool IsMeant(const std::string& principal, const Asker& asker);

struct Access {
  std::vector<size_t> columns;  // of the table, in its order
  std::vector<Mask> masks;      // of these
  std::string rows;             // a Predicate within kJoinedLimits; empty: all
  // Some columns, rows or values are not given.
  bool restricted = false;
  // The first expiry among the grants that it stands on.
  std::optional<WallTime> until;

  bool operator==(const Access&) const = default;
};

// `wanted` empty: all columns that the person may read. PermissionDenied names the column and the
// grant that is missing; InvalidArgument a column that does not exist, or is named twice.
Result<Access> EffectiveAccess(const Table& table, std::span<const TagPolicy> policies,
                               const Asker& asker, std::span<const std::string> wanted,
                               WallTime now);

}  // namespace shoal::data
