// Webhooks: URLs that are told of changes of jobs' states, one set for the server and one for each
// team. Their records, and how far each has been told (docs/webhooks.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "controller/secrets/secret_vault.h"
#include "controller/store/records.h"
#include "net/http_client.h"

namespace shoal::api {

// kJson: the message of Standard Webhooks. kSlack: {"text": …} of Slack's incoming webhooks.
enum class WebhookFormat : uint8_t { kJson, kSlack };
std::string_view NameOf(WebhookFormat format);

// Plain value; `url` and `secret` are secret.
struct Webhook {
  std::string team;  // empty: the server's, for the jobs of all teams
  std::string name;
  WebhookFormat format = WebhookFormat::kJson;
  std::vector<std::string> events;  // without "job."; see kWebhookEvents
  std::string url;
  std::string secret;  // "whsec_" and the key in base64
  std::string by;      // the user who set it
  WallTime changed{};
};

// The events that a webhook can ask for, and those that it gets if it does not.
inline constexpr const char* kWebhookEvents[] = {"submitted", "admitted", "starting",  "running",
                                                 "suspended", "queued",   "finishing", "succeeded",
                                                 "failed",    "cancelled"};
inline constexpr const char* kDefaultWebhookEvents[] = {"submitted", "running", "suspended",
                                                        "succeeded", "failed",  "cancelled"};

// The place that a URL names: where to connect, and the target of the request.
struct WebhookUrl {
  std::string base;    // "https://host:443"
  std::string target;  // "/path?query"
};
// InvalidArgument if it is not http(s)://HOST[:PORT][/PATH][?QUERY], or has a user name.
Result<WebhookUrl> ParseWebhookUrl(const std::string& url);
// The URL without what may be secret: "https://host:443/…".
std::string PlaceOf(const std::string& url);
// "whsec_" and 24 to 64 bytes in base64. InvalidArgument otherwise, without any part of the text.
Status CheckWebhookSecret(const std::string& secret);

// How far a webhook has been told. Plain value.
struct WebhookProgress {
  int64_t position = 0;   // the events up to it are delivered, dropped or not asked for
  int64_t delivered = 0;  // messages
  int64_t dropped = 0;    // messages that were given up
  std::string error;      // of the last attempt; empty: it succeeded
  WallTime failing_since{};
  bool disabled = false;  // the receiver answered 410; until it is set again
};

// The stored webhooks. Thread-safe; blocks on the store.
class Webhooks {
 public:
  static constexpr size_t kMaxOfTeam = 20;
  static constexpr size_t kMax = 1000;

  // All must outlive it. URLs and secrets are sealed by `vault`.
  Webhooks(controller::Records* records, controller::SecretVault* vault, const Clock* clock)
      : records_(records), vault_(vault), clock_(clock) {}

  // By name, without URL and secret but with the URL's place ("https://host/…") in `url`.
  Result<std::vector<Webhook>> List(const std::string& team);
  // All of them, with URL and secret. One that cannot be read is left out and logged.
  Result<std::vector<Webhook>> ReadAll();
  // Makes it or replaces it, in which case an empty URL or secret stays as it was; otherwise an
  // empty secret is made. Returns it as stored. A new one is told of events after `position`.
  // ResourceExhausted over the limits.
  Result<Webhook> Set(Webhook webhook, int64_t position);
  // NotFound.
  Status Remove(const std::string& team, const std::string& name);

  // Of a webhook that exists; otherwise the default.
  Result<WebhookProgress> ReadProgress(const std::string& team, const std::string& name);
  Status SaveProgress(const std::string& team, const std::string& name,
                      const WebhookProgress& progress);

 private:
  Result<std::vector<controller::Record>> ReadRecords(const std::string& prefix, size_t most);
  Status Unseal(Webhook* webhook);
  Status CheckRoom(const std::string& team);

  controller::Records* const records_;
  controller::SecretVault* const vault_;
  const Clock* const clock_;
};

}  // namespace shoal::api
