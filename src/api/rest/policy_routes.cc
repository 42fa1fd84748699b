#include "api/rest/policy_routes.h"

namespace shoal::api {
namespace {

constexpr int64_t kMaxLogBytes = int64_t{1} << 50;
constexpr size_t kPolicyBody = size_t{512} << 10;

std::vector<Parameter> PolicyFields() {
  return {
      {.name = "engines",
       .kind = Kind::kTexts,
       .most = 1000,
       .doc = "Names of the engines that jobs may use, `*` for any text [all]"},
      {.name = "images",
       .kind = Kind::kTexts,
       .most = 1000,
       .doc = "Patterns of the images that jobs may use [all]"},
      {.name = "paths",
       .kind = Kind::kTexts,
       .most = 1000,
       .doc = "Directories in which data, outputs, volumes and directories of jobs lie [all]"},
      {.name = "forbidden",
       .kind = Kind::kTexts,
       .most = 1000,
       .doc = "Patterns of fields that job files must not have [none]"},
      {.name = "fields",
       .kind = Kind::kObject,
       .doc = "Fields and the values that every job has, such as `kubernetes.namespace` [none]"},
      {.name = "log_days",
       .kind = Kind::kInteger,
       .least = 1,
       .most = 36'500,
       .doc = "Days after a job's end until its logs are removed [never]"},
      {.name = "log_bytes",
       .kind = Kind::kInteger,
       .least = 0,
       .most = kMaxLogBytes,
       .doc = "Bytes that the logs of all jobs may take on the disk; the oldest are removed "
              "[no limit]"},
      {.name = "user",
       .most = 64,
       .doc = "As whom tasks of `local` and `slurm` run: a name, `UID` or `UID:GID` [the server]"},
      {.name = "isolated",
       .kind = Kind::kBoolean,
       .doc = "Refuses jobs whose tasks would run as the server [no]"},
      {.name = "separate_network",
       .kind = Kind::kBoolean,
       .doc = "On Kubernetes tasks accept connections from the team's tasks only [no]"}};
}

// A change of a policy by an administrator of the server.
Route Change(Route route) {
  route.access = Access::kServer;
  route.scope = Scope::kPeopleWrite;
  route.audited = Audited::kChange;
  if (route.method == Method::kDelete) {
    route.status = 204;
    route.reply = Reply::kNothing;
    return route;
  }
  route.body = Body::kJson;
  route.fields = PolicyFields();
  route.max_body = kPolicyBody;
  route.schema = "Policy";
  return route;
}

}  // namespace

std::vector<Route> PolicyRoutes() {
  using enum Access;
  const auto read = Scope::kPeopleRead;
  return {
      {.operation = Operation::kGetDefaultPolicy,
       .path = "/api/v1/policy",
       .name = "getDefaultPolicy",
       .doc = "What jobs of teams without a policy of their own may ask for (docs/policies.md)",
       .access = kServer,
       .scope = read,
       .schema = "Policy"},
      Change({.operation = Operation::kSetDefaultPolicy,
              .method = Method::kPut,
              .path = "/api/v1/policy",
              .name = "setDefaultPolicy",
              .doc = "Makes or replaces it"}),
      Change({.operation = Operation::kRemoveDefaultPolicy,
              .method = Method::kDelete,
              .path = "/api/v1/policy",
              .name = "removeDefaultPolicy",
              .doc = "Removes it: such teams may ask for everything"}),
      {.operation = Operation::kGetPolicy,
       .path = "/api/v1/teams/{team}/policy",
       .name = "getPolicy",
       .doc = "The policy that applies to the team's jobs",
       .access = kTeam,
       .role = Role::kViewer,
       .scope = Scope::kJobsRead,
       .schema = "Policy"},
      Change({.operation = Operation::kSetPolicy,
              .method = Method::kPut,
              .path = "/api/v1/teams/{team}/policy",
              .name = "setPolicy",
              .doc = "Makes or replaces the team's own policy"}),
      Change({.operation = Operation::kRemovePolicy,
              .method = Method::kDelete,
              .path = "/api/v1/teams/{team}/policy",
              .name = "removePolicy",
              .doc = "Removes the team's own policy"}),
  };
}

}  // namespace shoal::api
