// What the language asks of the program around it. `shoal sql` implements it with the commands'
// own code (src/cli/sql), so a statement's job is the job of `shoal train`; tests with a fake.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "job/execution/state.h"
#include "job/spec/job.h"
#include "sql/session/grid.h"

namespace shoal::sql {

// Limits of the queries of a session, which its variables may lower and not raise. 0: none.
struct QueryCaps {
  uint64_t memory_bytes = 0;
  Duration time{};
  uint64_t spill_bytes = 0;
  uint64_t threads = 0;
};

// How a job ended.
struct FinishedJob {
  std::string id;
  job::JobState state = job::JobState::kFailed;
  std::string reason;  // one sentence or empty
  WallTime started{};
  WallTime ended{};
};

// A job as `!show jobs` and `!show models` list it.
struct ListedJob {
  std::string id;
  std::string state;
  WallTime submitted{};
  std::string reason;
  std::string algorithm;  // of a training
  std::string model;      // the directory of its model; empty: none
};

class Host {
 public:
  virtual ~Host() = default;
  // Runs a job to its end. `engine` is empty for the default. An error if it could not be
  // submitted: the sentence of the validation. Blocks; a signal stops the job.
  virtual Result<FinishedJob> RunJob(const job::Job& job, const std::string& engine) = 0;
  // Newest first, at most 100 ended ones.
  virtual Result<std::vector<ListedJob>> ListJobs() = 0;
  // Stops a job, named by an unambiguous prefix, and returns its id when it has ended.
  virtual Result<std::string> StopJob(const std::string& prefix) = 0;
  // The path of the program `shoal`, which has the command that runs queries.
  virtual std::string Program() = 0;
  // Shows the result of a statement.
  virtual Status Show(const Grid& grid) = 0;
  // Tells of an effect: "saved 12 rows to …".
  virtual void Note(const std::string& sentence) = 0;
  // Whether a signal asks the session to end.
  virtual bool Stopped() = 0;
  virtual QueryCaps caps() const { return {}; }
  // Whether statements may read and write below this path or URI, which may be relative or a
  // pattern. PermissionDenied says why not.
  virtual Status CheckPath(const std::string& /*path*/) const { return Status::Ok(); }
};

}  // namespace shoal::sql
