#include <algorithm>
#include <utility>

#include "api/queues/queues_file.h"
#include "api/server/handlers.h"
#include "queue/status/queue_status.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kNoContent = 204;
constexpr int kForbidden = 403;
constexpr size_t kMemory = 1;
constexpr int64_t kKibibyte = 1024;
constexpr double kThousand = 1000;

// Cores, bytes, devices.
json::value AmountJson(size_t resource, int64_t amount) {
  if (resource == kMemory) return amount * kKibibyte;
  return static_cast<double>(amount) / kThousand;
}

json::object FlavorJson(const queue::FlavorStatus& flavor) {
  json::array resources;
  for (const queue::ResourceStatus& one : flavor.resources)
    resources.push_back({{"resource", queue::kResourceNames[one.resource]},
                         {"nominal", AmountJson(one.resource, one.nominal)},
                         {"used", AmountJson(one.resource, one.used)},
                         {"borrowed", AmountJson(one.resource, one.borrowed)},
                         {"lent", AmountJson(one.resource, one.lent)},
                         {"limited", one.limited}});
  return {{"flavor", flavor.flavor}, {"resources", std::move(resources)}};
}

json::object WaitingJson(const queue::WaitingJobStatus& job) {
  json::object object;
  if (!job.id.empty()) object = {{"id", job.id}, {"name", job.name}, {"user", job.user}};
  object["team"] = job.team;
  object["priority"] = job.priority;
  object["reason"] = job.reason;
  return object;
}

json::object QueueJson(const queue::QueueStatus& queue) {
  json::array flavors;
  for (const queue::FlavorStatus& flavor : queue.flavors) flavors.push_back(FlavorJson(flavor));
  json::array jobs;
  for (const queue::WaitingJobStatus& job : queue.jobs) jobs.push_back(WaitingJson(job));
  json::object object{{"name", queue.name}, {"depth", queue.depth}};
  if (!queue.parent.empty()) object["parent"] = queue.parent;
  object["takes_jobs"] = queue.leaf;
  object["mode"] = queue::NameOf(queue.mode);
  object["weight"] = queue.weight;
  object["share"] = queue.share;
  object["running"] = queue.running;
  object["waiting"] = queue.waiting;
  object["flavors"] = std::move(flavors);
  object["jobs"] = std::move(jobs);
  return object;
}

json::object MachinesJson(const queue::MachineStatus& machines) {
  json::object total;
  json::object used;
  for (size_t r = 0; r < queue::kResources; ++r) {
    if (machines.total[r]) total[queue::kResourceNames[r]] = AmountJson(r, *machines.total[r]);
    used[queue::kResourceNames[r]] = AmountJson(r, machines.used[r]);
  }
  return {{"flavor", machines.flavor}, {"total", std::move(total)}, {"used", std::move(used)}};
}

json::object ReportJson(const queue::QueueReport& report) {
  json::array items;
  for (const queue::QueueStatus& queue : report.queues) items.push_back(QueueJson(queue));
  json::array machines;
  for (const queue::MachineStatus& one : report.machines) machines.push_back(MachinesJson(one));
  return {{"default_queue", report.default_queue},
          {"items", std::move(items)},
          {"machines", std::move(machines)}};
}

// Called on the supervisor's thread; the audit log is written on another.
std::function<void(const Status&)> AnswerNothing(const Backend& backend, const CallPtr& call) {
  return [&backend, call](const Status& done) {
    const bool added = backend.defer([call, done] {
      call->answer(done.ok() ? net::HttpServerReply{kNoContent, {}, ""} : Problem(done));
    });
    if (!added) call->exchange->Reply(Problem(Unavailable("the server is busy; try again")));
  };
}

// True for an operator of a team that the queue or one above it names.
bool MayOperate(const Principal& principal, const queue::Policy& policy, std::string name) {
  // The tree has no cycles, and not more levels than queues.
  for (size_t depth = 0; depth < policy.queues.size() && !name.empty(); ++depth) {
    const auto queue = std::ranges::find(policy.queues, name, &queue::QueueSpec::name);
    if (queue == policy.queues.end()) return false;
    for (const std::string& team : queue->operators)
      if (principal.RoleIn(team) >= Role::kOperator) return true;
    name = queue->parent;
  }
  return false;
}

}  // namespace

void ListQueues(const Backend& backend, const CallPtr& call) {
  queue::Viewer viewer{.all = call->principal.administrator};
  for (const auto& [team, role] : call->principal.teams)
    if (role >= Role::kViewer) viewer.teams.insert(team);
  backend.supervisor->queues().Report(viewer, [call](const queue::QueueReport& report) {
    call->answer(JsonReply(kOk, ReportJson(report)));
  });
}

void ReloadQueues(const Backend& backend, const CallPtr& call) {
  call->target = backend.queues_file.string();
  ReloadQueues(backend.queues_file, &backend.supervisor->queues(), AnswerNothing(backend, call));
}

void SetQueueMode(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("queue");
  const std::string mode = call->arguments.Text("mode");
  call->details = {{"mode", mode}};
  controller::QueueManager& queues = backend.supervisor->queues();
  const auto policy = queues.policy();
  if (!call->principal.administrator &&
      !(policy && MayOperate(call->principal, *policy, call->target)))
    return call->answer(Problem(
        kForbidden, "queue " + call->target +
                        " may be changed by administrators, and by operators of the teams that "
                        "the policy names in `operators`"));
  queues.SetMode(call->target, queue::ParseQueueMode(mode).value_or(queue::QueueMode::kOpen),
                 call->principal.user, AnswerNothing(backend, call));
}

}  // namespace shoal::api
