#include "controller/store/supervisor_mark.h"

#include <climits>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "controller/store/process_identity.h"

namespace shoal::controller {
namespace {

std::filesystem::path MarksDir(const std::filesystem::path& root) { return root / "supervisors"; }

// Empty for an identity that could name another file: records are untrusted.
std::string MarkName(const ProcessIdentity& process) {
  if (process.pid <= 0 || process.boot_id.empty() || process.boot_id.find('/') != std::string::npos)
    return "";
  return FormatProcessScope(process) + "-" + std::to_string(process.pid) + "-" +
         std::to_string(process.start_ticks);
}

}  // namespace

Status MarkSupervisor(const std::filesystem::path& root, const ProcessIdentity& self) {
  const std::string name = MarkName(self);
  if (name.empty()) return InvalidArgument("the process's identity is incomplete");
  TRY(MakeDirectories(MarksDir(root), 0700));
  return WriteFileAtomically(MarksDir(root) / name, "", 0600, true);
}

bool IsSupervisor(const std::filesystem::path& root, const ProcessIdentity& process) {
  const std::string name = MarkName(process);
  std::error_code error;
  return !name.empty() && std::filesystem::exists(MarksDir(root) / name, error);
}

Status RemoveUnusedMarks(const std::filesystem::path& root, const ProcessIdentity& self,
                         Store* store) {
  TRY_ASSIGN(const std::vector<JobRecord> jobs,
             store->ListJobs({.ended = false, .limit = INT_MAX}));
  std::set<std::string> used = {MarkName(self)};
  for (const JobRecord& job : jobs) used.insert(MarkName(job.owner));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(MarksDir(root), error)) {
    if (!used.contains(entry.path().filename().string()))
      std::filesystem::remove(entry.path(), error);
  }
  return Status::Ok();
}

}  // namespace shoal::controller
