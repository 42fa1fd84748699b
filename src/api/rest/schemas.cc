#include "api/rest/schemas.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shoal::api {
namespace {

json::object Of(std::string_view type) { return {{"type", type}}; }
json::object Text(std::string_view doc) { return {{"type", "string"}, {"description", doc}}; }
json::object Time(std::string_view doc) {
  return {{"type", "string"}, {"format", "date-time"}, {"description", doc}};
}
json::object Ref(std::string_view name) {
  return {{"$ref", "#/components/schemas/" + std::string(name)}};
}
json::object ListOf(json::object items) { return {{"type", "array"}, {"items", std::move(items)}}; }

// `required`: names of fields that are always there.
json::object Object(json::object properties, const std::vector<std::string_view>& required) {
  json::object object{{"type", "object"}, {"properties", std::move(properties)}};
  json::array names;
  for (const std::string_view name : required) names.emplace_back(name);
  if (!names.empty()) object["required"] = std::move(names);
  return object;
}

json::object Page(std::string_view items) {
  return Object({{"items", ListOf(Ref(items))},
                 {"next", Text("`after` of the next page; missing on the last one")}},
                {"items"});
}

json::object JobStates() {
  return {{"type", "string"},
          {"enum",
           {"pending", "admitted", "starting", "running", "suspended", "finishing", "succeeded",
            "failed", "cancelled"}}};
}

json::object Job() {
  return Object({{"id", Text("NAME-xxxxxx")},
                 {"name", Text("Of the job file")},
                 {"state", JobStates()},
                 {"reason", Text("Of the end, the wait or the stall; one sentence or empty")},
                 {"engine", Text("Name of the engine instance")},
                 {"team", Text("The team that owns it")},
                 {"user", Text("The user who submitted it")},
                 {"submitted", Time("When it was submitted")},
                 {"started", Time("When its tasks first ran")},
                 {"ended", Time("When it ended")},
                 {"result", Of("object")},
                 {"unattended", Of("boolean")},
                 {"damage", Text("What of the record cannot be read")},
                 {"suspended_seconds", Of("number")},
                 {"last_seq", Of("integer")},
                 {"job", json::object{{"type", "object"},
                                      {"description", "The job file in its stored form"}}}},
                {"id", "name", "state", "reason", "engine", "team", "user", "submitted"});
}

json::object Event() {
  return Object({{"cursor", Text("Position among the events of all jobs")},
                 {"job", Text("Of which job")},
                 {"seq", Of("integer")},
                 {"time", Time("When it happened")},
                 {"type", Text("submitted, running, task, note, ended, …")},
                 {"body", Of("object")}},
                {"job", "seq", "time", "type"});
}

json::object Problem() {
  json::object error = Object({{"field", Text("Its path")},
                               {"message", Text("What is wrong, and what is expected")},
                               {"line", Of("integer")},
                               {"column", Of("integer")}},
                              {"field", "message"});
  return Object({{"type", Of("string")},
                 {"title", Of("string")},
                 {"status", Of("integer")},
                 {"detail", Text("One sentence: what, where, what was expected, what to do")},
                 {"errors", ListOf(std::move(error))}},
                {"type", "title", "status", "detail"});
}

void AddGroups(json::object* all) {
  json::object member = Object({{"index", Of("integer")},
                                {"id", Text("Of its job, GROUP-INDEX")},
                                {"state", Text("waiting, a state of jobs, stopped early, refused")},
                                {"values", Of("object")},
                                {"objective", Of("number")},
                                {"rung", Of("integer")},
                                {"reason", Text("Why its job could not be made")}},
                               {"index", "id", "state", "values"});
  (*all)["Group"] =
      Object({{"id", Text("NAME-xxxxxx")},
              {"name", Text("Of the job file")},
              {"state", Text("running, stopping, succeeded, failed, cancelled")},
              {"reason", Text("Of the end; of a sweep with its best member")},
              {"team", Of("string")},
              {"user", Of("string")},
              {"engine", Of("string")},
              {"submitted", Time("When it was submitted")},
              {"ended", Time("When it ended")},
              {"size", Text("Number of members")},
              {"limit", Text("Members that are unfinished at the same time, at most")},
              {"counts", Of("object")},
              {"objective", Text("Of a sweep: the number that decides")},
              {"goal", Of("string")},
              {"items", ListOf(std::move(member))}},
             {"id", "name", "state", "reason", "team", "user", "submitted", "size", "counts"});
  (*all)["GroupPage"] = Page("Group");
  (*all)["Schedule"] = Object({{"name", Of("string")},
                               {"team", Of("string")},
                               {"user", Of("string")},
                               {"engine", Of("string")},
                               {"cron", Of("string")},
                               {"time_zone", Of("string")},
                               {"concurrency", Text("forbid, allow or replace")},
                               {"missed", Text("run_once or skip")},
                               {"enabled", Of("boolean")},
                               {"next", Text("RFC 3339; empty: never")},
                               {"active", ListOf(Text("The id of an unfinished run"))},
                               {"last_run", Of("string")},
                               {"successes", Of("integer")},
                               {"failures", Of("integer")},
                               {"skipped", Of("integer")},
                               {"last_success", Text("RFC 3339; empty: never")},
                               {"last_failure", Text("RFC 3339; empty: never")},
                               {"last_reason", Text("Why the last time had no run, or it failed")}},
                              {"name", "team", "cron", "time_zone", "enabled", "next", "active"});
  (*all)["Schedules"] = Object({{"items", ListOf(Ref("Schedule"))}}, {"items"});
  (*all)["ScheduledRun"] = Object({{"id", Of("string")}, {"name", Of("string")}}, {"id", "name"});
  json::object item = Object({{"id", Of("string")},
                              {"name", Of("string")},
                              {"kind", Text("job or group")},
                              {"members", Of("integer")}},
                             {"id", "name", "kind"});
  (*all)["Submission"] = Object({{"items", ListOf(std::move(item))}}, {"items"});
}

void AddModels(json::object* all) {
  (*all)["Models"] =
      Object({{"items", ListOf(Object({{"name", Of("string")},
                                       {"versions", Of("integer")},
                                       {"bytes", Of("integer")},
                                       {"newest", Of("integer")},
                                       {"promoted", Of("integer")},
                                       {"changed", Time("When the newest was added")}},
                                      {"name", "versions", "bytes", "newest", "promoted"}))}},
             {"items"});
  (*all)["Model"] = Object({{"name", Of("string")},
                            {"tags", Of("object")},
                            {"previous", Of("integer")},
                            {"versions", ListOf(Of("object"))}},
                           {"name", "tags", "previous", "versions"});
  (*all)["ModelVersion"] = Object({{"name", Of("string")},
                                   {"version", Of("integer")},
                                   {"created", Time("When it was added")},
                                   {"by", Text("The user")},
                                   {"job", Text("The job that trained it; empty: none")},
                                   {"source", Text("Where its files were")},
                                   {"digest", Text("SHA-256 of names and digests of its files")},
                                   {"bytes", Of("integer")},
                                   {"files", ListOf(Of("object"))},
                                   {"metadata", Of("object")},
                                   {"tags", ListOf(Of("string"))}},
                                  {"name", "version", "created", "files", "metadata", "tags"});
  (*all)["ModelTag"] =
      Object({{"model", Of("string")}, {"tag", Of("string")}, {"version", Of("integer")}},
             {"model", "tag", "version"});
  (*all)["ModelDifferences"] =
      Object({{"versions", ListOf(Of("string"))}, {"differences", Of("object")}},
             {"versions", "differences"});
}

void AddData(json::object* all) {
  json::object log = Object({{"task", Text("ROLE-INDEX")},
                             {"role", Of("string")},
                             {"index", Of("integer")},
                             {"attempt", Of("integer")},
                             {"bytes", Of("integer")}},
                            {"task", "role", "index", "attempt", "bytes"});
  json::object output = Object({{"task", Text("ROLE-INDEX")},
                                {"attempt", Of("integer")},
                                {"path", Text("Below the attempt's directory")},
                                {"bytes", Of("integer")},
                                {"link", Of("boolean")}},
                               {"task", "attempt", "path", "bytes", "link"});
  json::object part =
      Object({{"sha256", Of("string")}, {"received", Of("integer")}}, {"sha256", "received"});
  (*all)["Logs"] = Object(
      {{"items", ListOf(std::move(log))}, {"removed", Text("Why the logs are gone, if they are")}},
      {"items"});
  json::object series = Object({{"name", Text("TASK.METRIC, such as worker-0.loss")},
                                {"points", Of("integer")},
                                {"first_ms", Of("integer")},
                                {"last_ms", Of("integer")}},
                               {"name", "points", "first_ms", "last_ms"});
  (*all)["SeriesList"] = Object({{"items", ListOf(std::move(series))}}, {"items"});
  (*all)["SeriesPoints"] = Object({{"name", Of("string")},
                                   {"time_ms", ListOf(Of("integer"))},
                                   {"mean", ListOf(Of("number"))},
                                   {"min", ListOf(Of("number"))},
                                   {"max", ListOf(Of("number"))},
                                   {"count", ListOf(Of("integer"))}},
                                  {"name", "time_ms", "mean", "min", "max", "count"});
  (*all)["LogTimes"] =
      Object({{"modified",
               json::object{{"type", "integer"}, {"description", "When the log was last written"}}},
              {"items", ListOf(ListOf(Of("integer")))}},
             {"modified", "items"});
  (*all)["Outputs"] = Object({{"items", ListOf(std::move(output))}, {"declared", Of("object")}},
                             {"items", "declared"});
  (*all)["MissingFiles"] = Object({{"missing", ListOf(std::move(part))}}, {"missing"});
  (*all)["FileStatus"] =
      Object({{"sha256", Of("string")}, {"received", Of("integer")}, {"complete", Of("boolean")}},
             {"sha256", "received", "complete"});
}

void AddQueues(json::object* all) {
  json::object resource =
      Object({{"resource", Text("cpu (cores), memory (bytes) or gpu (devices)")},
              {"nominal", Of("number")},
              {"used", Of("number")},
              {"borrowed", Of("number")},
              {"lent", json::object{{"type", "number"},
                                    {"description", "Of its nominal quota, what others use now"}}},
              {"limited", Of("boolean")}},
             {"resource", "nominal", "used", "borrowed", "lent", "limited"});
  json::object flavor =
      Object({{"flavor", Of("string")}, {"resources", ListOf(std::move(resource))}},
             {"flavor", "resources"});
  json::object waiting = Object({{"id", Text("Missing for jobs that the user may not see")},
                                 {"name", Text("Likewise")},
                                 {"user", Text("Likewise")},
                                 {"team", Of("string")},
                                 {"priority", Of("integer")},
                                 {"reason", Text("Why it waits")}},
                                {"team", "priority", "reason"});
  json::object queue = Object({{"name", Of("string")},
                               {"parent", Text("The queue above it")},
                               {"depth", Of("integer")},
                               {"takes_jobs", Of("boolean")},
                               {"mode", Text("In force: open, hold or drain")},
                               {"weight", Of("number")},
                               {"share", Of("number")},
                               {"running", Of("integer")},
                               {"waiting", Of("integer")},
                               {"flavors", ListOf(std::move(flavor))},
                               {"jobs", ListOf(std::move(waiting))}},
                              {"name", "depth", "mode", "running", "waiting", "flavors", "jobs"});
  json::object machines =
      Object({{"flavor", Of("string")}, {"total", Of("object")}, {"used", Of("object")}},
             {"flavor", "total", "used"});
  const json::object hours = Object({{"cpu_hours", Of("number")},
                                     {"memory_byte_hours", Of("number")},
                                     {"gpu_hours", Of("number")}},
                                    {"cpu_hours", "memory_byte_hours", "gpu_hours"});
  (*all)["Usage"] =
      Object({{"items", ListOf(Object({{"month", Text("Of UTC: 2026-11")},
                                       {"team", Of("string")},
                                       {"user", Of("string")},
                                       {"queue", Of("string")},
                                       {"engine", Of("string")},
                                       {"jobs", Of("integer")},
                                       {"task_hours", Of("number")},
                                       {"held", hours},
                                       {"idle", hours},
                                       {"failed", hours}},
                                      {"month", "team", "user", "queue", "engine", "jobs",
                                       "task_hours", "held", "idle", "failed"}))}},
             {"items"});
  (*all)["Queues"] = Object({{"default_queue", Of("string")},
                             {"items", ListOf(std::move(queue))},
                             {"machines", ListOf(std::move(machines))}},
                            {"default_queue", "items", "machines"});
}

void AddSignIns(json::object* all) {
  (*all)["SignIns"] =
      Object({{"methods", ListOf(Of("string"))}, {"issuer", Of("string")}}, {"methods"});
  (*all)["DeviceSignIn"] =
      Object({{"device", Text("Secret; for the request of the token")},
              {"user_code", Text("What the user enters")},
              {"verification_uri", Text("Where the user enters it")},
              {"verification_uri_complete", Text("With the code in it")},
              {"expires_in", Of("integer")},
              {"interval", Of("integer")}},
             {"device", "user_code", "verification_uri", "expires_in", "interval"});
  (*all)["CodeSignIn"] = Object({{"url", Text("Where the browser goes")},
                                 {"state", Text("Comes back with the browser")},
                                 {"binding", Text("Secret of the page, for the last request")}},
                                {"url", "state", "binding"});
}

void AddPeople(json::object* all) {
  (*all)["User"] = Object({{"name", Of("string")},
                           {"administrator", Of("boolean")},
                           {"service", Of("boolean")},
                           {"disabled", Of("boolean")},
                           {"teams", json::object{{"type", "object"},
                                                  {"description", "Team → role"},
                                                  {"additionalProperties", Of("string")}}},
                           {"created", Time("When it was added")},
                           {"subject", Text("Of the provider that signs the user in: ISSUER SUB")}},
                          {"name", "administrator", "service", "disabled", "teams", "created"});
  (*all)["Team"] = Object({{"name", Of("string")},
                           {"created", Time("When it was added")},
                           {"members", json::object{{"type", "object"},
                                                    {"description", "User → role"},
                                                    {"additionalProperties", Of("string")}}}},
                          {"name", "created"});
  json::object token{{"id", Text("Not secret")},
                     {"user", Text("Whose rights it carries")},
                     {"name", Text("What it is for")},
                     {"scopes", ListOf(Of("string"))},
                     {"created", Time("When it was made")},
                     {"expires", Time("When it expires")},
                     {"last_used", Time("When it was last used, to the minute")}};
  const std::vector<std::string_view> required = {"id", "user", "name", "scopes", "created"};
  (*all)["Token"] = Object(token, required);
  token["token"] = Text("The secret text, in this reply only");
  (*all)["NewToken"] = Object(std::move(token), {"id", "user", "scopes", "token"});
  (*all)["Policy"] = Object({{"engines", ListOf(Of("string"))},
                             {"images", ListOf(Of("string"))},
                             {"paths", ListOf(Of("string"))},
                             {"forbidden", ListOf(Of("string"))},
                             {"fields", json::object{{"type", "object"},
                                                     {"description", "Field → value"},
                                                     {"additionalProperties", Of("string")}}},
                             {"log_days", Of("integer")},
                             {"log_bytes", Of("integer")},
                             {"user", Text("As whom tasks of local and slurm run")},
                             {"isolated", Of("boolean")},
                             {"separate_network", Of("boolean")}},
                            {});
  (*all)["Secrets"] = Object({{"items", ListOf(Object({{"name", Of("string")},
                                                       {"changed", Time("When it was set")},
                                                       {"by", Text("The user who set it")},
                                                       {"bytes", Of("integer")}},
                                                      {"name", "changed"}))}},
                             {"items"});
  AddModels(all);
  (*all)["AuditEntry"] = Object({{"seq", Of("integer")},
                                 {"time", Time("When")},
                                 {"user", Of("string")},
                                 {"action", Text("The name of the request")},
                                 {"object", Text("What it was done to: a job, a user, …")},
                                 {"team", Of("string")},
                                 {"detail", Of("object")}},
                                {"seq", "time", "user", "action", "object"});
}

void AddWebhooks(json::object* all) {
  (*all)["Webhook"] = Object(
      {{"name", Of("string")},
       {"url", Text("Where it leads; path and query are not returned")},
       {"format", Of("string")},
       {"events", ListOf(Of("string"))},
       {"changed", Time("When it was set")},
       {"by", Text("The user who set it")},
       {"secret", Text("The key of signatures, in the reply of a new one")},
       {"position",
        json::object{{"type", "integer"}, {"description", "The event up to which it was told"}}},
       {"delivered", Of("integer")},
       {"dropped",
        json::object{{"type", "integer"}, {"description", "Messages that were given up"}}},
       {"error", Text("Of the last attempt, if it failed")},
       {"failing_since", Time("Since when attempts fail")},
       {"disabled", Of("boolean")}},
      {"name", "url", "format", "events"});
  (*all)["Webhooks"] = Object({{"items", ListOf(Ref("Webhook"))}}, {"items"});
}

void AddCatalog(json::object* all) {
  (*all)["Database"] = Object({{"name", Of("string")},
                               {"team", Text("Whose operators manage its tables")},
                               {"locations", ListOf(Of("string"))},
                               {"tags", ListOf(Of("object"))}},
                              {"name", "team"});
  (*all)["Databases"] = Object({{"items", ListOf(Ref("Database"))}}, {"items"});
  (*all)["Table"] = Object({{"database", Of("string")},
                            {"name", Of("string")},
                            {"owner", Of("string")},
                            {"format", Of("string")},
                            {"columns", ListOf(Of("object"))},
                            {"tags", Of("object")},
                            {"masks", Of("object")},
                            {"sources", ListOf(Of("string"))},
                            {"credentials", Of("string")},
                            {"grants", ListOf(Of("object"))}},
                           {"database", "name", "owner", "format", "columns"});
  (*all)["Tables"] = Object({{"items", ListOf(Ref("Table"))}}, {"items"});
  (*all)["Grant"] = Object({{"id", Of("string")}, {"to", Of("string")}}, {"id", "to"});
  (*all)["TableAccess"] =
      Object({{"items", ListOf(Object({{"user", Of("string")},
                                       {"columns", ListOf(Of("object"))},
                                       {"rows", Text("The condition on rows; empty: all")},
                                       {"restricted", Of("boolean")},
                                       {"until", Time("When the first of its grants expires")},
                                       {"refusal", Text("Why nothing may be read")}},
                                      {"user"}))}},
             {"items"});
  (*all)["LineageRecords"] = Object({{"items", ListOf(Of("object"))}}, {"items"});
}

void AddSql(json::object* all) {
  (*all)["SqlSession"] = Object(
      {{"id", Of("string")},
       {"team", Of("string")},
       {"user", Text("Who made it")},
       {"state", json::object{{"type", "string"}, {"enum", {"idle", "busy", "ended"}}}},
       {"reason", Text("Why it has ended")},
       {"statements", json::object{{"type", "integer"},
                                   {"description", "How many requests have run statements"}}},
       {"created", Time("When it was made")}},
      {"id", "team", "user", "state", "statements", "created"});
  (*all)["SqlSessions"] = Object({{"items", ListOf(Ref("SqlSession"))}}, {"items"});
  (*all)["SqlStatement"] = Object(
      {{"statement",
        json::object{{"type", "integer"}, {"description", "Its number, the `id` of its events"}}},
       {"after", Text("`after` of its first event")}},
      {"statement", "after"});
  (*all)["SqlEvents"] =
      Object({{"items", ListOf(Of("object"))},
              {"next", Text("`after` of the next request")},
              {"lost", json::object{{"type", "boolean"},
                                    {"description", "Older events made room for newer ones"}}},
              {"ended", Of("boolean")}},
             {"items", "next", "lost", "ended"});
  (*all)["SqlCompletion"] = Object(
      {{"begin",
        json::object{{"type", "integer"}, {"description", "The byte that candidates begin at"}}},
       {"candidates", ListOf(Of("string"))}},
      {"begin", "candidates"});
  (*all)["SqlInspection"] = Object({{"text", Of("string")}}, {"text"});
}

}  // namespace

json::object ReplySchemas() {
  json::object all{
      {"Any", Of("object")}, {"Job", Job()}, {"Event", Event()}, {"Problem", Problem()}};
  all["Task"] = Of("object");
  all["Tasks"] = Object({{"items", ListOf(Ref("Task"))}}, {"items"});
  all["Server"] = Object({{"version", Of("string")}, {"default_engine", Of("string")}},
                         {"version", "default_engine"});
  all["Me"] = Object({{"user", Of("string")},
                      {"administrator", Of("boolean")},
                      {"teams", Of("object")},
                      {"scopes", ListOf(Of("string"))},
                      {"token", Of("string")}},
                     {"user", "administrator", "teams", "scopes", "token"});
  all["Engines"] = Object(
      {{"items", ListOf(Object({{"name", Of("string")}, {"kind", Of("string")}}, {"name"}))}},
      {"items"});
  all["Why"] =
      Object({{"state", Of("string")},
              {"reason", Text("Why it waits; empty if it does not wait for admission")},
              {"changes", ListOf(Of("string"))},
              {"forecast", Text("When it is expected to start; empty if nothing is known")}},
             {"state", "reason", "changes"});
  all["Trial"] = Object({{"starts", Of("boolean")},
                         {"refused", Of("boolean")},
                         {"preempts", Of("boolean")},
                         {"reason", Text("Why it would wait or be refused")},
                         {"flavor", Text("On which it would start")},
                         {"tasks", Of("integer")},
                         {"changes", ListOf(Of("string"))},
                         {"expected_start", Time("Missing if nothing is known")},
                         {"confidence", Of("number")}},
                        {"starts", "refused", "preempts", "reason", "changes"});
  AddData(&all);
  AddGroups(&all);
  AddQueues(&all);
  AddPeople(&all);
  AddWebhooks(&all);
  AddCatalog(&all);
  AddSignIns(&all);
  AddSql(&all);
  all["JobPage"] = Page("Job");
  all["EventPage"] = Page("Event");
  all["UserPage"] = Page("User");
  all["TeamPage"] = Page("Team");
  all["TokenPage"] = Page("Token");
  all["AuditPage"] = Page("AuditEntry");
  return all;
}

}  // namespace shoal::api
