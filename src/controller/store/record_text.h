// Text encoding of records: JSON of UTF-8 strings. Used by controller.cc and sqlite_store.cc.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace shoal::controller {

// InvalidArgument names the first string or field that is not UTF-8 ("data[0].source") and shows it
// with escaped bytes. Such a record could not be read again.
Status CheckUtf8(const json::object& job);

// Serializes a record. Invalid UTF-8 (a file name in an error message, for example) is replaced by
// U+FFFD, so the record stays readable.
std::string RecordText(const json::object& body);

}  // namespace shoal::controller
