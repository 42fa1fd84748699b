#include <algorithm>
#include <utility>

#include "api/server/handlers.h"
#include "api/webhooks/dispatcher.h"
#include "api/webhooks/webhook.h"
#include "job/spec/cluster_reference.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kNoContent = 204;

json::object WebhookJson(const Webhook& webhook, const WebhookProgress& progress) {
  json::array events;
  for (const std::string& event : webhook.events) events.emplace_back(event);
  json::object object{{"name", webhook.name},
                      {"url", webhook.url},
                      {"format", NameOf(webhook.format)},
                      {"events", std::move(events)},
                      {"changed", FormatWall(webhook.changed)},
                      {"by", webhook.by},
                      {"position", progress.position},
                      {"delivered", progress.delivered},
                      {"dropped", progress.dropped},
                      {"disabled", progress.disabled}};
  if (!progress.error.empty()) object["error"] = progress.error;
  if (progress.failing_since != WallTime())
    object["failing_since"] = FormatWall(progress.failing_since);
  return object;
}

// `team` empty: the server's.
void AnswerWebhooks(const Backend& backend, const CallPtr& call, const std::string& team) {
  const auto webhooks = backend.observability.webhooks->List(team);
  if (!webhooks.ok()) return call->answer(Problem(webhooks.status()));
  json::array items;
  for (const Webhook& webhook : *webhooks) {
    const auto progress = backend.observability.webhooks->ReadProgress(team, webhook.name);
    if (!progress.ok()) return call->answer(Problem(progress.status()));
    items.push_back(WebhookJson(webhook, *progress));
  }
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

Result<json::object> StoreWebhook(const Backend& backend, const CallPtr& call,
                                  const std::string& team) {
  const Arguments& arguments = call->arguments;
  Webhook webhook;
  webhook.team = team;
  webhook.name = call->target;
  webhook.url = arguments.Text("url");
  webhook.secret = arguments.Text("secret");
  webhook.events = arguments.Texts("events");
  webhook.by = call->principal.user;
  if (arguments.Text("format") == NameOf(WebhookFormat::kSlack))
    webhook.format = WebhookFormat::kSlack;
  if (!job::IsSecretName(webhook.name))
    return InvalidArgument("name: got " + ToText(json::value(webhook.name)) +
                           ", expected 1 to 63 letters, digits, '-', '_' and '.', the first a "
                           "letter or digit");
  if (!team.empty()) TRY(backend.people->GetTeam(team).status());
  TRY_ASSIGN(const std::vector<Webhook> before, backend.observability.webhooks->List(team));
  TRY_ASSIGN(const int64_t position, backend.store->LastPosition());
  const bool given = !webhook.secret.empty();
  TRY_ASSIGN(Webhook stored, backend.observability.webhooks->Set(std::move(webhook), position));
  backend.observability.dispatcher->Reload();
  TRY_ASSIGN(const WebhookProgress progress,
             backend.observability.webhooks->ReadProgress(team, stored.name));
  const std::string secret = std::exchange(stored.secret, "");
  stored.url = PlaceOf(stored.url);
  json::object object = WebhookJson(stored, progress);
  const bool is_new = std::ranges::find(before, stored.name, &Webhook::name) == before.end();
  if (is_new && !given) object["secret"] = secret;
  return object;
}

void SetWebhookOf(const Backend& backend, const CallPtr& call, const std::string& team) {
  call->team = team;
  call->target = call->arguments.PathText("name");
  const auto stored = StoreWebhook(backend, call, team);
  if (!stored.ok()) return call->answer(Problem(stored.status()));
  call->answer(JsonReply(kOk, *stored));
}

void RemoveWebhookOf(const Backend& backend, const CallPtr& call, const std::string& team) {
  call->team = team;
  call->target = call->arguments.PathText("name");
  const Status removed = backend.observability.webhooks->Remove(team, call->target);
  if (!removed.ok()) return call->answer(Problem(removed));
  backend.observability.dispatcher->Reload();
  call->answer({kNoContent, {}, ""});
}

}  // namespace

void ListServerWebhooks(const Backend& backend, const CallPtr& call) {
  AnswerWebhooks(backend, call, "");
}
void SetServerWebhook(const Backend& backend, const CallPtr& call) {
  SetWebhookOf(backend, call, "");
}
void RemoveServerWebhook(const Backend& backend, const CallPtr& call) {
  RemoveWebhookOf(backend, call, "");
}
void ListWebhooks(const Backend& backend, const CallPtr& call) {
  AnswerWebhooks(backend, call, call->team);
}
void SetWebhook(const Backend& backend, const CallPtr& call) {
  SetWebhookOf(backend, call, call->arguments.PathText("team"));
}
void RemoveWebhook(const Backend& backend, const CallPtr& call) {
  RemoveWebhookOf(backend, call, call->arguments.PathText("team"));
}

}  // namespace shoal::api
