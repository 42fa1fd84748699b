// The secrets of one job, from the vault to the job's directory.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "controller/secrets/secrets.h"
#include "job/spec/job.h"

namespace shoal::controller {

// For a job without secrets both do nothing and succeed; `source` may then be null.

// Whether all secrets can be read, for the submission. Errors are those of SecretSource::Read and
// begin with the variable's path; FailedPrecondition without a source. Blocks.
Status CheckSecrets(SecretSource* source, const std::string& team, const job::Job& job);
// Writes the values to job::JobDir::secrets with mode 0600, not synced: the start of a job writes
// them anew. Errors are those of SecretSource::Read. Creates the directory.
Status WriteSecrets(SecretSource* source, const std::string& team, const job::Job& job,
                    const std::filesystem::path& job_dir);
// RemoveScratch removes the file at the end.

}  // namespace shoal::controller
