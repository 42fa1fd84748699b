// What SQL asks of a server that runs the session for one of its users: jobs are submitted,
// followed, listed and stopped by the server, which is asked on standard output and answers on
// standard input.
#pragma once

#include <atomic>
#include <string>

#include "cli/sql/process/request_lines.h"
#include "sql/process/messages.h"
#include "sql/session/host.h"

namespace shoal::cli {

// Not thread-safe, but for Stop.
class PipeHost final : public sql::Host {
 public:
  // `lines` must outlive it.
  PipeHost(std::string program, RequestLines* lines, sql::SessionBegin begin)
      : program_(std::move(program)), lines_(lines), begin_(std::move(begin)) {}

  Result<sql::FinishedJob> RunJob(const job::Job& job, const std::string& engine) override;
  Result<std::vector<sql::ListedJob>> ListJobs() override;
  Result<std::string> StopJob(const std::string& prefix) override;
  std::string Program() override { return program_; }
  sql::QueryCaps caps() const override { return begin_.caps; }
  Status CheckPath(const std::string& path) const override { return begin_.paths.Check(path); }
  Status Show(const sql::Grid& grid) override;
  void Note(const std::string& sentence) override;
  bool Stopped() override { return stopped_; }

  void Stop() { stopped_ = true; }
  // The request that events belong to from now on; forgets that it was stopped.
  void BeginRequest(int64_t id) {
    stopped_ = false;
    request_ = id;
  }

 private:
  Result<json::object> Ask(json::object question);

  const std::string program_;
  RequestLines* const lines_;
  const sql::SessionBegin begin_;
  std::atomic<bool> stopped_{false};
  int64_t request_ = 0;
  int64_t questions_ = 0;
};

}  // namespace shoal::cli
