#include "controller/recovery/prune.h"

#include <climits>
#include <functional>

#include "base/access/directory_owner.h"
#include "base/log.h"
#include "controller/usage/usage.h"

namespace shoal::controller {
namespace {

// True for the form of NewJobId's names, which is never a path.
bool IsPlain(const std::string& id) {
  return !id.empty() && id.front() != '.' && id.find('/') == std::string::npos;
}

Status Remove(Store* store, const StateHome& home, const std::string& id, WallTime now) {
  if (!IsPlain(id)) return DataLoss("'" + id + "' is not the name of a job");
  TRY(RemoveOwnedDirectory(home.job_dir(id)));
  TRY(KeepUsage(store, id, now));
  const Status removed = store->Remove(id);
  return removed.code() == Code::kNotFound ? Status::Ok() : removed;  // another process was quicker
}

// Ids of ended jobs that `due` selects, oldest first.
Result<std::vector<std::string>> EndedJobs(Store* store,
                                           const std::function<bool(const JobRecord&)>& due) {
  TRY_ASSIGN(const std::vector<JobRecord> ended,
             store->ListJobs({.unfinished = false, .limit = INT_MAX}));
  std::vector<std::string> ids;
  for (auto job = ended.rbegin(); job != ended.rend(); ++job) {
    if (due(*job)) ids.push_back(job->id);
  }
  return ids;
}

Result<std::vector<std::string>> RemoveAll(Store* store, const StateHome& home,
                                           const std::vector<std::string>& due, WallTime now) {
  std::vector<std::string> gone;
  Status first;
  for (const std::string& id : due) {
    const Status removed = Remove(store, home, id, now);
    if (removed.ok()) {
      gone.push_back(id);
      continue;
    }
    Log(LogLevel::kInfo, "{}: not removed: {}", id, removed.message());
    if (first.ok()) first = removed.With(id);
  }
  if (gone.empty() && !first.ok()) return first;
  return gone;
}

}  // namespace

Result<std::vector<std::string>> Prune(Store* store, const StateHome& home, WallTime now,
                                       std::optional<Duration> age) {
  std::vector<std::string> due;
  if (age) {
    TRY_ASSIGN(due,
               EndedJobs(store, [&](const JobRecord& job) { return now - job.ended >= *age; }));
  } else {
    TRY_ASSIGN(due, store->ListExpired(now));
  }
  return RemoveAll(store, home, due, now);
}

Result<std::vector<std::string>> PruneUnreadable(Store* store, const StateHome& home,
                                                 WallTime now) {
  TRY_ASSIGN(const std::vector<std::string> due,
             EndedJobs(store, [](const JobRecord& job) { return !job.damage.empty(); }));
  return RemoveAll(store, home, due, now);
}

}  // namespace shoal::controller
