// Copies one object to another place.
#pragma once

#include <functional>
#include <string>

#include "data/objects/object_stores.h"

namespace shoal::data {

// Reads with read-ahead while it writes; the target appears whole or not at all. `progress`, if
// given, is called with the bytes of each piece. Errors name the side that failed.
Result<ObjectInfo> CopyObject(ObjectStores* stores, const std::string& from, const std::string& to,
                              const std::function<void(uint64_t)>& progress = {});

}  // namespace shoal::data
