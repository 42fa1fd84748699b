#include "api/webhooks/webhook.h"

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "base/id.h"
#include "base/log.h"

namespace shoal::api {
namespace {

using controller::kAbsent;
using controller::kAnyVersion;
using controller::Record;

constexpr const char* kKind = "webhook";
constexpr const char* kProgressKind = "webhook-progress";
constexpr const char* kSecretPrefix = "whsec_";
constexpr size_t kLeastKey = 24;  // bytes, as the specification of Standard Webhooks has it
constexpr size_t kMostKey = 64;
constexpr int kPage = 1000;

std::string KeyOf(const std::string& team, const std::string& name) { return team + "/" + name; }

// Beside the secrets of teams, whose names have no colon.
std::string VaultOf(const std::string& team) { return ":webhooks/" + team; }

Webhook ParseRecord(const Record& record) {
  Webhook webhook;
  const size_t slash = record.key.find('/');
  webhook.team = record.key.substr(0, slash);
  webhook.name = record.key.substr(slash + 1);
  webhook.format = GetStringOr(record.body, "format", "") == NameOf(WebhookFormat::kSlack)
                       ? WebhookFormat::kSlack
                       : WebhookFormat::kJson;
  webhook.url = GetStringOr(record.body, "place", "");
  webhook.by = GetStringOr(record.body, "by", "");
  webhook.changed = record.changed;
  if (const json::value* events = record.body.if_contains("events");
      events != nullptr && events->is_array())
    for (const json::value& event : events->get_array())
      if (event.is_string()) webhook.events.emplace_back(event.get_string());
  return webhook;
}

json::object ToBody(const Webhook& webhook) {
  json::array events;
  for (const std::string& event : webhook.events) events.emplace_back(event);
  return {{"format", NameOf(webhook.format)},
          {"events", std::move(events)},
          {"place", PlaceOf(webhook.url)},
          {"by", webhook.by}};
}

Status CheckEvents(const std::vector<std::string>& events) {
  std::string known;
  for (const char* event : kWebhookEvents)
    known += (known.empty() ? "" : ", ") + std::string(event);
  for (const std::string& event : events) {
    if (std::ranges::find(kWebhookEvents, event) == std::end(kWebhookEvents))
      return InvalidArgument("events: got " + ToText(json::value(event)) + ", expected one of " +
                             known);
  }
  return Status::Ok();
}

}  // namespace

std::string_view NameOf(WebhookFormat format) {
  return format == WebhookFormat::kSlack ? "slack" : "json";
}

Result<WebhookUrl> ParseWebhookUrl(const std::string& url) {
  const size_t query = std::min(url.find('?'), url.size());
  const auto parsed = net::ParseUrl(url.substr(0, query));
  const bool clean = std::ranges::none_of(
      url, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '#' || c == '\x7f'; });
  // Not the URL itself: it may be a secret.
  if (!parsed.ok() || !clean || !parsed->user_info.empty())
    return InvalidArgument(
        "url: expected http://HOST[:PORT]/PATH or https://…, without a user name, blanks and '#'");
  const size_t path = url.find('/', url.find("://") + 3);
  WebhookUrl result;
  result.base = url.substr(0, std::min(path, query));
  result.target = path < query ? url.substr(path) : "/" + url.substr(query);
  return result;
}

std::string PlaceOf(const std::string& url) {
  const size_t host = url.find("://");
  const size_t slash = url.find_first_of("/?", host == std::string::npos ? 0 : host + 3);
  return slash == std::string::npos ? url : url.substr(0, slash) + "/…";
}

Status CheckWebhookSecret(const std::string& secret) {
  const std::string wrong = "secret: expected whsec_ and 24 to 64 bytes in base64";
  if (!secret.starts_with(kSecretPrefix)) return InvalidArgument(wrong);
  const auto key = DecodeBase64(secret.substr(std::string_view(kSecretPrefix).size()));
  if (!key.ok() || key->size() < kLeastKey || key->size() > kMostKey) return InvalidArgument(wrong);
  return Status::Ok();
}

Result<std::vector<Record>> Webhooks::ReadRecords(const std::string& prefix, size_t most) {
  std::vector<Record> records;
  std::string after;
  do {
    TRY_ASSIGN(controller::RecordPage page, records_->List(kKind, prefix, after, kPage));
    std::ranges::move(page.records, std::back_inserter(records));
    after = page.next;
  } while (!after.empty() && records.size() < most);
  return records;
}

Result<std::vector<Webhook>> Webhooks::List(const std::string& team) {
  TRY_ASSIGN(const std::vector<Record> records, ReadRecords(KeyOf(team, ""), kMaxOfTeam));
  std::vector<Webhook> all;
  for (const Record& record : records) all.push_back(ParseRecord(record));
  return all;
}

Status Webhooks::Unseal(Webhook* webhook) {
  TRY_ASSIGN(const std::string text, vault_->Read(VaultOf(webhook->team), webhook->name));
  TRY_ASSIGN(const json::object sealed, ParseJsonObject(text));
  TRY_ASSIGN(webhook->url, GetString(sealed, "url"));
  TRY_ASSIGN(webhook->secret, GetString(sealed, "secret"));
  return Status::Ok();
}

Result<std::vector<Webhook>> Webhooks::ReadAll() {
  TRY_ASSIGN(const std::vector<Record> records, ReadRecords("", kMax));
  std::vector<Webhook> all;
  for (const Record& record : records) {
    Webhook webhook = ParseRecord(record);
    const Status unsealed = Unseal(&webhook);
    if (unsealed.ok()) {
      all.push_back(std::move(webhook));
    } else {
      LogWarning("the webhook {} gets no messages: {}", record.key, unsealed.message());
    }
  }
  return all;
}

Status Webhooks::CheckRoom(const std::string& team) {
  TRY_ASSIGN(const std::vector<Record> own, ReadRecords(KeyOf(team, ""), kMaxOfTeam));
  if (own.size() >= kMaxOfTeam)
    return ResourceExhausted("there are " + std::to_string(own.size()) +
                             " webhooks already, as many as a team may have; remove one");
  TRY_ASSIGN(const std::vector<Record> all, ReadRecords("", kMax));
  if (all.size() < kMax) return Status::Ok();
  return ResourceExhausted("the server has as many webhooks as it may have; remove one");
}

Result<Webhook> Webhooks::Set(Webhook webhook, int64_t position) {
  const std::string key = KeyOf(webhook.team, webhook.name);
  const auto before = records_->Get(kKind, key);
  if (!before.ok() && before.status().code() != Code::kNotFound) return before.status();
  if (!before.ok()) TRY(CheckRoom(webhook.team));
  if (before.ok() && (webhook.url.empty() || webhook.secret.empty())) {
    Webhook old = ParseRecord(*before);
    TRY(Unseal(&old));
    if (webhook.url.empty()) webhook.url = old.url;
    if (webhook.secret.empty()) webhook.secret = old.secret;
  }
  TRY(CheckEvents(webhook.events));
  if (webhook.events.empty())
    webhook.events.assign(std::begin(kDefaultWebhookEvents), std::end(kDefaultWebhookEvents));
  TRY(ParseWebhookUrl(webhook.url).status());
  // The key's bytes are hex digits: 192 random bits.
  if (webhook.secret.empty()) webhook.secret = kSecretPrefix + EncodeBase64(RandomHex(kLeastKey));
  TRY(CheckWebhookSecret(webhook.secret));
  // Last what makes it one: a server that dies in between leaves nothing that is told.
  const json::object sealed{{"url", webhook.url}, {"secret", webhook.secret}};
  TRY(vault_->Set(VaultOf(webhook.team), webhook.name, ToText(sealed), webhook.by));
  TRY_ASSIGN(WebhookProgress progress, ReadProgress(webhook.team, webhook.name));
  if (!before.ok()) progress = {};
  if (!before.ok()) progress.position = position;
  progress.disabled = false;
  progress.error.clear();
  TRY(SaveProgress(webhook.team, webhook.name, progress));
  TRY(records_->Put(kKind, key, ToBody(webhook), kAnyVersion, clock_->Wall()).status());
  webhook.changed = clock_->Wall();
  return webhook;
}

Status Webhooks::Remove(const std::string& team, const std::string& name) {
  const std::string key = KeyOf(team, name);
  const Status removed = records_->Delete(kKind, key, kAnyVersion, clock_->Wall());
  if (removed.code() == Code::kNotFound)
    return NotFound("there is no webhook " + name + (team.empty() ? "" : " of team " + team));
  TRY(removed);
  (void)records_->Delete(kProgressKind, key, kAnyVersion, clock_->Wall());
  (void)vault_->Remove(VaultOf(team), name);
  return Status::Ok();
}

Result<WebhookProgress> Webhooks::ReadProgress(const std::string& team, const std::string& name) {
  const auto record = records_->Get(kProgressKind, KeyOf(team, name));
  WebhookProgress progress;
  if (!record.ok()) {
    if (record.status().code() == Code::kNotFound) return progress;
    return record.status();
  }
  progress.position = GetIntOr(record->body, "position", 0);
  progress.delivered = GetIntOr(record->body, "delivered", 0);
  progress.dropped = GetIntOr(record->body, "dropped", 0);
  progress.error = GetStringOr(record->body, "error", "");
  progress.failing_since =
      WallTime(std::chrono::microseconds(GetIntOr(record->body, "failing_since", 0)));
  progress.disabled = GetBoolOr(record->body, "disabled", false);
  return progress;
}

Status Webhooks::SaveProgress(const std::string& team, const std::string& name,
                              const WebhookProgress& progress) {
  const json::object body{{"position", progress.position},
                          {"delivered", progress.delivered},
                          {"dropped", progress.dropped},
                          {"error", progress.error},
                          {"failing_since", progress.failing_since.time_since_epoch().count()},
                          {"disabled", progress.disabled}};
  return records_->Put(kProgressKind, KeyOf(team, name), body, kAnyVersion, clock_->Wall())
      .status();
}

}  // namespace shoal::api
