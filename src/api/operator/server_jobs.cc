#include "api/operator/server_jobs.h"

#include <algorithm>
#include <functional>
#include <future>
#include <set>
#include <utility>

#include "api/rest/problem.h"
#include "api/server/prepare_job.h"
#include "api/server/readiness.h"
#include "api/server/submit_document.h"
#include "base/id.h"
#include "base/log.h"
#include "controller/groups/job_groups.h"
#include "job/spec/json.h"

namespace shoal::api {
namespace {

constexpr size_t kIdDigits = 6;
// Ids of one ShoalJob, of which the first that no other job has is used.
constexpr int kIds = 4;
constexpr const char* kGroupKind = "shoaljob";  // records of those that are groups, by uid
constexpr const char* kWorkerRole = "worker";

// The same for every attempt, so that an interrupted submission is found again.
std::string JobIdOf(const ShoalJob& object, int number) {
  std::string id = NewJobId(object.key.name);
  const std::string digest = Sha256Hex(object.uid + "\n" + std::to_string(number));
  return id.replace(id.size() - kIdDigits, kIdDigits, digest, 0, kIdDigits);
}

std::string LabelOf(const controller::JobRecord& record, const char* label) {
  const auto found = record.labels.find(label);
  return found == record.labels.end() ? std::string() : found->second;
}

void Count(const controller::TaskRecord& task, TaskCounts* counts) {
  if (task.state == job::TaskState::kRunning || task.state == job::TaskState::kDraining)
    ++counts->running;
  if (task.state != job::TaskState::kEnded || task.will_restart || !task.end) return;
  ++(task.end->ok() ? counts->succeeded : counts->failed);
}

// Errors of the job file, with the fields of the object in place of lines and columns.
Status OfSpec(const Status& status) {
  if (status.code() != Code::kInvalidArgument && status.code() != Code::kPermissionDenied)
    return status;
  std::string text;
  for (const FieldError& error : ParseJobFileErrors(status.message(), kJobFileName)) {
    text += text.empty() ? "" : "; ";
    if (!error.field.empty()) text += "spec.job." + error.field + ": ";
    text += error.message;
  }
  return {status.code(), text.empty() ? status.message() : text};
}

// Waits for the answer to a command of the supervisor.
Status Await(const std::function<void(controller::Supervisor::Done)>& command) {
  std::promise<Status> answer;
  command([&answer](const Status& status) { answer.set_value(status); });
  return answer.get_future().get();
}

class ServerJobs final : public OperatorJobs {
 public:
  ServerJobs(const Backend* backend, OperatorTeams teams, std::string engine)
      : backend_(*backend), teams_(std::move(teams)), engine_(std::move(engine)) {}

  Result<std::optional<OperatedJob>> Find(const ShoalJob& object) override {
    std::vector<std::string> ids;
    if (const std::string known = object.StatusText("job"); !known.empty()) ids.push_back(known);
    for (int i = 0; i < kIds; ++i) ids.push_back(JobIdOf(object, i));
    for (const std::string& id : ids) {
      const Result<controller::JobRecord> record = backend_.store->GetJob(id);
      if (record.status().code() == Code::kNotFound) continue;
      TRY(record.status());
      if (LabelOf(*record, kShoalJobUidLabel) != object.uid) continue;
      TRY_ASSIGN(OperatedJob job, ViewOf(*record));
      return std::optional(std::move(job));
    }
    return FindGroup(object);
  }

  Status Submit(const ShoalJob& object) override {
    TRY(backend_.readiness->CheckDisk());
    TRY_ASSIGN(PlannedDocument document, Plan(object));
    if (document.grouped()) return SubmitGroup(object, &document);
    const controller::JobLabels labels{{kShoalJobUidLabel, object.uid},
                                       {kShoalJobNameLabel, object.key.text()},
                                       {kShoalJobDigestLabel, FrozenDigest(object.job)}};
    Status submitted;
    for (int i = 0; i < kIds; ++i) {
      document.id = JobIdOf(object, i);
      submitted = SubmitDocument(backend_, &document, {}, labels);
      if (submitted.code() != Code::kAlreadyExists) break;
      const Result<controller::JobRecord> other = backend_.store->GetJob(document.id);
      if (other.ok() && LabelOf(*other, kShoalJobUidLabel) == object.uid) return Status::Ok();
    }
    if (submitted.ok()) WriteAudit(object, document);
    return OfSpec(submitted);
  }

  Status Scale(const OperatedJob& job, const std::string& role, int replicas) override {
    return Await([&](controller::Supervisor::Done done) {
      backend_.supervisor->Scale(job.id, role, replicas, Why("scaled"), std::move(done));
    });
  }
  Status Suspend(const OperatedJob& job) override {
    return Await([&](controller::Supervisor::Done done) {
      backend_.supervisor->Suspend(job.id, Why("suspended"), std::move(done));
    });
  }
  Status Resume(const OperatedJob& job) override {
    return Await([&](controller::Supervisor::Done done) {
      backend_.supervisor->Resume(job.id, std::move(done));
    });
  }
  Status Stop(const OperatedJob& job) override {
    const std::string why = "its ShoalJob was deleted";
    if (job.group) return backend_.groups->Stop(job.id, why, false);
    return Await([&](controller::Supervisor::Done done) {
      backend_.supervisor->Drain(job.id, why, std::move(done));
    });
  }

 private:
  static std::string Why(const char* what) { return std::string(what) + " by its ShoalJob"; }

  Result<std::string> TeamOf(const std::string& name_space) const {
    const auto found = teams_.by_namespace.find(name_space);
    const std::string team = found == teams_.by_namespace.end() ? teams_.others : found->second;
    if (!team.empty()) return team;
    return PermissionDenied("the namespace " + name_space +
                            " belongs to no team of the server; its administrator adds "
                            "--operator-team " +
                            name_space + "=TEAM");
  }

  // An administrator may have disabled the service account, or taken it out of the team.
  Status CheckUser(const std::string& team) const {
    TRY_ASSIGN(const User user, backend_.people->GetUser(kOperatorUser));
    const auto role = user.teams.find(team);
    const bool may = role != user.teams.end() && role->second >= Role::kMember;
    if (may && !user.disabled) return Status::Ok();
    return PermissionDenied(
        std::string("the service account ") + kOperatorUser +
        (user.disabled ? " is disabled" : " may not submit jobs of the team " + team) +
        "; an administrator of the server can change that");
  }

  // What a job of this namespace may not say, and what the server could not do.
  Status CheckSpec(const ShoalJob& object) const {
    if (object.job.contains("files"))
      return InvalidArgument(
          "spec.job.files: a ShoalJob carries no files; put them into the image, or into a volume "
          "(kubernetes.volumes)");
    const json::object* const section = FindObject(object.job, "kubernetes");
    if (section == nullptr) return Status::Ok();
    if (section->contains("context"))
      return PermissionDenied(
          "spec.job.kubernetes.context: a ShoalJob runs in the cluster that it is in; leave it "
          "out");
    const std::string name_space = GetStringOr(*section, "namespace", object.key.name_space);
    if (name_space == object.key.name_space) return Status::Ok();
    return PermissionDenied("spec.job.kubernetes.namespace: got " + name_space +
                            ", but a ShoalJob runs in its own namespace, " + object.key.name_space +
                            "; leave it out");
  }

  Result<PlannedDocument> Plan(const ShoalJob& object) const {
    TRY(CheckSpec(object));
    controller::StoredSubmission source;
    source.text = JobFileOf(object);
    source.set = {"kubernetes.namespace=" + object.key.name_space};
    TRY_ASSIGN(source.team, TeamOf(object.key.name_space));
    TRY(CheckUser(source.team));
    source.user = kOperatorUser;
    source.engine = engine_;
    Result<PlannedDocument> document = PlanDocument(backend_, source);
    if (!document.ok()) return OfSpec(document.status());
    const std::string& name_space = document->made.job.kubernetes.name_space;
    if (name_space != object.key.name_space)
      return PermissionDenied(
          "the policy of team " + source.team + " sets kubernetes.namespace to " + name_space +
          ", and a ShoalJob runs in its own namespace, " + object.key.name_space);
    return document;
  }

  Result<OperatedJob> ViewOf(const controller::JobRecord& record) {
    OperatedJob view;
    view.id = record.id;
    view.state = record.state;
    view.reason = record.reason;
    view.digest = LabelOf(record, kShoalJobDigestLabel);
    view.submitted = record.submitted;
    view.started = record.started;
    view.ended = record.ended;
    const std::vector<std::string> running = backend_.supervisor->running();
    view.released = std::ranges::find(running, record.id) == running.end();
    TRY_ASSIGN(const std::vector<controller::TaskRecord> tasks,
               backend_.store->ListTasks(record.id));
    std::map<std::string, TaskCounts> roles;
    if (const Result<job::Job> job = job::FromJson(record.job); job.ok()) {
      for (const job::Role& role : job->roles) {
        view.replicas[role.name] = role.replicas;
        roles[role.name].total = role.replicas;
      }
    }
    std::map<std::string, int> seen;
    for (const controller::TaskRecord& task : tasks) {
      if (task.role == controller::kCoordinatorRole) continue;
      Count(task, &roles[task.role]);
      ++seen[task.role];
    }
    for (auto& [role, counts] : roles) {
      counts.total = std::max(counts.total, seen[role]);
      view.tasks.total += counts.total;
      view.tasks.running += counts.running;
      view.tasks.succeeded += counts.succeeded;
      view.tasks.failed += counts.failed;
    }
    view.workers = roles.contains(kWorkerRole) ? roles[kWorkerRole] : view.tasks;
    return view;
  }

  // ---- Jobs of a matrix or sweep ----

  Result<std::optional<OperatedJob>> FindGroup(const ShoalJob& object) {
    const Result<controller::Record> record = backend_.records->Get(kGroupKind, object.uid);
    if (record.status().code() == Code::kNotFound) return std::optional<OperatedJob>();
    TRY(record.status());
    const std::string id = GetStringOr(record->body, "group", "");
    const auto group = controller::ReadGroup(backend_.store, id);
    if (group.status().code() == Code::kNotFound) return std::optional<OperatedJob>();
    TRY(group.status());
    OperatedJob view;
    view.id = id;
    view.group = true;
    view.state = group->state;
    view.reason = group->reason;
    view.digest = GetStringOr(record->body, "digest", "");
    view.submitted = group->submitted;
    view.started = group->submitted;
    view.ended = group->ended;
    using controller::MemberState;
    view.tasks.total = static_cast<int>(group->members.size());
    view.tasks.running = static_cast<int>(group->Count(MemberState::kUnfinished));
    view.tasks.succeeded = static_cast<int>(group->Count(MemberState::kSucceeded));
    view.tasks.failed =
        static_cast<int>(group->Count(MemberState::kFailed) + group->Count(MemberState::kRefused));
    view.workers = view.tasks;
    for (const std::string& running : backend_.supervisor->running())
      view.released = view.released && !running.starts_with(id + "-");
    return std::optional(std::move(view));
  }

  Status SubmitGroup(const ShoalJob& object, PlannedDocument* document) {
    document->id = JobIdOf(object, 0);
    const json::object body{{"group", document->id}, {"digest", FrozenDigest(object.job)}};
    // Before the group: one without a record would be submitted again.
    TRY(backend_.records
            ->Put(kGroupKind, object.uid, body, controller::kAnyVersion, backend_.clock->Wall())
            .status());
    const Status submitted = SubmitDocument(backend_, document, {}, {});
    if (submitted.ok()) WriteAudit(object, *document);
    if (submitted.code() == Code::kAlreadyExists) {
      const auto other = controller::ReadGroup(backend_.store, document->id);
      if (other.ok() && other->source.text == document->source.text) return Status::Ok();
    }
    return OfSpec(submitted);
  }

  void WriteAudit(const ShoalJob& object, const PlannedDocument& document) {
    controller::AuditEntry entry;
    entry.time = backend_.clock->Wall();
    entry.actor = kOperatorUser;
    entry.team = document.source.team;
    entry.action = "submitJob";
    entry.object = document.id;
    entry.detail = {{"shoaljob", object.key.text()},
                    {"uid", object.uid},
                    {"name", document.made.job.name},
                    {"engine", engine_}};
    const Status written = backend_.audit->Append({&entry, 1});
    if (!written.ok()) LogError("the audit log cannot be written: {}", written.message());
  }

  const Backend& backend_;
  const OperatorTeams teams_;
  const std::string engine_;
};

}  // namespace

Result<OperatorTeams> ParseOperatorTeams(const std::vector<std::string>& arguments) {
  OperatorTeams teams;
  if (arguments.empty()) teams.others = kFirstTeam;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const std::string name_space = argument.substr(0, equals);
    const std::string team = equals == std::string::npos ? "" : argument.substr(equals + 1);
    if (name_space.empty() || team.empty())
      return InvalidArgument("--operator-team: got " + argument +
                             ", expected NAMESPACE=TEAM, or *=TEAM for all other namespaces");
    std::string& place = name_space == "*" ? teams.others : teams.by_namespace[name_space];
    if (!place.empty())
      return InvalidArgument("--operator-team: got " + name_space + " twice, expected one team");
    place = team;
  }
  return teams;
}

Status MakeOperatorUser(const OperatorTeams& teams, People* people) {
  Result<User> user = people->GetUser(kOperatorUser);
  if (user.status().code() == Code::kNotFound) {
    User made;
    made.name = kOperatorUser;
    made.service = true;
    user = people->CreateUser(made);
  }
  TRY(user.status());
  std::set<std::string> names;
  for (const auto& [name_space, team] : teams.by_namespace) names.insert(team);
  if (!teams.others.empty()) names.insert(teams.others);
  for (const std::string& team : names) {
    if (const Status known = people->GetTeam(team).status(); !known.ok())
      return known.With("--operator-team");
    if (user->teams.contains(team)) continue;
    TRY(people->SetMembership(team, kOperatorUser, Role::kMember).status());
  }
  return Status::Ok();
}

std::unique_ptr<OperatorJobs> MakeServerJobs(const Backend* backend, OperatorTeams teams,
                                             const std::string& engine) {
  return std::make_unique<ServerJobs>(backend, std::move(teams), engine);
}

}  // namespace shoal::api
