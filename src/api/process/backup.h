// Copies of a server's state directory: `shoal server backup` makes one while the server runs,
// `shoal server restore` makes a state directory of it.
//
//   TO/shoal.db            a consistent copy of the records
//   TO/jobs/…              directories of jobs: logs, outputs, journals, checkpoints
//   TO/tls, TO/administrator.token
#pragma once

#include <filesystem>

#include "api/process/copy_tree.h"
#include "base/status.h"

namespace shoal::api {

using BackupResult = CopiedFiles;

// Records are copied before the files, so that the copy has the files of each job that it has.
// Uploads and the temporary files of tasks are left out. AlreadyExists if `to` exists; NotFound
// without a store in `state`. O(bytes).
Result<BackupResult> Backup(const std::filesystem::path& state, const std::filesystem::path& to);

// FailedPrecondition if a server uses `state`, AlreadyExists if it has a store; InvalidArgument if
// `from` is no backup.
Result<BackupResult> Restore(const std::filesystem::path& from, const std::filesystem::path& state);

}  // namespace shoal::api
