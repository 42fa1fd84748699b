// The messages that webhooks get: which events make one, their texts, and the signature of Standard
// Webhooks 1.0 (https://www.standardwebhooks.com).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/webhooks/webhook.h"
#include "base/clock.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "net/http.h"

namespace shoal::api {

// A change of a job's state. Plain value.
struct JobChange {
  std::string id;     // of the message: the same for each attempt and after a restart
  std::string event;  // of kWebhookEvents
  std::string reason;
  WallTime time{};
  int64_t position = 0;
  std::string job;  // its id
  std::string team;
  std::string name;  // these three may be empty if the job has been removed meanwhile
  std::string user;
  std::string engine;
};

// nullopt for an event that is no change of state. Name, user and engine are left empty.
std::optional<JobChange> ChangeOf(const controller::StoredEvent& event, std::string_view store_id);

// The body in the webhook's format.
std::string RenderMessage(WebhookFormat format, const JobChange& change);

// "v1," and the base64 of HMAC-SHA256 over "ID.SECONDS.BODY". `secret` must have passed
// CheckWebhookSecret.
std::string SignMessage(const std::string& secret, const std::string& id, int64_t seconds,
                        const std::string& body);

// The whole request. InvalidArgument for a URL that is none.
Result<net::HttpRequest> RenderWebhookRequest(const Webhook& webhook, const JobChange& change,
                                              WallTime now);

}  // namespace shoal::api
