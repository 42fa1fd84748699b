#include "api/webhooks/message.h"

#include <algorithm>
#include <utility>

#include "base/base64.h"
#include "base/id.h"
#include "base/json.h"

namespace shoal::api {
namespace {

constexpr size_t kMaxReason = 4096;
constexpr int kHexBase = 16;

std::string BytesOfHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, kHexBase));
  return bytes;
}

// The three characters that Slack gives a meaning.
std::string SlackText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string Verb(const std::string& event) {
  if (event == "submitted") return "was submitted";
  if (event == "admitted") return "was admitted";
  if (event == "queued") return "is queued again";
  if (event == "succeeded" || event == "failed") return event;
  if (event == "suspended" || event == "cancelled") return "was " + event;
  return "is " + event;
}

std::string SlackMessage(const JobChange& change) {
  const std::string& name = change.name.empty() ? change.job : change.name;
  std::string text = "*" + SlackText(name) + "* " + Verb(change.event);
  if (!change.reason.empty()) text += ": " + SlackText(change.reason);
  text += "\n`" + SlackText(change.job) + "`";
  if (!change.team.empty()) text += ", team " + SlackText(change.team);
  if (!change.user.empty()) text += ", by " + SlackText(change.user);
  return ToText(json::object{{"text", text}});
}

}  // namespace

std::optional<JobChange> ChangeOf(const controller::StoredEvent& stored,
                                  std::string_view store_id) {
  JobChange change;
  change.event = stored.event.type;
  if (change.event == "ended") change.event = GetStringOr(stored.event.body, "state", "");
  if (change.event == "pending") change.event = "queued";
  if (std::ranges::find(kWebhookEvents, change.event) == std::end(kWebhookEvents))
    return std::nullopt;
  change.id = "evt_" + std::string(store_id) + "_" + std::to_string(stored.position);
  change.reason = GetStringOr(stored.event.body, "reason", "").substr(0, kMaxReason);
  change.time = stored.event.time;
  change.position = stored.position;
  change.job = stored.job;
  change.team = stored.team;
  return change;
}

std::string RenderMessage(WebhookFormat format, const JobChange& change) {
  if (format == WebhookFormat::kSlack) return SlackMessage(change);
  json::object data{{"job", change.job},       {"name", change.name},
                    {"team", change.team},     {"user", change.user},
                    {"engine", change.engine}, {"event", change.event},
                    {"reason", change.reason}, {"position", change.position}};
  return ToText(json::object{{"type", "job." + change.event},
                             {"timestamp", FormatWall(change.time)},
                             {"data", std::move(data)}});
}

std::string SignMessage(const std::string& secret, const std::string& id, int64_t seconds,
                        const std::string& body) {
  const auto key = DecodeBase64(secret.substr(secret.find('_') + 1));
  const std::string signed_text = id + "." + std::to_string(seconds) + "." + body;
  return "v1," + EncodeBase64(BytesOfHex(HmacSha256Hex(key.ok() ? *key : "", signed_text)));
}

Result<net::HttpRequest> RenderWebhookRequest(const Webhook& webhook, const JobChange& change,
                                              WallTime now) {
  TRY_ASSIGN(const WebhookUrl url, ParseWebhookUrl(webhook.url));
  const int64_t seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  net::HttpRequest request;
  request.method = "POST";
  request.target = url.target;
  request.body = RenderMessage(webhook.format, change);
  request.headers = {
      {"Content-Type", "application/json"},
      {"User-Agent", "shoal-webhook"},
      {"webhook-id", change.id},
      {"webhook-timestamp", std::to_string(seconds)},
      {"webhook-signature", SignMessage(webhook.secret, change.id, seconds, request.body)}};
  return request;
}

}  // namespace shoal::api
