#include <filesystem>
#include <optional>
#include <utility>

#include "api/rest/job_json.h"
#include "api/server/handlers.h"
#include "api/server/idempotency.h"
#include "api/server/readiness.h"
#include "api/server/uploads.h"
#include "controller/files/log_store.h"
#include "job/execution/plan.h"
#include "job/file/parse.h"
#include "job/text/field_locations.h"
#include "learn/preflight.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr int kOk = 200;
constexpr int kCreated = 201;
constexpr int kNoRoom = 507;
constexpr const char* kFileName = "job.yaml";  // in messages

// A job of a request with what its submission needs.
struct ParsedJob {
  job::Job job;
  job::FieldLocations locations;
  std::string engine;
  std::string directory;  // where programs start; empty: the job's own
};

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

Result<std::string> EngineOf(const Backend& backend, const Call& call) {
  std::string engine = call.arguments.Text("engine");
  if (engine.empty()) engine = backend.default_engine;
  if (!backend.engines->KindOf(engine).empty()) return engine;
  std::string names;
  for (const std::string& name : backend.engines->names())
    names += (names.empty() ? "" : ", ") + name;
  return InvalidArgument("engine: got " + engine + ", expected one of: " + names);
}

// The directory that relative paths of the job refer to: the one of the request, else one of the
// team.
Result<std::string> FolderOf(const Backend& backend, const Call& call) {
  const std::string named = call.arguments.Text("directory");
  if (!named.empty() && named.front() != '/')
    return InvalidArgument("directory: got " + named + ", expected an absolute path");
  if (!named.empty()) return named;
  const fs::path folder = backend.home.root() / "work" / call.team;
  TRY(MakeDirectories(folder, 0700));
  return folder.string();
}

controller::JobValidation ValidationOf(const Backend& backend, const ParsedJob& parsed) {
  const bool here = controller::ReadsLocalPaths(backend.engines->KindOf(parsed.engine), parsed.job);
  const auto where = here ? learn::DataLocation::kLocal : learn::DataLocation::kRemote;
  return {.locations = parsed.locations,
          .learn = [where](const job::Job& job) { return learn::ValidateLearn(job, where); }};
}

// Parses the job file, with the fields that the team's policy sets. PermissionDenied if the file
// itself gives one of them another value.
Status ParseWithPolicy(const Call& call, const Policy& policy, ParsedJob* parsed) {
  const std::string text = call.arguments.Text("file");
  std::vector<std::string> overrides = call.arguments.Texts("set");
  TRY_ASSIGN(parsed->job, job::ParseJob(text, kFileName, overrides, &parsed->locations));
  if (policy.fields.empty()) return Status::Ok();
  const std::vector<std::string> fixed = OverridesOf(policy);
  overrides.insert(overrides.end(), fixed.begin(), fixed.end());
  TRY_ASSIGN(job::Job with, job::ParseJob(text, kFileName, overrides));
  const bool changes = !(with == parsed->job);
  for (const auto& [field, value] : policy.fields) {
    if (!changes || !parsed->locations.Has(field)) continue;
    // Another field may be the one that changes: what this one alone does decides.
    std::vector<std::string> alone = call.arguments.Texts("set");
    alone.push_back(field + "=" + value);
    TRY_ASSIGN(const job::Job one, job::ParseJob(text, kFileName, alone));
    if (!(one == parsed->job))
      return PermissionDenied(parsed->locations.Prefix(kFileName, field) + field +
                              ": the team's policy sets it to " + value + "; leave it out");
  }
  parsed->job = std::move(with);
  return Status::Ok();
}

Result<ParsedJob> ParseJobOf(const Backend& backend, const Call& call) {
  ParsedJob parsed;
  TRY_ASSIGN(parsed.engine, EngineOf(backend, call));
  TRY_ASSIGN(const Policy policy, backend.policies->Of(call.team));
  TRY(ParseWithPolicy(call, policy, &parsed));
  TRY_ASSIGN(const std::string folder, FolderOf(backend, call));
  job::ResolvePaths(parsed.locations, folder, folder, &parsed.job);
  TRY(CheckPolicy(policy, {.job = parsed.job,
                           .locations = parsed.locations,
                           .engine = parsed.engine,
                           .directory = call.arguments.Text("directory")}));
  std::error_code error;
  if (fs::is_directory(folder, error)) parsed.directory = folder;
  if (!parsed.job.on_controller_loss) parsed.job.on_controller_loss = job::OnControllerLoss::kKeep;
  backend.engines->SetDefaults(parsed.engine, &parsed.job);
  return parsed;
}

// Errors of the job file with their lines and columns; others as they are.
net::HttpServerReply JobProblem(const Status& status) {
  if (status.code() == Code::kResourceExhausted) return Problem(kNoRoom, status.message());
  if (status.code() != Code::kInvalidArgument) return Problem(status);
  return Problem(ParseJobFileErrors(status.message(), kFileName));
}

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
  TRY_ASSIGN(ParsedJob parsed, ParseJobOf(backend, *call));
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
  return backend.supervisor->Submit(parsed.job, options);
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

void PlanJob(const Backend& backend, const CallPtr& call) {
  Result<ParsedJob> parsed = ParseJobOf(backend, *call);
  if (!parsed.ok()) return call->answer(JobProblem(parsed.status()));
  parsed->job.files.clear();  // they are not uploaded for a plan
  const Status valid = controller::ValidateJob(parsed->job, ValidationOf(backend, *parsed));
  if (!valid.ok()) return call->answer(JobProblem(valid));
  const Result<job::Plan> plan = job::MakePlan(parsed->job);
  if (!plan.ok()) return call->answer(JobProblem(plan.status()));
  call->answer(JsonReply(kOk, job::PlanToJson(parsed->job, *plan)));
}

}  // namespace shoal::api
