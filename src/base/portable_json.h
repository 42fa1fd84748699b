// JSON that every parser takes, ours among them.
#pragma once

#include "base/json.h"

namespace shoal {

// `value` with bytes that are no UTF-8 (of file names, of words) as U+FFFD, and numbers that JSON
// does not know (NaN, infinity) as null.
json::value PortableJson(json::value value);

}  // namespace shoal
