// The seed: the few files that a coordinator and its launchers need to begin, where they do not see
// the controller's directory of the job. The controller makes it, the engine carries it
// (engine.h, DesiredJob::bootstrap_files), `shoal coordinator --seed` and `shoal task --seed` make
// their own directory of it.
#pragma once

#include <map>
#include <string>

#include "base/status.h"

namespace shoal::rendezvous {

// job.json, token, id and, of a job that was resumed, resumes: of a job's directory. Errors name
// the file.
Result<std::map<std::string, std::string>> ReadBootstrapFiles(const std::string& job_dir);

// Copies what ReadBootstrapFiles names out of a directory that may be read-only and full of links
// into `job_dir`, which is made (0700); the files get mode 0600. What is there already is replaced.
Status InstallBootstrapFiles(const std::string& bootstrap_dir, const std::string& job_dir);

// What a launcher knows of its coordinator's address, for all that look for it in its directory:
// DIR/coordinator.json with what `address` ("HOST:PORT") says.
Status InstallCoordinatorAddress(const std::string& address, const std::string& job_dir);

}  // namespace shoal::rendezvous
