#include "api/process/backup.h"

#include <iterator>
#include <optional>
#include <system_error>

#include "api/models/team_models.h"
#include "api/process/copy_tree.h"
#include "api/process/server.h"
#include "api/process/state_lock.h"
#include "base/access/directory_owner.h"
#include "base/file.h"
#include "controller/files/state_home.h"
#include "controller/schedules/schedule_record.h"
#include "controller/store/open_store.h"
#include "job/execution/job_dir.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kPrivate = 0700;

// The values of a job's secrets and the temporary files of its tasks, in its directory and among an
// engine's files. Outputs of tasks may have any name.
bool LeftOutOfJob(const fs::path& relative) {
  if (relative.filename() != job::JobDir::kSecrets &&
      relative.filename() != job::JobDir("").scratch())
    return false;
  const auto parts = std::distance(relative.begin(), relative.end());
  return parts == 1 || *relative.begin() == "apart";
}

bool Nothing(const fs::path& /*relative*/) { return false; }

// The directory of each job, with the rights of its owner.
Status CopyJobs(const fs::path& from, const fs::path& to, BackupResult* result) {
  std::error_code error;
  if (!fs::exists(from, error)) return Status::Ok();
  TRY(MakeDirectories(to, kPrivate));
  fs::directory_iterator at(from, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error))
    TRY(CopyTree(at->path(), to / at->path().filename(), ForeignOwner(at->path()), LeftOutOfJob,
                 result));
  if (error) return ErrnoStatus(error.value(), "reading " + from.string());
  return Status::Ok();
}

Status CopyParts(const fs::path& from, const fs::path& to, BackupResult* result) {
  TRY(CopyJobs(from / "jobs", to / "jobs", result));
  TRY(CopyTree(from / "tls", to / "tls", std::nullopt, Nothing, result));
  // Files of jobs that are made later, and the registries of the teams.
  for (const char* part : {controller::kGroupFolder, controller::kScheduleFolder, kModelsFolder})
    TRY(CopyTree(from / part, to / part, std::nullopt, Nothing, result));
  const fs::path token = from / kFirstTokenFile;
  std::error_code error;
  if (fs::exists(token, error)) fs::copy_file(token, to / kFirstTokenFile, error);
  if (error) return ErrnoStatus(error.value(), "copying " + token.string());
  return Status::Ok();
}

}  // namespace

Result<BackupResult> Backup(const fs::path& state, const fs::path& to) {
  const fs::path database = controller::StateHome(state).database();
  std::error_code error;
  if (!fs::exists(database, error))
    return NotFound("there is no store " + database.string() +
                    "; --state names the directory of the server (with --store postgres://… its "
                    "own tool, pg_dump, copies the records)");
  if (fs::exists(to, error)) return AlreadyExists(to.string() + " exists; choose a new directory");
  TRY(MakeDirectories(to, kPrivate));
  TRY_ASSIGN(const auto store, controller::OpenStore("sqlite:" + database.string()));
  TRY(store->Backup(controller::StateHome(to).database()));
  BackupResult result;
  TRY(CopyParts(state, to, &result));
  return result;
}

Result<BackupResult> Restore(const fs::path& from, const fs::path& state) {
  const fs::path database = controller::StateHome(from).database();
  std::error_code error;
  if (!fs::exists(database, error))
    return InvalidArgument(from.string() + " is no backup: it has no " +
                           database.filename().string());
  TRY(MakeDirectories(state, kPrivate));
  TRY_ASSIGN(const UniqueFd lock, LockState(state));
  const fs::path target = controller::StateHome(state).database();
  if (fs::exists(target, error))
    return AlreadyExists(state.string() + " has a store; restore to an empty directory");
  BackupResult result;
  TRY(CopyParts(from, state, &result));
  // Last: what an interrupted restore leaves is not taken for a state directory.
  fs::copy_file(database, target, error);
  if (error) return ErrnoStatus(error.value(), "copying " + database.string());
  return result;
}

}  // namespace shoal::api
