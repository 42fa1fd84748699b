// The text of python/mlsql.py, which CMake puts into the program.
#pragma once

#include <string_view>

namespace shoal::sql {

std::string_view MlsqlModule();

}  // namespace shoal::sql
