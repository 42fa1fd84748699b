// What a job's `files` are when it is submitted: kept in its directory for as long as it runs, for
// its coordinator to send to hosts that have not got them. Used by controller.cc.
//
//   JOBDIR/files/manifest.json    host/files/manifest.h
//   JOBDIR/files/blobs/<sha256>   hard links into the cache, which therefore does not evict them
#pragma once

#include <filesystem>

#include "base/status.h"
#include "controller/files/state_home.h"

namespace shoal::controller {

// Where a state home's files are kept by content, unless $SHOAL_CACHE says where.
std::filesystem::path FileCachePath(const StateHome& home);

// Takes the snapshot; the state home itself is left out. Errors are host::TakeSnapshot's; nothing
// of the job's is left then. O(bytes of the directory): all of it is hashed, what is new is copied.
Status StageFiles(const std::filesystem::path& directory, const StateHome& home,
                  const std::filesystem::path& job_dir);

}  // namespace shoal::controller
