#include "rendezvous/launcher/task_directories.h"

#include <filesystem>

#include "base/file.h"

namespace shoal::rendezvous {

Status MakeTaskDirectories(const AttemptPaths& paths) {
  TRY(MakeDirectories(paths.scratch, 0700));
  return MakeDirectories(paths.output, 0700);
}

void RemoveTaskDirectories(const AttemptPaths& paths) {
  std::error_code ignored;  // the engine removes the job's directory anyway
  std::filesystem::remove_all(paths.scratch, ignored);
  std::filesystem::remove(paths.cluster_file, ignored);
  std::filesystem::remove_all(paths.secrets(), ignored);
  std::filesystem::remove(paths.output, ignored);  // if it is empty
}

}  // namespace shoal::rendezvous
