// What may stand in a record: JSON of UTF-8 strings. Used where records are written and read
// (controller.cc, sqlite_store.cc).
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace shoal::controller {

// InvalidArgument that names the first string or field of a job that is not UTF-8
// ("data[0].source") and shows it with its bytes escaped: such a record could never be read again.
Status CheckUtf8(const json::object& job);

// A record's text. What is not UTF-8 in it (an error message with a file's name, say) is replaced
// by U+FFFD, so that what is stored can be read.
std::string RecordText(const json::object& body);

}  // namespace shoal::controller
