#include "sql/tables/staged_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/file.h"

namespace shoal::sql {

namespace fs = std::filesystem;

Result<StagedDirectory> StagedDirectory::Create(const fs::path& target) {
  TRY(MakeDirectories(target.parent_path()));
  std::string pattern =
      (target.parent_path() / ("." + target.filename().string() + ".XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return ErrnoStatus(errno, "cannot write beside " + target.string());
  return StagedDirectory(pattern);
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;  // a leftover with a name of its own does no harm
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Status StagedDirectory::MoveTo(const fs::path& target, bool replace) {
  TRY(MoveDirectory(path_, target, replace));
  if (!replace) path_.clear();
  return Status::Ok();
}

Status MoveDirectory(const fs::path& from, const fs::path& target, bool replace) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  std::error_code ignored;  // it stays private then
  fs::permissions(from, static_cast<fs::perms>(0777U & ~mask), ignored);
  TRY(SyncDirectory(from));
  const unsigned flags = replace ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, target.c_str(), flags) != 0) {
    return errno == EEXIST ? AlreadyExists(target.string() + " has appeared meanwhile")
                           : ErrnoStatus(errno, "cannot replace " + target.string());
  }
  return SyncDirectory(target.parent_path());
}

}  // namespace shoal::sql
