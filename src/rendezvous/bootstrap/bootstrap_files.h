// Bootstrap files: the few files that a coordinator and its launchers need to start where they do
// not see the controller's directory of the job. The controller reads them, the engine carries them
// (engine/engine.h), and `shoal coordinator --seed` and `shoal task --seed` install them in a
// directory of their own.
#pragma once

#include <map>
#include <string>

#include "base/status.h"

namespace shoal::rendezvous {

// The contents of job.json, token, id, of a resumed job resumes, and of a job with secrets secrets,
// by name. Errors name the file.
Result<std::map<std::string, std::string>> ReadBootstrapFiles(const std::string& job_dir);

// Copies the bootstrap files from `bootstrap_dir`, which may be read-only and full of symbolic
// links, into `job_dir`, which is created with mode 0700. The files get mode 0600; existing ones
// are replaced.
Status InstallBootstrapFiles(const std::string& bootstrap_dir, const std::string& job_dir);

// Writes DIR/coordinator.json with `address` ("HOST:PORT"), where a launcher knows its
// coordinator's address in advance.
Status InstallCoordinatorAddress(const std::string& address, const std::string& job_dir);

}  // namespace shoal::rendezvous
