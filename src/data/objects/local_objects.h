// Files of this machine as objects, for commands that take any source. (Corpus reads local files
// itself.)
#pragma once

#include <memory>

#include "data/objects/object.h"

namespace shoal::data {

// A file is pinned by its inode, length and time of change. Writing makes missing directories.
std::unique_ptr<ObjectStore> MakeLocalStore();

}  // namespace shoal::data
