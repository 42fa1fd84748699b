// Copies of directories that belong to other users and change meanwhile, for backups.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/access/directory_owner.h"
#include "base/status.h"

namespace shoal::api {

struct CopiedFiles {
  int64_t files = 0;
  int64_t bytes = 0;     // of contents; holes of sparse files are not counted
  int64_t left_out = 0;  // entries that the owner has made so that they cannot be copied
};

// Whether an entry is left out; its path is relative to the directory that is copied.
using LeaveOut = std::function<bool(const std::filesystem::path& relative)>;

// Copies regular files up to the size that they have now, directories and links (as links) below
// `from` to the directory `to`, which must not be writable for others and is made if it is absent.
// `from` is read with the rights of `owner`, and its owner may exchange anything in it at any time:
// every directory of the copy is made here and is never one that exists or a link, so nothing is
// written outside of `to`. What disappears meanwhile is left out. What an owner has made so that it
// cannot be copied (unreadable, or of a longer path than the system allows) is counted; without an
// owner it is an error, and so is any error in `to`. Holes of sparse files stay holes. O(bytes).
Status CopyTree(const std::filesystem::path& from, const std::filesystem::path& to,
                const std::optional<UserIds>& owner, const LeaveOut& leave_out,
                CopiedFiles* copied);

}  // namespace shoal::api
