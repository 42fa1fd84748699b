#include <utility>

#include "api/rest/job_json.h"
#include "api/server/handlers.h"
#include "base/access/directory_owner.h"
#include "controller/recovery/prune.h"
#include "controller/usage/usage.h"
#include "job/file/write_yaml.h"
#include "job/spec/json.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kAccepted = 202;
constexpr int kNoContent = 204;

// Answers with the job as it is now.
void AnswerJob(const Backend& backend, const CallPtr& call, int status) {
  const auto job = backend.store->GetJob(call->job->id);
  if (!job.ok()) return call->answer(Problem(job.status()));
  net::HttpServerReply reply = JsonReply(status, JobToReply(*job, true));
  reply.headers.emplace_back("ETag", ETagOf(*job));
  call->answer(std::move(reply));
}

// Answers once the supervisor has accepted the command. Called on its thread, so the answer, which
// reads the store, is left to another.
controller::Supervisor::Done AnswerDone(const Backend& backend, const CallPtr& call) {
  return [&backend, call](const Status& accepted) {
    const bool added = backend.defer([&backend, call, accepted] {
      if (!accepted.ok()) return call->answer(Problem(accepted));
      AnswerJob(backend, call, kAccepted);
    });
    if (!added) call->exchange->Reply(Problem(Unavailable("the server is busy; try again")));
  };
}

std::string By(const Call& call, std::string_view what) {
  return std::string(what) + " by " + call.principal.user;
}

Result<std::vector<job::JobState>> ParseStates(const std::string& text) {
  std::vector<job::JobState> states;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    const auto state = job::ParseJobState(name);
    if (!state)
      return InvalidArgument("query parameter state: got " + name +
                             ", expected states such as running or failed");
    states.push_back(*state);
    at = end + 1;
  }
  return states;
}

// A page of the jobs whose ids begin with `prefix`: reads pages until it is full. O(jobs).
Result<controller::JobPage> ListByIds(const Backend& backend, const controller::JobFilter& filter,
                                      const std::string& prefix, const Call& call) {
  const auto limit = static_cast<size_t>(call.arguments.Integer("limit", kDefaultPage));
  controller::JobPage found;
  found.next = call.arguments.Text("after");
  do {
    TRY_ASSIGN(controller::JobPage page,
               backend.store->ListPage(filter, found.next, static_cast<int>(kMaxPage)));
    for (controller::JobSummary& job : page.jobs)
      if (job.id.starts_with(prefix)) found.jobs.push_back(std::move(job));
    found.next = page.next;
  } while (!found.next.empty() && found.jobs.size() < limit);
  return found;
}

}  // namespace

void ListJobs(const Backend& backend, const CallPtr& call) {
  const Arguments& arguments = call->arguments;
  controller::JobFilter filter;
  const auto states = ParseStates(arguments.Text("state"));
  if (!states.ok()) return call->answer(QueryProblem(states.status()));
  filter.states = *states;
  filter.name_prefix = arguments.Text("name");
  filter.user = arguments.Text("user");
  filter.engine = arguments.Text("engine");
  filter.since = WallOf(arguments.Integer("since", 0));
  filter.until = WallOf(arguments.Integer("until", 0));
  const std::string team = arguments.Text("team");
  if (!team.empty() && call->principal.RoleIn(team) == Role::kNone)
    return call->answer(JsonReply(kOk, json::object{{"items", json::array()}}));
  if (!team.empty()) filter.teams = {team};
  if (team.empty() && !call->principal.administrator)
    for (const auto& [name, role] : call->principal.teams) filter.teams.push_back(name);
  const std::string id = arguments.Text("id");
  const auto page = id.empty() ? backend.store->ListPage(
                                     filter, arguments.Text("after"),
                                     static_cast<int>(arguments.Integer("limit", kDefaultPage)))
                               : ListByIds(backend, filter, id, *call);
  if (!page.ok()) return call->answer(QueryProblem(page.status()));
  json::array items;
  for (const controller::JobSummary& job : page->jobs) items.push_back(SummaryToReply(job));
  json::object object{{"items", std::move(items)}};
  if (!page->next.empty()) object["next"] = page->next;
  call->answer(JsonReply(kOk, object));
}

void GetJob(const Backend& /*backend*/, const CallPtr& call) {
  net::HttpServerReply reply = JsonReply(kOk, JobToReply(*call->job, true));
  const std::string tag = ETagOf(*call->job);
  if (call->request().Header("if-none-match") == tag) reply = {304, {}, ""};
  reply.headers.emplace_back("ETag", tag);
  call->answer(std::move(reply));
}

void GetJobFile(const Backend& /*backend*/, const CallPtr& call) {
  Result<job::Job> job = job::FromJson(call->job->job);
  if (!job.ok()) return call->answer(Problem(job.status().With("job " + call->job->id)));
  job->files.clear();  // where the server has put them, for that job only
  call->answer(
      {kOk,
       {{"Content-Type", "text/plain; charset=utf-8"}, {"X-Content-Type-Options", "nosniff"}},
       job::WriteYaml(*job)});
}

void WhyJob(const Backend& backend, const CallPtr& call) {
  const controller::JobRecord& job = *call->job;
  const auto answer = [state = std::string(job::NameOf(job.state)), reason = job.reason,
                       call](const controller::WhyWaits& why) {
    json::array changes;
    for (const std::string& change : why.changes) changes.emplace_back(change);
    call->answer(JsonReply(kOk, json::object{{"state", state},
                                             {"reason", why.waits ? why.reason : reason},
                                             {"changes", std::move(changes)},
                                             {"forecast", why.forecast}}));
  };
  if (job.state != job::JobState::kPending) return answer({});
  backend.supervisor->Why(job.id, answer);
}

void StopJob(const Backend& backend, const CallPtr& call) {
  if (job::IsFinal(call->job->state)) return AnswerJob(backend, call, kAccepted);
  const bool now = call->arguments.Boolean("now", false);
  call->details = {{"now", now}};
  if (now) {
    backend.supervisor->Kill(call->job->id, By(*call, "stopped"), AnswerDone(backend, call));
  } else {
    backend.supervisor->Drain(call->job->id, By(*call, "stopped"), AnswerDone(backend, call));
  }
}

void SuspendJob(const Backend& backend, const CallPtr& call) {
  backend.supervisor->Suspend(call->job->id, By(*call, "suspended"), AnswerDone(backend, call));
}

void ResumeJob(const Backend& backend, const CallPtr& call) {
  backend.supervisor->Resume(call->job->id, AnswerDone(backend, call));
}

void ScaleJob(const Backend& backend, const CallPtr& call) {
  const std::string role = call->arguments.Text("role");
  const int replicas = static_cast<int>(call->arguments.Integer("replicas", 0));
  call->details = {{"role", role}, {"replicas", replicas}};
  backend.supervisor->Scale(call->job->id, role, replicas, By(*call, "scaled"),
                            AnswerDone(backend, call));
}

void RemoveJob(const Backend& backend, const CallPtr& call) {
  const std::string& id = call->job->id;
  if (!job::IsFinal(call->job->state))
    return call->answer(Problem(
        FailedPrecondition("job " + id + " is " + std::string(job::NameOf(call->job->state)) +
                           ", and only an ended job can be removed; stop it first")));
  const Status cleared = RemoveOwnedDirectory(backend.home.job_dir(id));
  if (!cleared.ok())
    return call->answer(Problem(
        Unavailable("the directory of " + id + " cannot be removed: " + cleared.message())));
  const Status counted = controller::KeepUsage(backend.store, id, backend.clock->Wall());
  if (!counted.ok()) return call->answer(Problem(counted));
  const Status removed = backend.store->Remove(id);
  if (!removed.ok()) return call->answer(Problem(removed));
  call->answer({kNoContent, {}, ""});
}

void ListTasks(const Backend& backend, const CallPtr& call) {
  const auto tasks = backend.store->ListTasks(call->job->id);
  if (!tasks.ok()) return call->answer(Problem(tasks.status()));
  json::array items;
  for (const controller::TaskRecord& task : *tasks) items.push_back(controller::ToJson(task));
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

}  // namespace shoal::api
