// Virtual environments from `requirements.txt`, built once per host for each content of that file
// and each interpreter, and shared by all tasks with the same key. Called by
// cli/internal/prepare.cc in a task's own process.
//
//   ROOT/envs/<key>/           the environment; its file `.ready` is written last
//   ROOT/envs/<key>.lock       exclusive while it is built or removed, shared while it is used
//   ROOT/envs/<key>.failed     builder of the last failed build: waiting tasks of it do not retry
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace shoal::host {

// Input of an environment. Plain value.
struct PythonEnvSpec {
  std::filesystem::path cache;  // ROOT
  std::filesystem::path
      requirements;          // an existing file; relative paths in it are relative to its directory
  std::string files_digest;  // digest of the staged directory; used if the file names paths
  std::string
      builder;  // the task, "job worker-1.0": a failed build is not retried within one attempt
  std::string python = "python3";  // looked up in PATH
};

// An environment in use.
struct PythonEnv {
  std::filesystem::path directory;
  UniqueFd lock;  // shared; the environment is not removed while it, or a copy that exec left open,
                  // is open
  bool built = false;  // by this call
};

// Key of the environment, 32 hex digits: a hash of the interpreter (path, size and time), the file,
// and the digest of the staged directory if a line of the file names a path. NotFound if the
// interpreter does not exist.
Result<std::string> PythonEnvKey(const PythonEnvSpec& spec);

// Returns the environment; builds it if it does not exist (`python -m venv`, `pip install -r`, with
// this process's outputs), or waits while another process builds it. FailedPrecondition with a
// remedy if the build fails. An environment whose build was killed is never used.
Result<PythonEnv> MakePythonEnv(const PythonEnvSpec& spec);

// Removes unused environments, least recently used first, until at most `limit` bytes are left.
Status TrimPythonEnvs(const std::filesystem::path& cache, int64_t limit);

}  // namespace shoal::host
