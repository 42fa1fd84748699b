#include "api/process/backup.h"

#include <iterator>
#include <system_error>

#include "api/process/server.h"
#include "api/process/state_lock.h"
#include "base/file.h"
#include "controller/files/state_home.h"
#include "controller/schedules/schedule_record.h"
#include "controller/store/open_store.h"
#include "job/execution/job_dir.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kPrivate = 0700;

// The values of a job's secrets, in its directory and among an engine's bootstrap files. Outputs of
// tasks may have any name.
bool HoldsSecrets(const fs::path& relative) {
  if (relative.filename() != job::JobDir::kSecrets) return false;
  const auto parts = std::distance(relative.begin(), relative.end());
  return parts == 2 || (parts > 2 && *std::next(relative.begin()) == "apart");
}

// Copies regular files, directories and links below `from`. A file that disappears meanwhile is
// left out, as are values of secrets; `skip`: of jobs: the name of directories that are not copied;
// empty: everything is.
Status CopyTree(const fs::path& from, const fs::path& to, const fs::path& skip,
                BackupResult* result) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(from, error))) return Status::Ok();
  TRY(MakeDirectories(to, kPrivate));
  fs::recursive_directory_iterator at(from, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    const fs::path target = to / at->path().lexically_relative(from);
    const fs::file_status kind = at->symlink_status(error);
    if (fs::is_directory(kind)) {
      if (at->path().filename() == skip) {
        at.disable_recursion_pending();
        continue;
      }
      TRY(MakeDirectories(target, kPrivate));
      continue;
    }
    if (!skip.empty() && HoldsSecrets(at->path().lexically_relative(from))) continue;
    std::error_code failed;
    if (fs::is_symlink(kind)) fs::copy_symlink(at->path(), target, failed);
    if (fs::is_regular_file(kind)) {
      fs::copy_file(at->path(), target, failed);
      if (!failed) result->bytes += static_cast<int64_t>(fs::file_size(target, failed));
      ++result->files;
    }
    if (failed && failed != std::errc::no_such_file_or_directory)
      return ErrnoStatus(failed.value(), "copying " + at->path().string());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return ErrnoStatus(error.value(), "reading " + from.string());
  return Status::Ok();
}

Status CopyParts(const fs::path& from, const fs::path& to, BackupResult* result) {
  const fs::path scratch = job::JobDir("").scratch().filename();
  for (const char* part : {"jobs", "tls"}) TRY(CopyTree(from / part, to / part, scratch, result));
  // Files of jobs that are made later.
  for (const char* part : {controller::kGroupFolder, controller::kScheduleFolder})
    TRY(CopyTree(from / part, to / part, {}, result));
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
