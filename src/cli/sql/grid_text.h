// Rows of a statement as text.
#pragma once

#include <string>

#include "sql/session/grid.h"

namespace shoal::cli {

// Columns of equal width below their names, cells of at most 60 characters, and how many rows there
// are.
std::string GridText(const sql::Grid& grid);
// {"event":"rows","columns":[…],"rows":[[…],…],"more":false}
std::string GridLine(const sql::Grid& grid);

}  // namespace shoal::cli
