// Removal of directories that others have made.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace shoal {

// Removes a directory and everything in it; nothing if there is none. Follows no link, goes to any
// depth, and holds two descriptors: what is deeper is moved up first. On an error (the first is
// returned) removes what it can. A user who goes on adding directories meanwhile gets Unavailable
// after 100 million. O(entries).
Status RemoveTree(const std::filesystem::path& directory);

}  // namespace shoal
