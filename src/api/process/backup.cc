#include "api/process/backup.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <iterator>
#include <optional>
#include <system_error>

#include "api/process/server.h"
#include "api/process/state_lock.h"
#include "base/access/directory_owner.h"
#include "base/file.h"
#include "controller/files/state_home.h"
#include "controller/schedules/schedule_record.h"
#include "controller/store/open_store.h"
#include "host/files/blob_cache.h"
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
  return parts == 1 || *relative.begin() == "apart";
}

// The content of a regular file that is not a link. True if it is there.
Result<bool> CopyContent(const fs::path& from, const fs::path& to,
                         const std::optional<UserIds>& owner) {
  Result<UniqueFd> in = Unavailable("not opened");
  {
    const FileAccessAs rights(owner);
    in = OpenFile(from, O_RDONLY | O_NOFOLLOW);
  }
  // Its owner may exchange it for a link meanwhile, which is not copied.
  if (in.status().code() == Code::kNotFound || (owner && !in.ok())) return false;
  if (!in.ok()) return in.status();
  struct stat info {};
  if (::fstat(in->get(), &info) != 0) return ErrnoStatus(errno, from.string());
  TRY_ASSIGN(const UniqueFd out, OpenFile(to, O_WRONLY | O_CREAT | O_EXCL, info.st_mode & 0777));
  TRY(host::ReadAll(in->get(), [&](std::string_view bytes) { return WriteAll(out.get(), bytes); }));
  return true;
}

// Copies regular files, directories and links below `from`, with the rights of `owner`. A file that
// disappears meanwhile is left out, as are values of secrets.
Status CopyTree(const fs::path& from, const fs::path& to, const std::optional<UserIds>& owner,
                BackupResult* result) {
  const fs::path scratch = job::JobDir("").scratch().filename();
  std::error_code error;
  if (!fs::exists(fs::symlink_status(from, error))) return Status::Ok();
  TRY(MakeDirectories(to, kPrivate));
  const auto step = [&](const auto& change) {
    const FileAccessAs rights(owner);
    return change();
  };
  const auto how =
      owner ? fs::directory_options::skip_permission_denied : fs::directory_options::none;
  auto at = step([&] { return fs::recursive_directory_iterator(from, how, error); });
  for (; !error && at != fs::recursive_directory_iterator(); step([&] { at.increment(error); })) {
    const fs::path relative = at->path().lexically_relative(from);
    const fs::path target = to / relative;
    const fs::file_status kind = step([&] { return at->symlink_status(error); });
    if (fs::is_directory(kind)) {
      if (at->path().filename() == scratch) {
        at.disable_recursion_pending();
        continue;
      }
      TRY(MakeDirectories(target, kPrivate));
      continue;
    }
    if (HoldsSecrets(relative)) continue;
    std::error_code failed;
    if (fs::is_symlink(kind)) {
      const fs::path link = step([&] { return fs::read_symlink(at->path(), failed); });
      if (!failed) fs::create_symlink(link, target, failed);
    }
    if (failed && failed != std::errc::no_such_file_or_directory)
      return ErrnoStatus(failed.value(), "copying " + at->path().string());
    if (!fs::is_regular_file(kind)) continue;
    auto copied = CopyContent(at->path(), target, owner);
    if (!copied.ok()) return copied.status().With("copying " + at->path().string());
    if (!*copied) continue;
    result->bytes += static_cast<int64_t>(fs::file_size(target, failed));
    ++result->files;
  }
  // What a user makes of its own directory must not keep the others' from being copied.
  if (error && !owner && error != std::errc::no_such_file_or_directory)
    return ErrnoStatus(error.value(), "reading " + from.string());
  return Status::Ok();
}

// The directory of each job, with the rights of its owner.
Status CopyJobs(const fs::path& from, const fs::path& to, BackupResult* result) {
  std::error_code error;
  if (!fs::exists(from, error)) return Status::Ok();
  TRY(MakeDirectories(to, kPrivate));
  fs::directory_iterator at(from, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error))
    TRY(CopyTree(at->path(), to / at->path().filename(), ForeignOwner(at->path()), result));
  if (error) return ErrnoStatus(error.value(), "reading " + from.string());
  return Status::Ok();
}

Status CopyParts(const fs::path& from, const fs::path& to, BackupResult* result) {
  TRY(CopyJobs(from / "jobs", to / "jobs", result));
  TRY(CopyTree(from / "tls", to / "tls", std::nullopt, result));
  // Files of jobs that are made later.
  for (const char* part : {controller::kGroupFolder, controller::kScheduleFolder})
    TRY(CopyTree(from / part, to / part, std::nullopt, result));
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
