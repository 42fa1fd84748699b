// What SQL asks of the commands: jobs run, listed and stopped by the code of `shoal train`, `shoal
// jobs` and `shoal stop`, and results are printed.
#pragma once

#include <atomic>
#include <string>

#include "cli/command.h"
#include "sql/session/host.h"

namespace shoal::cli {

struct SqlHostOptions {
  std::string engine;  // of jobs whose statement names none
  bool quiet = false;  // no progress of jobs, no notes
};

// Not thread-safe; at most one exists in a process, since it handles the signals between jobs: the
// first one asks the session to end (Stopped), the second one ends the process.
class SqlHost final : public sql::Host {
 public:
  SqlHost(const Context& context, SqlHostOptions options);
  ~SqlHost() override;
  SqlHost(const SqlHost&) = delete;
  SqlHost& operator=(const SqlHost&) = delete;

  Result<sql::FinishedJob> RunJob(const job::Job& job, const std::string& engine) override;
  Result<std::vector<sql::ListedJob>> ListJobs() override;
  Result<std::string> StopJob(const std::string& prefix) override;
  std::string Program() override { return context_.program; }
  Status Show(const sql::Grid& grid) override;
  void Note(const std::string& sentence) override;
  bool Stopped() override;
  // As Ctrl-C does, from any thread: stops the job that runs, or else the statement. Once more has
  // no further effect until ForgetStop, but for a job: it is stopped at once.
  void Interrupt();
  // A shell goes on after a signal has ended a statement.
  void ForgetStop();

 private:
  const Context context_;
  const SqlHostOptions options_;
  std::atomic<bool> in_job_{false};
};

}  // namespace shoal::cli
