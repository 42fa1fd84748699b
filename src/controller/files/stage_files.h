// A snapshot of a job's `files`, taken at submission and kept in the job's directory while it runs.
// The coordinator sends it to hosts that lack it. Used by controller.cc.
//
//     JOBDIR/files/manifest.json    host/manifest.h
//     JOBDIR/files/blobs/<sha256>   hard links into the cache, which keep it from evicting the
//     files
#pragma once

#include <filesystem>

#include "base/status.h"
#include "controller/files/state_home.h"

namespace shoal::controller {

// Directory of the content-addressed file cache: $SHOAL_CACHE, else inside the state home.
std::filesystem::path FileCachePath(const StateHome& home);

// Takes the snapshot, without the state home itself. Errors are those of host::TakeSnapshot; after
// an error nothing of it remains in the job's directory. O(bytes of the directory): hashes all
// files and copies new ones.
Status StageFiles(const std::filesystem::path& directory, const StateHome& home,
                  const std::filesystem::path& job_dir);

}  // namespace shoal::controller
