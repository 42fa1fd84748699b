// Copies objects to other places.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/objects/object_stores.h"

namespace shoal::data {

struct PlannedCopy {
  ObjectInfo from;
  std::string to;
};

// Where the objects of `sources` (as of ObjectStores::List) go below `target`: a folder if it ends
// with '/', is a directory of this machine, or is to hold several objects or a folder. Objects of a
// source that is a folder keep their path below it, others their last part. InvalidArgument, before
// anything is copied, where two would go to one place, one to itself, or a name has a part that no
// file of this machine can have.
Result<std::vector<PlannedCopy>> PlanCopies(ObjectStores* stores,
                                            const std::vector<std::string>& sources,
                                            const std::string& target);

// Reads with read-ahead while it writes; the target appears whole or not at all (OutputWriter), and
// a new file has no more permissions than a source on this machine. `progress`, if given, is called
// with the bytes of each piece. Errors name the side that failed.
Result<ObjectInfo> CopyObject(ObjectStores* stores, const std::string& from, const std::string& to,
                              const std::function<void(uint64_t)>& progress = {});

}  // namespace shoal::data
