// A virtual environment from `requirements.txt`, built once on a host for each content of that file
// and each interpreter, and shared by all tasks that need the same. Called by
// cli/internal/prepare.cc in a task's own process.
//
//   ROOT/envs/<key>/           the environment; `.ready` in it is written last
//   ROOT/envs/<key>.lock       exclusive while it is built or removed, shared while it is used
//   ROOT/envs/<key>.failed     whose build failed last: others that waited for it do not try again
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/status.h"

namespace shoal::host {

struct PythonEnvSpec {
  std::filesystem::path cache;  // ROOT
  std::filesystem::path
      requirements;          // an existing file; what it names relatively stands beside it
  std::string files_digest;  // of the directory it came in: counts where it names files of that
  std::string
      builder;  // who asks, "job worker-1.0": one failure is enough for all of a job's attempt
  std::string python = "python3";  // looked up in PATH
};

struct PythonEnv {
  std::filesystem::path directory;
  UniqueFd lock;  // shared; the environment is not removed while it, or a copy that exec left open,
                  // is open
  bool built = false;  // by this call
};

// What the environment depends on, as 32 hex digits: the interpreter (where it is, its size and
// time), the file, and the digest of the shipped directory if a line of the file names a path.
// NotFound if there is no such interpreter.
Result<std::string> PythonEnvKey(const PythonEnvSpec& spec);

// Builds it if it is not there (`python -m venv`, `pip install -r`, whose output goes to ours),
// waits if another process does. FailedPrecondition if that fails, with what to do. A process that
// is killed leaves nothing that is used.
Result<PythonEnv> MakePythonEnv(const PythonEnvSpec& spec);

// Removes environments that nobody uses, the longest unused first, until at most `limit` bytes are
// left.
Status TrimPythonEnvs(const std::filesystem::path& cache, int64_t limit);

}  // namespace shoal::host
