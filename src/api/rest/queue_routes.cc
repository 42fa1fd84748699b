#include "api/rest/queue_routes.h"

#include <utility>

namespace shoal::api {
namespace {

constexpr size_t kSmallestBody = size_t{64} << 10;

}  // namespace

// Rows of a table: several fields in a line.
// clang-format off
std::vector<Route> QueueRoutes(std::vector<Parameter> submission) {
  using enum Access;
  return {
      {.operation = Operation::kTryJob, .method = Method::kPost, .path = "/api/v1/dry-run",
       .name = "tryJob",
       .doc = "Says whether a job would start now, else why not, when, and which changes of it would "
              "start it; submits nothing",
       .access = kTeam, .role = Role::kMember, .scope = Scope::kJobsRead, .body = Body::kJson,
       .fields = std::move(submission), .max_body = size_t{2} << 20, .schema = "Trial"},
      {.operation = Operation::kListQueues, .path = "/api/v1/queues", .name = "listQueues",
       .doc = "The queues with their quotas, what they use, and who waits for what. Jobs of other "
              "teams have no names",
       .access = kAnyTeam, .role = Role::kViewer, .scope = Scope::kJobsRead, .schema = "Queues"},
      {.operation = Operation::kReloadQueues, .method = Method::kPost,
       .path = "/api/v1/queues/reload", .name = "reloadQueues",
       .doc = "Reads the file of `shoal server --queues` again. 422 with its errors; 409 if jobs "
              "would be stranded: the policy in force then stays",
       .access = kServer, .scope = Scope::kJobsWrite, .audited = Audited::kChange,
       .body = Body::kJson, .max_body = kSmallestBody, .status = 204, .reply = Reply::kNothing},
      {.operation = Operation::kSetQueueMode, .method = Method::kPut,
       .path = "/api/v1/queues/{queue}/mode", .name = "setQueueMode",
       .doc = "Holds, drains or resumes a queue; for administrators, and for operators of the "
              "teams that the policy names in `operators`",
       .access = kAnyTeam, .role = Role::kOperator, .scope = Scope::kJobsWrite,
       .audited = Audited::kChange, .body = Body::kJson,
       .fields = {{.name = "mode", .required = true, .choices = "open|hold|drain",
                   .doc = "`open` resumes it"}},
       .max_body = kSmallestBody, .status = 204, .reply = Reply::kNothing},
      {.operation = Operation::kReadUsage, .path = "/api/v1/usage", .name = "readUsage",
       .doc = "What jobs have held in some months, by month, team, user, queue and engine; of removed "
              "jobs too. Of the teams that the user is in",
       .access = kAnyTeam, .role = Role::kViewer, .scope = Scope::kJobsRead,
       .query = {{.name = "from", .least = 7, .most = 7,
                  .doc = "The first month, such as 2026-11 [`to`]"},
                 {.name = "to", .least = 7, .most = 7, .doc = "The last month [this one, of UTC]"},
                 {.name = "team", .least = 1, .doc = "Only jobs of this team"}},
       .schema = "Usage"},
  };
}
// clang-format on

}  // namespace shoal::api
