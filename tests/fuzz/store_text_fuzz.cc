// Fuzz entry: cursors, labels and URLs of stores. Nothing crashes, a cursor that is taken is the
// one that is written for its position, and a printed URL has no password.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "controller/store/cursor.h"
#include "controller/store/open_store.h"
#include "controller/store/sql/sql_pages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shoal::controller;  // NOLINT: one function
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto position = ParseCursor("3f9a", text);
  if (position.ok()) {
    if (*position < 0) std::abort();
    const auto again = ParseCursor("3f9a", FormatCursor("3f9a", *position));
    if (!again.ok() || *again != *position) std::abort();
  }
  const JobLabels labels = ParseLabels(text);
  if (ParseLabels(LabelText(labels)) != labels) std::abort();
  const std::string printed = PrintableStoreUrl("postgres://user:" + text + "@host/db");
  if (!shoal::IsUtf8(printed)) std::abort();
  if (printed != (text.find('?') == std::string::npos ? "postgres://host/db" : "postgres://…"))
    std::abort();
  return 0;
}
