// The state directory of the embedded controller: shoal.db and one directory per job.
#pragma once

#include <filesystem>
#include <string>

#include "base/status.h"
#include "controller/store/job_record.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// Returns $SHOAL_HOME, else $XDG_DATA_HOME/shoal, else ~/.local/share/shoal, without creating it.
// FailedPrecondition if none of these variables is set.
Result<std::filesystem::path> FindStateHome();

// Paths in a state home. A plain, copyable value.
class StateHome {
 public:
  explicit StateHome(std::filesystem::path root) : root_(std::move(root)) {}
  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path database() const { return root_ / "shoal.db"; }
  // Where the key of the secrets is unless a server is told another place.
  std::filesystem::path secrets_key() const { return root_ / "secrets.key"; }
  std::filesystem::path job_dir(const std::string& id) const { return root_ / "jobs" / id; }

 private:
  std::filesystem::path root_;
};

// Creates a job's directory (0700) with job.json, token (0600, a new secret), id and work_dir, and
// removes the coordinator's address and verdict of an earlier run. Not synced: the store is
// authoritative, and the directory of a job that a power cut ended is not needed.
Status WriteJobDir(const std::filesystem::path& dir, const std::string& id, const json::object& job,
                   const std::filesystem::path& work_dir);
// Creates the directory with work_dir alone: all that a job needs that waits, for a resume if it is
// suspended before it starts.
Status WriteWorkDir(const std::filesystem::path& dir, const std::filesystem::path& work_dir);
// True if WriteJobDir has succeeded for the job.
bool IsJobDirComplete(const std::filesystem::path& dir);
// Directory in which the job's programs were first started; empty if unknown.
std::filesystem::path ReadWorkDir(const std::filesystem::path& dir);
// Increments DIR/resumes, which tells the next coordinator that the job continues after a
// suspension.
Status CountResume(const std::filesystem::path& dir);
// Removes the private temporary files of killed launchers and the values of secrets; for an ended
// (not suspended) job also the staged files. The first error; what can be removed is.
Status RemoveScratch(const std::filesystem::path& dir, JobState state);
// Reads the job's secret.
Result<std::string> ReadToken(const std::filesystem::path& dir);
// Writes the verdict received from a coordinator that does not share this directory.
Status WriteVerdict(const std::filesystem::path& dir, const rendezvous::Verdict& verdict);
// Reads the coordinator's verdict. NotFound if there is none yet.
Result<rendezvous::Verdict> ReadVerdict(const std::filesystem::path& dir);
// Likewise; if the file is missing or unreadable (the disk was full), derives the verdict from the
// journal. Only for a coordinator that worked in this directory and is gone.
Result<rendezvous::Verdict> ReadVerdictOrJournal(const std::filesystem::path& dir);

}  // namespace shoal::controller
