#include "api/rest/webhook_routes.h"

namespace shoal::api {
namespace {

constexpr int64_t kMaxUrl = 2048;
constexpr int64_t kMaxSecret = 128;
constexpr int64_t kMaxEvents = 10;
constexpr size_t kMaxWebhookBody = size_t{64} << 10;

// clang-format off
std::vector<Parameter> WebhookFields() {
  return {{.name = "url", .least = 1, .most = kMaxUrl,
           .doc = "Where messages are sent; stored sealed [as before]"},
          {.name = "format", .choices = "json|slack", .doc = "Their format [json]"},
          {.name = "events", .kind = Kind::kTexts, .most = kMaxEvents,
           .doc = "submitted, admitted, starting, running, suspended, queued, finishing, succeeded, "
                  "failed, cancelled [submitted, running, suspended, succeeded, failed, cancelled]"},
          {.name = "secret", .least = 1, .most = kMaxSecret,
           .doc = "The key of signatures, `whsec_` and 24 to 64 bytes in base64 [as before, else a "
                  "new one]"}};
}

}  // namespace

std::vector<Route> WebhookRoutes() {
  using enum Access;
  const auto read = Scope::kJobsRead;
  const auto write = Scope::kJobsWrite;
  return {
      {.operation = Operation::kListServerWebhooks, .path = "/api/v1/webhooks",
       .name = "listServerWebhooks",
       .doc = "The webhooks for the jobs of all teams, with how far each was told (docs/webhooks.md)",
       .access = kServer, .scope = read, .schema = "Webhooks"},
      {.operation = Operation::kSetServerWebhook, .method = Method::kPut,
       .path = "/api/v1/webhooks/{name}", .name = "setServerWebhook",
       .doc = "Makes or replaces one. The reply of a new one has its secret, once",
       .access = kServer, .scope = write, .audited = Audited::kChange, .body = Body::kJson,
       .fields = WebhookFields(), .max_body = kMaxWebhookBody, .schema = "Webhook"},
      {.operation = Operation::kRemoveServerWebhook, .method = Method::kDelete,
       .path = "/api/v1/webhooks/{name}", .name = "removeServerWebhook", .doc = "Removes one",
       .access = kServer, .scope = write, .audited = Audited::kChange, .status = 204,
       .reply = Reply::kNothing},
      {.operation = Operation::kListWebhooks, .path = "/api/v1/teams/{team}/webhooks",
       .name = "listWebhooks", .doc = "The webhooks for the team's jobs", .access = kTeam,
       .role = Role::kMember, .scope = read, .schema = "Webhooks"},
      {.operation = Operation::kSetWebhook, .method = Method::kPut,
       .path = "/api/v1/teams/{team}/webhooks/{name}", .name = "setWebhook",
       .doc = "Makes or replaces one. The reply of a new one has its secret, once",
       .access = kTeam, .role = Role::kOperator, .scope = write, .audited = Audited::kChange,
       .body = Body::kJson, .fields = WebhookFields(), .max_body = kMaxWebhookBody,
       .schema = "Webhook"},
      {.operation = Operation::kRemoveWebhook, .method = Method::kDelete,
       .path = "/api/v1/teams/{team}/webhooks/{name}", .name = "removeWebhook",
       .doc = "Removes one", .access = kTeam, .role = Role::kOperator, .scope = write,
       .audited = Audited::kChange, .status = 204, .reply = Reply::kNothing},
  };
}
// clang-format on

}  // namespace shoal::api
