#include "api/server/handlers.h"
#include "controller/retention/log_keeper.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kNoContent = 204;

void AnswerPolicy(const CallPtr& call, const Result<Policy>& policy) {
  if (!policy.ok()) return call->answer(Problem(policy.status()));
  call->answer(JsonReply(kOk, ToJson(*policy)));
}

// `team` empty: the policy of the teams without one.
void StorePolicy(const Backend& backend, const CallPtr& call, const std::string& team) {
  call->team = team;
  call->target = team;
  const Result<Policy> policy = ParsePolicy(call->arguments.body);
  if (!policy.ok()) return call->answer(Problem(policy.status()));
  call->details = ToJson(*policy);
  const Status team_exists = team.empty() ? Status::Ok() : backend.people->GetTeam(team).status();
  if (!team_exists.ok()) return call->answer(Problem(team_exists));
  const Status stored = backend.policies->Set(team, *policy);
  if (stored.ok() && backend.observability.log_keeper != nullptr)
    backend.observability.log_keeper->CheckLimits();
  AnswerPolicy(call, stored.ok() ? policy : Result<Policy>(stored));
}

void DropPolicy(const Backend& backend, const CallPtr& call, const std::string& team) {
  call->team = team;
  call->target = team;
  const Status removed = backend.policies->Remove(team);
  if (!removed.ok()) return call->answer(Problem(removed));
  call->answer({kNoContent, {}, ""});
}

}  // namespace

void GetDefaultPolicy(const Backend& backend, const CallPtr& call) {
  AnswerPolicy(call, backend.policies->Get(""));
}
void SetDefaultPolicy(const Backend& backend, const CallPtr& call) {
  StorePolicy(backend, call, "");
}
void RemoveDefaultPolicy(const Backend& backend, const CallPtr& call) {
  DropPolicy(backend, call, "");
}

void GetPolicy(const Backend& backend, const CallPtr& call) {
  AnswerPolicy(call, backend.policies->Of(call->team));
}
void SetPolicy(const Backend& backend, const CallPtr& call) {
  StorePolicy(backend, call, call->arguments.PathText("team"));
}
void RemovePolicy(const Backend& backend, const CallPtr& call) {
  DropPolicy(backend, call, call->arguments.PathText("team"));
}

}  // namespace shoal::api
