// A host for tests: jobs are kept and not run, and what is shown is kept too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sql/session/host.h"

namespace shoal::sql {

class FakeHost final : public Host {
 public:
  Result<FinishedJob> RunJob(const job::Job& job, const std::string& engine) override {
    jobs.push_back(job);
    engines.push_back(engine);
    if (on_job) return on_job(job);
    return FinishedJob{"job-" + std::to_string(jobs.size()), job::JobState::kSucceeded, "", {}, {}};
  }
  Result<std::vector<ListedJob>> ListJobs() override { return listed; }
  Result<std::string> StopJob(const std::string& prefix) override {
    if (prefix != "job-1") return NotFound("there is no job " + prefix);
    return prefix;
  }
  std::string Program() override { return program; }
  Status Show(const Grid& grid) override {
    shown.push_back(grid);
    return Status::Ok();
  }
  void Note(const std::string& sentence) override { notes.push_back(sentence); }
  bool Stopped() override { return stop_after > 0 && --stop_after == 0; }

  std::string program;
  std::vector<job::Job> jobs;
  std::vector<std::string> engines;
  std::function<Result<FinishedJob>(const job::Job&)> on_job;
  std::vector<ListedJob> listed;
  std::vector<Grid> shown;
  std::vector<std::string> notes;
  int stop_after = 0;  // questions until it says that it was stopped; 0: never
};

}  // namespace shoal::sql
