// Whether other users could change or replace what this one keeps in a directory.
#pragma once

#include <filesystem>

#include "base/file.h"
#include "base/status.h"

namespace shoal {

// PermissionDenied unless `directory` is this user's or root's and no other user may rename what is
// in it (it is not writable by others, or has the sticky bit). Root may use any user's.
Status CheckOwnDirectory(const std::filesystem::path& directory);

// Opens or makes a file that only this user may read and write, whatever the umask is; one that is
// there, is this user's and lets others in is closed to them. PermissionDenied for another user's
// file and for what is no regular file.
Result<UniqueFd> OpenPrivateFile(const std::filesystem::path& path, int flags);

}  // namespace shoal
