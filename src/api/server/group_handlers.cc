// Groups: the jobs of a matrix or a sweep together.
#include <map>
#include <utility>

#include "api/rest/job_json.h"
#include "api/server/handlers.h"
#include "controller/groups/job_groups.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kAccepted = 202;

using controller::GroupRecord;
using controller::MemberState;

json::object GroupToReply(const GroupRecord& group) {
  json::object counts;
  for (const MemberState state :
       {MemberState::kWaiting, MemberState::kUnfinished, MemberState::kSucceeded,
        MemberState::kFailed, MemberState::kCancelled, MemberState::kStopped,
        MemberState::kRefused}) {
    const size_t count = group.Count(state);
    if (count > 0) counts[controller::NameOf(state)] = count;
  }
  json::object reply{{"id", group.id},
                     {"name", group.name},
                     {"state", group.stop_reason.empty() || job::IsFinal(group.state)
                                   ? job::NameOf(group.state)
                                   : std::string_view("stopping")},
                     {"reason", job::IsFinal(group.state) ? group.reason : group.stop_reason},
                     {"team", group.source.team},
                     {"user", group.source.user},
                     {"engine", group.source.engine},
                     {"submitted", FormatWall(group.submitted)},
                     {"size", group.members.size()},
                     {"limit", group.limit()},
                     {"counts", std::move(counts)}};
  if (group.ended > WallTime()) reply["ended"] = FormatWall(group.ended);
  if (group.has_sweep()) {
    reply["objective"] = group.triggers.sweep.objective;
    reply["goal"] =
        group.triggers.sweep.goal == job::SweepGoal::kMinimize ? "minimize" : "maximize";
  }
  return reply;
}

// The states of the members' jobs that have not ended, by their ids.
Result<std::map<std::string, job::JobState>> LiveStates(const Backend& backend,
                                                        const std::string& group) {
  controller::JobFilter filter;
  filter.labels[controller::kGroupLabel] = group;
  filter.states = {job::JobState::kPending, job::JobState::kAdmitted,  job::JobState::kStarting,
                   job::JobState::kRunning, job::JobState::kSuspended, job::JobState::kFinishing};
  std::map<std::string, job::JobState> states;
  std::string after;
  do {
    TRY_ASSIGN(const controller::JobPage page,
               backend.store->ListPage(filter, after, static_cast<int>(kMaxPage)));
    for (const controller::JobSummary& job : page.jobs) states[job.id] = job.state;
    after = page.next;
  } while (!after.empty());
  return states;
}

Result<json::array> MembersToReply(const Backend& backend, const GroupRecord& group) {
  TRY_ASSIGN(const auto live, LiveStates(backend, group.id));
  json::array items;
  for (const controller::MemberView& view : controller::MembersOfGroup(group)) {
    const std::string id = controller::MemberId(group.id, view.index);
    json::object values;
    for (const auto& [name, text] : view.values) values[name] = text;
    json::object item{{"index", view.index},
                      {"id", id},
                      {"state", controller::NameOf(view.state)},
                      {"values", std::move(values)}};
    if (const auto found = live.find(id); found != live.end())
      item["state"] = view.state == MemberState::kStopped ? std::string_view("stopping")
                                                          : job::NameOf(found->second);
    if (view.objective) item["objective"] = *view.objective;
    if (view.rung >= 0) item["rung"] = view.rung + 1;
    if (const auto why = group.refusals.find(view.index); why != group.refusals.end())
      item["reason"] = why->second;
    items.push_back(std::move(item));
  }
  return items;
}

// The group of the path. NotFound also for one of another team.
Result<GroupRecord> GroupOf(const Backend& backend, const CallPtr& call) {
  const std::string id = call->arguments.PathText("id");
  call->target = id;
  Result<GroupRecord> group = controller::ReadGroup(backend.store, id);
  if (group.ok() && group->source.team == call->team) return group;
  if (group.ok() || group.status().code() == Code::kNotFound)
    return NotFound("the team " + call->team + " has no group " + id +
                    "; GET /api/v1/groups lists them");
  return group.status();
}

// A member may change its own groups, an operator all.
Status CheckOwner(const Call& call, const GroupRecord& group) {
  const bool own = group.source.user == call.principal.user;
  if (own || call.principal.RoleIn(call.team) >= Role::kOperator) return Status::Ok();
  return PermissionDenied("group " + group.id + " is one of " + group.source.user +
                          "; the role operator in the team " + call.team + " may change it");
}

}  // namespace

void ListGroups(const Backend& backend, const CallPtr& call) {
  const auto limit = static_cast<size_t>(call->arguments.Integer("limit", kDefaultPage));
  std::string after = call->arguments.Text("after");
  json::array items;
  do {
    const auto page = backend.records->List(controller::kGroupKind, call->arguments.Text("id"),
                                            after, static_cast<int>(kDefaultPage));
    if (!page.ok()) return call->answer(QueryProblem(page.status()));
    after = page->next;
    for (const controller::Record& record : page->records) {
      const auto group = controller::ParseGroup(record.key, record.body);
      if (!group.ok() || call->principal.RoleIn(group->source.team) == Role::kNone) continue;
      items.push_back(GroupToReply(*group));
      if (items.size() < limit) continue;
      after = record.key;
      break;
    }
  } while (!after.empty() && items.size() < limit);
  json::object reply{{"items", std::move(items)}};
  if (!after.empty()) reply["next"] = after;
  call->answer(JsonReply(kOk, reply));
}

void GetGroup(const Backend& backend, const CallPtr& call) {
  const auto group = GroupOf(backend, call);
  if (!group.ok()) return call->answer(Problem(group.status()));
  const auto members = MembersToReply(backend, *group);
  if (!members.ok()) return call->answer(Problem(members.status()));
  json::object reply = GroupToReply(*group);
  reply["items"] = *members;
  call->answer(JsonReply(kOk, reply));
}

void StopGroup(const Backend& backend, const CallPtr& call) {
  const auto group = GroupOf(backend, call);
  if (!group.ok()) return call->answer(Problem(group.status()));
  if (const Status owner = CheckOwner(*call, *group); !owner.ok())
    return call->answer(Problem(owner));
  const bool now = call->arguments.Boolean("now", false);
  call->details = {{"now", now}};
  const Status stopped = backend.groups->Stop(group->id, "stopped by " + call->principal.user, now);
  if (!stopped.ok()) return call->answer(Problem(stopped));
  const auto after = controller::ReadGroup(backend.store, group->id);
  if (!after.ok()) return call->answer(Problem(after.status()));
  call->answer(JsonReply(kAccepted, GroupToReply(*after)));
}

void RemoveGroup(const Backend& backend, const CallPtr& call) {
  const auto group = GroupOf(backend, call);
  if (!group.ok()) return call->answer(Problem(group.status()));
  if (const Status owner = CheckOwner(*call, *group); !owner.ok())
    return call->answer(Problem(owner));
  const Status removed = backend.groups->Remove(group->id);
  if (!removed.ok()) return call->answer(Problem(removed));
  constexpr int kNoContent = 204;
  call->answer({kNoContent, {}, ""});
}

}  // namespace shoal::api
