// Where the embedded controller keeps its state: shoal.db and one directory a job.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "controller/store/job_record.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// $SHOAL_HOME, else $XDG_DATA_HOME/shoal, else ~/.local/share/shoal. Does not make it.
// FailedPrecondition if none of these is set.
Result<std::filesystem::path> FindStateHome();

// Paths below a state home. Plain, copyable.
class StateHome {
 public:
  explicit StateHome(std::filesystem::path root) : root_(std::move(root)) {}
  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path database() const { return root_ / "shoal.db"; }
  std::filesystem::path job_dir(const std::string& id) const { return root_ / "jobs" / id; }

 private:
  std::filesystem::path root_;
};

// Makes a job's directory (0700) with job.json, token (0600, a new secret), id and work_dir, and
// removes what an earlier life of the job left for its controller: where its coordinator was, and
// its verdict. Not synced: the store holds the job, the directory of a job that a power cut ended
// is of no use.
Status WriteJobDir(const std::filesystem::path& dir, const std::string& id, const json::object& job,
                   const std::filesystem::path& work_dir);
// Where the job's programs were started first; empty if that is not known.
std::filesystem::path ReadWorkDir(const std::filesystem::path& dir);
// DIR/resumes: the job's coordinator is to go on once more after a suspension.
Status CountResume(const std::filesystem::path& dir);
// Removes what killed launchers could not: their tasks' private temporary files; and, of a job that
// has ended (not only been suspended), the shipped files.
void RemoveScratch(const std::filesystem::path& dir, JobState state);
// The job's secret.
Result<std::string> ReadToken(const std::filesystem::path& dir);
// Leaves a verdict that was told, where the coordinator cannot.
Status WriteVerdict(const std::filesystem::path& dir, const rendezvous::Verdict& verdict);
// What the coordinator left at its end. NotFound if there is no verdict yet.
Result<rendezvous::Verdict> ReadVerdict(const std::filesystem::path& dir);
// The same, and if there is no such file or it cannot be read (the disk was full), what its journal
// says. Only where the coordinator worked in this directory and is gone.
Result<rendezvous::Verdict> ReadVerdictOrJournal(const std::filesystem::path& dir);

}  // namespace shoal::controller
