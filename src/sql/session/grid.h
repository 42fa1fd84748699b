// Rows that a statement shows.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace shoal::sql {

struct Grid {
  std::vector<std::string> columns;
  std::vector<std::vector<json::value>> rows;  // as many values as columns
  bool more = false;                           // there are rows after these
  // Of each column, as !desc names them, or a type of SQL such as DATE for texts that stand for
  // one; empty: not known.
  std::vector<std::string> types = {};
};

}  // namespace shoal::sql
