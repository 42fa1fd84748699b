#include "api/sql/sql_jobs.h"

#include <fcntl.h>

#include <set>
#include <utility>

#include "api/catalog/gates.h"
#include "api/server/prepare_job.h"
#include "api/server/readiness.h"
#include "api/server/submit_document.h"
#include "api/server/uploads.h"
#include "base/access/directory_owner.h"
#include "host/files/blob_cache.h"
#include "job/spec/cluster_reference.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr int kEndedListed = 100;
constexpr int kUnfinishedListed = 1000;
constexpr int64_t kMaxFileBytes = int64_t{256} << 20;  // of all files of a job
constexpr int kCreated = 201;

// Brings the contents of the manifest among the team's uploads.
Status TakeFiles(const Backend& backend, const SqlAsker& asker, const host::Manifest& manifest,
                 const std::string& blobs, const std::optional<UserIds>& user) {
  if (manifest.bytes() > kMaxFileBytes)
    return ResourceExhausted("the program has more than 256 MiB of files");
  std::set<std::string> seen;
  for (const host::ManifestEntry& entry : manifest.entries) {
    if (entry.kind != host::TreeEntry::Kind::kFile || !seen.insert(entry.sha256).second) continue;
    TRY_ASSIGN(const UploadStatus status, backend.uploads->Find(asker.team, entry.sha256));
    int64_t at = status.received;
    bool complete = status.complete;
    UniqueFd file;
    if (!complete) {
      const FileAccessAs rights(user);
      TRY_ASSIGN(
          file,
          OpenFile(fs::path(blobs) / "blobs" / entry.sha256.substr(0, 2) / entry.sha256, O_RDONLY));
    }
    while (!complete) {
      TRY_ASSIGN(const std::string bytes, rendezvous::ReadAt(file.get(), at, kMaxChunk));
      TRY_ASSIGN(const UploadStatus now,
                 backend.uploads->Append(asker.team, entry.sha256, {at, entry.size, bytes}));
      if (!now.complete && now.received <= at)
        return DataLoss("a file of the program has become shorter");
      at = now.received;
      complete = now.complete;
    }
  }
  return Status::Ok();
}

Status WriteAudit(const Backend& backend, const SqlAsker& asker, const std::string& id,
                  const PlannedDocument& document) {
  controller::AuditEntry entry;
  entry.time = backend.clock->Wall();
  entry.actor = asker.principal.user;
  entry.team = asker.team;
  entry.action = "submitJob";
  entry.object = id;
  entry.detail = {{"name", document.made.job.name},
                  {"engine", document.made.engine},
                  {"status", kCreated},
                  {"token", asker.principal.token_id},
                  {"sql", asker.session}};
  return backend.audit->Append({&entry, 1});
}

json::object ListedJob(const controller::JobRecord& record) {
  json::object listed{{"id", record.id},
                      {"state", job::NameOf(record.state)},
                      {"submitted", record.submitted.time_since_epoch().count()}};
  if (record.state != job::JobState::kSucceeded) listed["reason"] = record.reason;
  const json::object* const learn = FindObject(record.job, "learn");
  const json::object* const algorithm =
      learn == nullptr ? nullptr : FindObject(*learn, "algorithm");
  if (algorithm != nullptr) listed["algorithm"] = GetStringOr(*algorithm, "text", "");
  if (const json::object* const outputs = FindObject(record.job, "outputs"))
    listed["model"] = GetStringOr(*outputs, "model", "");
  return listed;
}

}  // namespace

Status SubmitSqlJob(const Backend& backend, const SqlAsker& asker, const json::object& question,
                    const std::string& id) {
  TRY(backend.readiness->CheckDisk());
  if (!backend.people->IsValid(asker.principal))
    return PermissionDenied("the token of this session's statements is no longer valid");
  controller::StoredSubmission source;
  source.text = GetStringOr(question, "job", "");
  source.team = asker.team;
  source.user = asker.principal.user;
  source.engine = GetStringOr(question, "engine", "");
  if (source.engine.empty()) source.engine = backend.default_engine;
  TRY_ASSIGN(PlannedDocument document, PlanDocument(backend, source));
  if (document.grouped()) return InvalidArgument("a statement is one job");
  document.id = id;
  document.manifest = GetStringOr(question, "manifest", "");
  if (document.made.job.files.empty() != document.manifest.empty())
    return InvalidArgument("the job's files and its manifest do not belong together");
  fs::path tree;
  if (!document.manifest.empty()) {
    TRY_ASSIGN(const host::Manifest manifest, host::ParseManifest(document.manifest));
    TRY(TakeFiles(backend, asker, manifest, GetStringOr(question, "blobs", ""),
                  document.made.user));
    TRY_ASSIGN(tree, MakeFiles(backend, document));
  }
  const Status submitted =
      SubmitDocument(backend, &document, tree, {{kSqlSessionLabel, asker.session}});
  std::error_code ignored;  // a tree that stays is removed at the next start
  if (!tree.empty()) fs::remove_all(tree, ignored);
  TRY(submitted);
  return WriteAudit(backend, asker, id, document);
}

Result<json::object> ListSqlJobs(const Backend& backend, const SqlAsker& asker) {
  using enum job::JobState;
  json::array jobs;
  for (const bool ended : {false, true}) {
    controller::JobFilter filter;
    filter.teams = {asker.team};
    filter.states =
        ended ? std::vector{kSucceeded, kFailed, kCancelled}
              : std::vector{kPending, kAdmitted, kStarting, kRunning, kSuspended, kFinishing};
    TRY_ASSIGN(const controller::JobPage page,
               backend.store->ListPage(filter, "", ended ? kEndedListed : kUnfinishedListed));
    for (const controller::JobSummary& one : page.jobs) {
      const auto record = backend.store->GetJob(one.id);
      if (record.ok()) jobs.push_back(ListedJob(*record));
    }
  }
  return json::object{{"jobs", std::move(jobs)}};
}

Result<std::string> FindSqlJob(const Backend& backend, const SqlAsker& asker,
                               const std::string& prefix) {
  controller::JobFilter filter;
  filter.teams = {asker.team};
  TRY_ASSIGN(const controller::JobPage page,
             backend.store->ListPage(filter, "", kUnfinishedListed));
  const controller::JobSummary* found = nullptr;
  for (const controller::JobSummary& one : page.jobs) {
    if (one.id == prefix) return one.id;
    if (prefix.empty() || !one.id.starts_with(prefix)) continue;
    if (found != nullptr)
      return InvalidArgument(prefix.substr(0, 64) + " is the beginning of several jobs");
    found = &one;
  }
  if (found == nullptr) return NotFound("there is no job " + prefix.substr(0, 64));
  if (asker.principal.RoleIn(asker.team) < Role::kOperator && found->user != asker.principal.user)
    return PermissionDenied("job " + found->id + " is one of " + found->user +
                            "; the role operator may stop it");
  return found->id;
}

json::object SqlAnswer(int64_t number, const Status& status) {
  json::object answer{{"op", "answer"}, {"id", number}};
  if (status.ok()) return answer;
  answer["code"] = static_cast<int>(status.code());
  answer["error"] = status.message();
  return answer;
}

json::object SqlJobAnswer(int64_t number, const controller::JobRecord& record) {
  return {{"op", "answer"},
          {"id", number},
          {"job", record.id},
          {"state", job::NameOf(record.state)},
          {"reason", record.reason},
          {"started", record.started.time_since_epoch().count()},
          {"ended", record.ended.time_since_epoch().count()}};
}

}  // namespace shoal::api
