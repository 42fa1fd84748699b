#include <filesystem>
#include <optional>
#include <utility>

#include "api/catalog/gates.h"
#include "api/rest/job_json.h"
#include "api/server/handlers.h"
#include "api/server/idempotency.h"
#include "api/server/prepare_job.h"
#include "api/server/readiness.h"
#include "api/server/uploads.h"
#include "base/access/directory_owner.h"
#include "job/execution/plan.h"
#include "queue/why/forecast.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr int kOk = 200;
constexpr int kCreated = 201;

// Removes a tree that was made for the submission.
class TreeGuard {
 public:
  explicit TreeGuard(fs::path path) : path_(std::move(path)) {}
  ~TreeGuard() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TreeGuard(const TreeGuard&) = delete;
  TreeGuard& operator=(const TreeGuard&) = delete;

 private:
  const fs::path path_;
};

Result<host::Manifest> ManifestOf(const Call& call, const ParsedJob& parsed) {
  const std::string text = call.arguments.Text("manifest");
  if (text.empty() && parsed.job.files.empty()) return host::Manifest();
  if (text.empty())
    return InvalidArgument(
        "files: the request has no manifest; upload the files first, as `shoal submit` does "
        "(docs/rest.md)");
  if (parsed.job.files.empty())
    return InvalidArgument("manifest: the job has no `files`, which would use them");
  return host::ParseManifest(text);
}

Result<std::string> Submit(const Backend& backend, const CallPtr& call, const std::string& label) {
  TRY(backend.readiness->CheckDisk());
  TRY_ASSIGN(ParsedJob parsed, PrepareJob(backend, SubmissionOf(backend, *call)));
  TRY_ASSIGN(const host::Manifest manifest, ManifestOf(*call, parsed));
  fs::path tree;
  if (!parsed.job.files.empty()) {
    TRY_ASSIGN(tree, backend.uploads->MakeTree(call->team, manifest));
    parsed.job.files = tree.string();
  }
  const TreeGuard guard(tree);
  controller::SubmitOptions options;
  options.engine = parsed.engine;
  options.team = call->team;
  options.user = call->principal.user;
  if (!label.empty()) options.labels[kIdempotencyLabel] = label;
  options.work_dir = parsed.directory;
  options.validation = ValidationOf(backend, parsed);
  call->details = {{"name", parsed.job.name}, {"engine", parsed.engine}};
  TRY(backend.tables.gates->Keep(parsed.job, options.team, options.user));
  auto id = backend.supervisor->Submit(parsed.job, options);
  if (!id.ok()) backend.tables.gates->Forget(parsed.job);
  return id;
}

void AnswerSubmitted(const Backend& backend, const CallPtr& call, const std::string& id,
                     bool again) {
  call->target = id;
  const auto job = backend.store->GetJob(id);
  if (!job.ok()) return call->answer(Problem(job.status()));
  net::HttpServerReply reply = JsonReply(kCreated, JobToReply(*job, true));
  reply.headers.emplace_back("ETag", ETagOf(*job));
  reply.headers.emplace_back("Location", std::string(kApiPrefix) + "/jobs/" + id);
  if (again) reply.headers.emplace_back("Idempotency-Replayed", "true");
  call->answer(std::move(reply));
}

// When the job would start, if that is known, and how sure that is.
void AddForecast(const queue::Forecast& forecast, json::object* to) {
  if (forecast.at >= queue::kForever) return;
  (*to)["expected_start"] = FormatWall(WallTime(forecast.at));
  (*to)["confidence"] = forecast.confidence;
}

}  // namespace

void SubmitJob(const Backend& backend, const CallPtr& call) {
  const std::string key(call->request().Header("idempotency-key"));
  if (key.empty()) {
    const Result<std::string> id = Submit(backend, call, "");
    if (!id.ok()) return call->answer(JobProblem(id.status()));
    return AnswerSubmitted(backend, call, *id, false);
  }
  Result<Reservation> reservation =
      Reserve(backend, {call->principal.user, key, call->request().body});
  if (!reservation.ok()) return call->answer(Problem(reservation.status()));
  if (!reservation->job.empty()) return AnswerSubmitted(backend, call, reservation->job, true);
  const Result<std::string> id = Submit(backend, call, reservation->record_key);
  if (!id.ok()) {
    Release(backend, *reservation);
    return call->answer(JobProblem(id.status()));
  }
  Fulfil(backend, *reservation, *id);
  AnswerSubmitted(backend, call, *id, false);
}

void TryJob(const Backend& backend, const CallPtr& call) {
  Result<ParsedJob> parsed = PrepareJob(backend, SubmissionOf(backend, *call));
  if (!parsed.ok()) return call->answer(JobProblem(parsed.status()));
  parsed->job.files.clear();  // they are not uploaded for a trial
  Status valid = controller::ValidateJob(parsed->job, ValidationOf(backend, *parsed));
  if (valid.ok()) valid = backend.supervisor->queues().CheckQueue(parsed->job);
  if (!valid.ok()) return call->answer(JobProblem(valid));
  controller::JobRecord record;
  record.id = "(new)";
  record.name = parsed->job.name;
  record.engine = parsed->engine;
  record.team = call->team;
  record.user = call->principal.user;
  const auto answer = [call](const Result<queue::SubmissionTrial>& trial) {
    if (!trial.ok()) return call->answer(Problem(trial.status()));
    json::array changes;
    for (const std::string& change : trial->changes) changes.emplace_back(change);
    json::object reply{{"starts", trial->starts},      {"refused", trial->refused},
                       {"preempts", trial->preempts},  {"reason", trial->reason},
                       {"flavor", trial->flavor},      {"tasks", trial->size},
                       {"changes", std::move(changes)}};
    AddForecast(trial->forecast, &reply);
    call->answer(JsonReply(kOk, reply));
  };
  backend.supervisor->queues().Try(record, parsed->job, answer);
}

void PlanJob(const Backend& backend, const CallPtr& call) {
  Result<ParsedJob> parsed = PrepareJob(backend, SubmissionOf(backend, *call));
  if (!parsed.ok()) return call->answer(JobProblem(parsed.status()));
  parsed->job.files.clear();  // they are not uploaded for a plan
  // What a plan says must not tell of files that the job's user cannot read.
  const FileAccessAs rights(parsed->user);
  const Status valid = controller::ValidateJob(parsed->job, ValidationOf(backend, *parsed));
  if (!valid.ok()) return call->answer(JobProblem(valid));
  const Result<job::Plan> plan = job::MakePlan(parsed->job);
  if (!plan.ok()) return call->answer(JobProblem(plan.status()));
  call->answer(JsonReply(kOk, job::PlanToJson(parsed->job, *plan)));
}

}  // namespace shoal::api
