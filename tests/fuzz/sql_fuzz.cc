// Scripts of SQL from any bytes: statements, or an error that names a place.
#include <cstdlib>
#include <string>
#include <string_view>

#include "sql/syntax/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace shoal;
  const sql::ScriptText script("fuzz.sql", std::string(reinterpret_cast<const char*>(bytes), size));
  const auto checked = sql::CheckScript(script);
  if (checked.ok()) return 0;
  const bool told = checked.status().code() == Code::kInvalidArgument &&
                    checked.status().message().starts_with("fuzz.sql:");
  if (!told) std::abort();
  return 0;
}
