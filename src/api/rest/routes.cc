#include <algorithm>
#include <array>

#include "api/rest/catalog_routes.h"
#include "api/rest/model_routes.h"
#include "api/rest/policy_routes.h"
#include "api/rest/queue_routes.h"
#include "api/rest/route.h"
#include "api/rest/sign_in_routes.h"
#include "api/rest/sql_routes.h"
#include "api/rest/webhook_routes.h"

namespace shoal::api {
namespace {

// Of a position with an offset in each of many logs.
constexpr int64_t kMaxPosition = 64 << 10;
constexpr int64_t kMaxPositions = 4 << 20;  // in a body: about 100,000 logs
constexpr size_t kSmallBody = size_t{64} << 10;
constexpr size_t kJobBody = size_t{64} << 20;  // a manifest may have 48 MiB
constexpr size_t kDigestsBody = size_t{16} << 20;
constexpr int64_t kMaxFileText = int64_t{1} << 20;
constexpr int64_t kMaxManifestText = int64_t{48} << 20;
constexpr int64_t kMaxOverrides = 1000;
constexpr int64_t kMaxDocuments = 100;
constexpr int64_t kMaxFiles = 100'000;
constexpr int64_t kMaxPath = 4096;
constexpr int64_t kMaxReplicas = 100'000;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kTenYears = int64_t{10} * 365 * 86400;
constexpr int64_t kMaxPoints = 100'000;
constexpr int64_t kMaxLogRead = int64_t{8} << 20;
constexpr int64_t kMaxSecretText = int64_t{88} << 10;  // 64 KiB in base64
constexpr size_t kSecretBody = size_t{512} << 10;      // as JSON with escapes

Parameter Text(std::string_view name, std::string_view doc, int64_t most = 256) {
  return {.name = name, .least = 1, .most = most, .doc = doc};
}
Parameter Need(Parameter parameter) {
  parameter.required = true;
  return parameter;
}
Parameter Number(std::string_view name, int64_t least, int64_t most, std::string_view doc) {
  return {.name = name, .kind = Kind::kInteger, .least = least, .most = most, .doc = doc};
}
Parameter Flag(std::string_view name, std::string_view doc) {
  return {.name = name, .kind = Kind::kBoolean, .doc = doc};
}
Parameter Choice(std::string_view name, std::string_view choices, std::string_view doc) {
  return {.name = name, .choices = choices, .doc = doc};
}
Parameter Time(std::string_view name, std::string_view doc) {
  return {.name = name, .kind = Kind::kTime, .doc = doc};
}

std::vector<Parameter> Paged(std::vector<Parameter> filters = {}) {
  filters.push_back(Text("after", "The `next` of the page before", 1024));
  filters.push_back(Number("limit", 1, kMaxPage, "Items of a page [100]"));
  return filters;
}

std::vector<Parameter> JobFields() {
  return {
      Need(Text("file", "The job file: its text in YAML or JSON (docs/job-file.md)", kMaxFileText)),
      {.name = "set",
       .kind = Kind::kTexts,
       .most = kMaxOverrides,
       .doc = "Overrides of fields, `PATH=VALUE`"},
      Text("team", "The team that owns the job [the user's only team, else `default`]", 64),
      Text("engine", "The engine that runs it [the server's default]", 64)};
}

std::vector<Parameter> SubmitFields() {
  std::vector<Parameter> fields = JobFields();
  fields.push_back(Text("directory",
                        "Directory of the server's machine where the programs start, and which "
                        "relative paths refer to [a new one]",
                        kMaxPath));
  fields.push_back(Text("manifest",
                        "The list of the files of `files:`, whose contents are uploaded before "
                        "(docs/formats/files.md)",
                        kMaxManifestText));
  return fields;
}

std::vector<Parameter> SubmitAllFields() {
  std::vector<Parameter> fields = JobFields();
  fields.push_back(Text("directory",
                        "Directory of the server's machine where the programs start, and which "
                        "relative paths refer to [a new one]",
                        kMaxPath));
  fields.push_back({.name = "manifests",
                    .kind = Kind::kTexts,
                    .most = kMaxDocuments,
                    .doc = "The `manifest` of each document; empty for one without `files`"});
  return fields;
}

// `most`: bytes of positions.
std::vector<Parameter> StreamParameters(int64_t most) {
  return {
      Flag("logs", "With the output of tasks (scope data:read)"),
      Flag("events", "With the events [true]"),
      Text("task", "Only logs of this task or role", 128),
      Number("attempt", 0, 1'000'000, "Only logs of this attempt, from 0"),
      Text("from", "Where logs begin: `worker-0.0:1234,…`, or `tail:N` for the last N lines", most),
      Text("after", "Only events after this position", most)};
}

// Rows of a table: several fields in a line.
// clang-format off
std::vector<Route> ServerRoutes() {
  using enum Access;
  return {
      {.operation = Operation::kHealth, .path = "/healthz", .name = "health",
       .doc = "The process answers", .access = kOpen, .role = Role::kNone, .reply = Reply::kText},
      {.operation = Operation::kReady, .path = "/readyz", .name = "ready",
       .doc = "The server leads and its store can be written; 503 with the reason otherwise. A standby "
              "answers 200 with `standby`. A full disk is told and changes nothing else",
       .access = kOpen, .role = Role::kNone,
       .query = {Flag("standby", "A standby is ready too")}, .reply = Reply::kText},
      {.operation = Operation::kOpenApi, .path = "/api/v1/openapi.json", .name = "getOpenApi",
       .doc = "This description in OpenAPI 3.1", .access = kOpen, .role = Role::kNone,
       .schema = "Any"},
      {.operation = Operation::kServerInfo, .path = "/api/v1/server", .name = "getServer",
       .doc = "Version and default engine of the server", .access = kSignedIn, .role = Role::kNone,
       .schema = "Server"},
      {.operation = Operation::kMe, .path = "/api/v1/me", .name = "getMe",
       .doc = "The user and the rights of the token", .access = kSignedIn, .role = Role::kNone,
       .schema = "Me"},
      {.operation = Operation::kListEngines, .path = "/api/v1/engines", .name = "listEngines",
       .doc = "The engines that jobs can name", .access = kAnyTeam, .role = Role::kViewer,
       .scope = Scope::kJobsRead, .schema = "Engines"},
  };
}

std::vector<Route> JobRoutes() {
  using enum Access;
  const auto read = Scope::kJobsRead;
  const auto write = Scope::kJobsWrite;
  return {
      {.operation = Operation::kSubmitJob, .method = Method::kPost, .path = "/api/v1/jobs",
       .name = "submitJob",
       .doc = "Submits a job and returns at once. A repetition with the same Idempotency-Key "
              "returns the job of the first one",
       .access = kTeam, .role = Role::kMember, .scope = write, .audited = Audited::kChange,
       .body = Body::kJson, .fields = SubmitFields(), .max_body = kJobBody, .status = 201,
       .schema = "Job"},
      {.operation = Operation::kSubmitAll, .method = Method::kPost, .path = "/api/v1/submissions",
       .name = "submitAll",
       .doc = "Submits every job of a file with several YAML documents, a matrix or a sweep "
              "(docs/triggers.md); all or none. A repetition with the same Idempotency-Key returns "
              "the jobs of the first one",
       .access = kTeam, .role = Role::kMember, .scope = write, .audited = Audited::kChange,
       .body = Body::kJson, .fields = SubmitAllFields(), .max_body = kJobBody, .status = 201,
       .schema = "Submission"},
      {.operation = Operation::kPlanJob, .method = Method::kPost, .path = "/api/v1/plan",
       .name = "planJob", .doc = "Checks a job file and returns its tasks; starts nothing",
       .access = kTeam, .role = Role::kMember, .scope = read, .body = Body::kJson,
       .fields = JobFields(), .max_body = size_t{2} << 20, .schema = "Any"},
      {.operation = Operation::kListJobs, .path = "/api/v1/jobs", .name = "listJobs",
       .doc = "The jobs of the user's teams, newest first", .access = kAnyTeam,
       .role = Role::kViewer, .scope = read,
       .query = Paged({Text("state", "Only these states, separated by commas"),
                       Text("name", "Only jobs whose name begins so"),
                       Text("id", "Only jobs whose id begins so"),
                       Text("team", "Only jobs of this team", 64),
                       Text("user", "Only jobs submitted by this user", 64),
                       Text("engine", "Only jobs on this engine", 64),
                       Time("since", "Only jobs submitted at or after this time (RFC 3339)"),
                       Time("until", "Only jobs submitted before this time (RFC 3339)")}),
       .schema = "JobPage"},
      {.operation = Operation::kGetJob, .path = "/api/v1/jobs/{id}", .name = "getJob",
       .doc = "One job, with its ETag", .access = kJob, .role = Role::kViewer, .scope = read,
       .schema = "Job"},
      {.operation = Operation::kGetJobFile, .path = "/api/v1/jobs/{id}/file", .name = "getJobFile",
       .doc = "The job as a job file in YAML, without `files`, to be changed and submitted again",
       .access = kJob, .role = Role::kViewer, .scope = read, .reply = Reply::kText},
      {.operation = Operation::kWhyJob, .path = "/api/v1/jobs/{id}/why", .name = "whyJob",
       .doc = "Why a job waits, and which changes of it would start it now, each of them tried in "
              "the scheduler",
       .access = kJob, .role = Role::kViewer, .scope = read, .schema = "Why"},
      {.operation = Operation::kListTasks, .path = "/api/v1/jobs/{id}/tasks", .name = "listTasks",
       .doc = "The latest state of each task", .access = kJob, .role = Role::kViewer,
       .scope = read, .schema = "Tasks"},
  };
}

std::vector<Route> GroupRoutes() {
  using enum Access;
  return {
      {.operation = Operation::kListGroups, .path = "/api/v1/groups", .name = "listGroups",
       .doc = "The groups of the user's teams, by id: the jobs of a matrix or a sweep together",
       .access = kAnyTeam, .role = Role::kViewer, .scope = Scope::kJobsRead,
       .query = Paged({Text("id", "Only groups whose id begins so")}), .schema = "GroupPage"},
      {.operation = Operation::kGetGroup, .path = "/api/v1/teams/{team}/groups/{id}",
       .name = "getGroup", .doc = "One group with its members; of a sweep the best first",
       .access = kTeam, .role = Role::kViewer, .scope = Scope::kJobsRead, .schema = "Group"},
      {.operation = Operation::kStopGroup, .method = Method::kPost,
       .path = "/api/v1/teams/{team}/groups/{id}/stop", .name = "stopGroup",
       .doc = "Stops the members and submits no more; returns at once. A member may stop its own "
              "groups, an operator all",
       .access = kTeam, .role = Role::kMember, .scope = Scope::kJobsWrite,
       .audited = Audited::kChange, .body = Body::kJson,
       .fields = {Flag("now", "Kill the tasks without letting them save")},
       .max_body = kSmallBody, .status = 202, .schema = "Group"},
      {.operation = Operation::kRemoveGroup, .method = Method::kDelete,
       .path = "/api/v1/teams/{team}/groups/{id}", .name = "removeGroup",
       .doc = "Removes the record of a group that has ended; the jobs of its members stay",
       .access = kTeam, .role = Role::kMember, .scope = Scope::kJobsWrite,
       .audited = Audited::kChange, .status = 204, .reply = Reply::kNothing},
  };
}

std::vector<Route> ScheduleRoutes() {
  using enum Access;
  const auto write = Scope::kJobsWrite;
  return {
      {.operation = Operation::kListSchedules, .path = "/api/v1/schedules", .name = "listSchedules",
       .doc = "The scheduled jobs of the user's teams (docs/triggers.md)", .access = kAnyTeam,
       .role = Role::kViewer, .scope = Scope::kJobsRead, .schema = "Schedules"},
      {.operation = Operation::kPutSchedule, .method = Method::kPut,
       .path = "/api/v1/teams/{team}/schedules/{name}", .name = "putSchedule",
       .doc = "Adds or replaces a scheduled job, whose file has the section `schedule`; 201 for a "
              "new one. A member may change its own, an operator all",
       .access = kTeam, .role = Role::kMember, .scope = write, .audited = Audited::kChange,
       .body = Body::kJson, .fields = SubmitFields(), .max_body = kJobBody, .schema = "Schedule"},
      {.operation = Operation::kRemoveSchedule, .method = Method::kDelete,
       .path = "/api/v1/teams/{team}/schedules/{name}", .name = "removeSchedule",
       .doc = "Removes a scheduled job; its runs go on", .access = kTeam, .role = Role::kMember,
       .scope = write, .audited = Audited::kChange,
       .query = {Flag("stop", "Let its unfinished runs save and end")}, .status = 204,
       .reply = Reply::kNothing},
      {.operation = Operation::kRunSchedule, .method = Method::kPost,
       .path = "/api/v1/teams/{team}/schedules/{name}/run", .name = "runSchedule",
       .doc = "Starts a run now, beside the times and whatever `concurrency` says", .access = kTeam,
       .role = Role::kMember, .scope = write, .audited = Audited::kChange, .body = Body::kJson,
       .max_body = kSmallBody, .status = 202, .schema = "ScheduledRun"},
  };
}

std::vector<Route> ActionRoutes() {
  using enum Access;
  const auto write = Scope::kJobsWrite;
  return {
      {.operation = Operation::kStopJob, .method = Method::kPost,
       .path = "/api/v1/jobs/{id}/stop", .name = "stopJob",
       .doc = "Lets the tasks save and end; returns at once. An ended job is no error",
       .access = kOwnJob, .role = Role::kMember, .scope = write, .audited = Audited::kChange,
       .body = Body::kJson, .fields = {Flag("now", "Kill the tasks without letting them save")},
       .max_body = kSmallBody, .status = 202, .schema = "Job", .conditional = true},
      {.operation = Operation::kSuspendJob, .method = Method::kPost,
       .path = "/api/v1/jobs/{id}/suspend", .name = "suspendJob",
       .doc = "Lets the tasks save and end, to be resumed later; returns at once",
       .access = kOwnJob, .role = Role::kMember, .scope = write, .audited = Audited::kChange,
       .body = Body::kJson, .max_body = kSmallBody, .status = 202, .schema = "Job",
       .conditional = true},
      {.operation = Operation::kResumeJob, .method = Method::kPost,
       .path = "/api/v1/jobs/{id}/resume", .name = "resumeJob",
       .doc = "Queues a suspended job again", .access = kOwnJob, .role = Role::kMember,
       .scope = write, .audited = Audited::kChange, .body = Body::kJson, .max_body = kSmallBody,
       .status = 202, .schema = "Job", .conditional = true},
      {.operation = Operation::kScaleJob, .method = Method::kPost,
       .path = "/api/v1/jobs/{id}/scale", .name = "scaleJob",
       .doc = "Changes the number of tasks of an elastic role", .access = kOwnJob,
       .role = Role::kMember, .scope = write, .audited = Audited::kChange, .body = Body::kJson,
       .fields = {Need(Text("role", "The role", 64)),
                  Need(Number("replicas", 0, kMaxReplicas, "Its new number of tasks"))},
       .max_body = kSmallBody, .status = 202, .schema = "Job", .conditional = true},
      {.operation = Operation::kRemoveJob, .method = Method::kDelete, .path = "/api/v1/jobs/{id}",
       .name = "removeJob", .doc = "Removes an ended job with its logs and outputs",
       .access = kOwnJob, .role = Role::kMember, .scope = write, .audited = Audited::kChange,
       .status = 204, .reply = Reply::kNothing, .conditional = true},
  };
}

std::vector<Route> EventRoutes() {
  using enum Access;
  const auto read = Scope::kJobsRead;
  return {
      {.operation = Operation::kListJobEvents, .path = "/api/v1/jobs/{id}/events",
       .name = "listJobEvents",
       .doc = "The events of a job: a page, or with `Accept: text/event-stream` a stream that goes "
              "on until the job has ended",
       .access = kJob, .role = Role::kViewer, .scope = read, .query = Paged(),
       .schema = "EventPage"},
      {.operation = Operation::kListEvents, .path = "/api/v1/events", .name = "listEvents",
       .doc = "The events of all jobs of the user's teams: a page, or with `Accept: "
              "text/event-stream` an endless stream. `after: now` begins with the next event",
       .access = kAnyTeam, .role = Role::kViewer, .scope = read,
       .query = Paged({Text("team", "Only jobs of this team", 64)}), .schema = "EventPage"},
      {.operation = Operation::kStreamJob, .path = "/api/v1/jobs/{id}/stream",
       .name = "streamJob",
       .doc = "Server-sent events of a running job until its end: its events, the coordinator's "
              "events with the progress points, and with `logs` the lines of its tasks",
       .access = kJob, .role = Role::kViewer, .scope = read, .audited = Audited::kRead,
       .query = StreamParameters(kMaxPosition), .reply = Reply::kEvents},
      {.operation = Operation::kFollowJob, .method = Method::kPost,
       .path = "/api/v1/jobs/{id}/stream", .name = "followJob",
       .doc = "The same, with the parameters in the body: `from` of a job with many tasks is too "
              "long for an address",
       .access = kJob, .role = Role::kViewer, .scope = read, .audited = Audited::kRead,
       .body = Body::kJson, .fields = StreamParameters(kMaxPositions), .max_body = 2 * kMaxPositions,
       .reply = Reply::kEvents},
      {.operation = Operation::kWatch, .path = "/api/v1/watch", .name = "watch",
       .doc = "A WebSocket with any number of subscriptions to jobs and events (docs/rest.md)",
       .access = kAnyTeam, .role = Role::kViewer, .scope = read, .audited = Audited::kRead,
       .reply = Reply::kWebSocket},
  };
}

std::vector<Route> SeriesRoutes() {
  using enum Access;
  const auto read = Scope::kJobsRead;
  return {
      {.operation = Operation::kListSeries, .path = "/api/v1/jobs/{id}/series",
       .name = "listSeries",
       .doc = "The series of numbers that the job's tasks have reported (docs/metrics.md)",
       .access = kJob, .role = Role::kViewer, .scope = read, .schema = "SeriesList"},
      {.operation = Operation::kReadSeries, .path = "/api/v1/jobs/{id}/series/{name}",
       .name = "readSeries", .doc = "The points of one of them, in equal periods",
       .access = kJob, .role = Role::kViewer, .scope = read,
       .query = {Time("from", "Only at or after this time (RFC 3339)"),
                 Time("to", "Only at or before this time (RFC 3339)"),
                 Number("points", 1, kMaxPoints, "At most this many periods [1000]")},
       .schema = "SeriesPoints"},
      {.operation = Operation::kMetrics, .path = "/metrics", .name = "metrics",
       .doc = "The server's metrics in the text format of Prometheus (docs/metrics.md)",
       .access = kAnyTeam, .role = Role::kViewer, .scope = read, .reply = Reply::kText},
  };
}

std::vector<Route> LogRoutes() {
  using enum Access;
  const auto data = Scope::kDataRead;
  return {
      {.operation = Operation::kListLogs, .path = "/api/v1/jobs/{id}/logs", .name = "listLogs",
       .doc = "The logs of a job's tasks, one of each attempt", .access = kJob,
       .role = Role::kViewer, .scope = data, .schema = "Logs"},
      {.operation = Operation::kReadLog, .path = "/api/v1/jobs/{id}/logs/{task}/{attempt}",
       .name = "readLog",
       .doc = "Bytes of the output of an attempt, counted from 0. Empty at the end", .access = kJob,
       .role = Role::kViewer, .scope = data, .audited = Audited::kRead,
       .query = {Number("offset", 0, kMaxBytes, "First byte [0]"),
                 Number("limit", 1, kMaxLogRead, "At most this many bytes [1 MiB]"),
                 Number("tail", 0, 1'000'000'000, "Begin with the last lines instead")},
       .reply = Reply::kBytes},
      {.operation = Operation::kReadLogTimes,
       .path = "/api/v1/jobs/{id}/logs/{task}/{attempt}/times", .name = "readLogTimes",
       .doc = "When bytes of an attempt's output were stored: pairs of an offset and microseconds "
              "since 1970, from the one that covers `from` on, at most 16384",
       .access = kJob, .role = Role::kViewer, .scope = data,
       .query = {Number("from", 0, kMaxBytes, "An offset [0]")}, .schema = "LogTimes"},
      {.operation = Operation::kSearchLogs, .path = "/api/v1/logs", .name = "searchLogs",
       .doc = "The lines of all jobs of the user's teams that fulfil all conditions, newest job "
              "first, as one JSON object per line. The last object has `next` where the search "
              "reached its limit of lines or 10 s, else `end`",
       .access = kAnyTeam, .role = Role::kViewer, .scope = data, .audited = Audited::kRead,
       .query = {Text("grep", "A regular expression in RE2's syntax", 4096),
                 Flag("ignore_case", "Compare letters without their case"),
                 Text("team", "Only jobs of this team", 64),
                 Text("role", "Only tasks of this role", 200),
                 Number("index", 0, 1'000'000, "Only tasks with this number"),
                 Number("attempt", 0, 1'000'000, "Only this attempt, from 0"),
                 Time("since", "Only lines stored at or after this time (RFC 3339)"),
                 Time("until", "Only lines stored before this time (RFC 3339)"),
                 Flag("times", "With the times of lines"),
                 Number("limit", 1, 100'000, "Lines at most [1000]"),
                 Text("after", "The `next` of the reply before", 4096)},
       .reply = Reply::kJsonLines},
  };
}

std::vector<Route> DataRoutes() {
  using enum Access;
  const auto data = Scope::kDataRead;
  return {
      {.operation = Operation::kListOutputs, .path = "/api/v1/jobs/{id}/outputs",
       .name = "listOutputs", .doc = "The files that tasks wrote to $SHOAL_OUTPUT",
       .access = kJob, .role = Role::kViewer, .scope = data, .schema = "Outputs"},
      {.operation = Operation::kReadOutput, .path = "/api/v1/jobs/{id}/outputs/{task}/{attempt}",
       .name = "readOutput", .doc = "One of these files", .access = kJob, .role = Role::kViewer,
       .scope = data, .audited = Audited::kRead,
       .query = {Need(Text("path", "The file's path in the list", kMaxPath)),
                 Number("offset", 0, kMaxBytes, "First byte [0]"),
                 Number("limit", 1, kMaxBytes, "At most this many bytes [all]")},
       .reply = Reply::kBytes},
      {.operation = Operation::kFindMissingFiles, .method = Method::kPost,
       .path = "/api/v1/files/missing", .name = "findMissingFiles",
       .doc = "Which of these contents have to be uploaded for a job of the team, and how much of "
              "each is there",
       .access = kTeam, .role = Role::kMember, .scope = Scope::kJobsWrite, .body = Body::kJson,
       .fields = {Text("team", "The team that will own the job", 64),
                  {.name = "digests",
                   .kind = Kind::kTexts,
                   .required = true,
                   .most = kMaxFiles,
                   .doc = "SHA-256 in lower-case hex"}},
       .max_body = kDigestsBody, .schema = "MissingFiles"},
      {.operation = Operation::kGetFile, .path = "/api/v1/files/{sha256}", .name = "getFile",
       .doc = "How many bytes of an upload have arrived", .access = kTeam, .role = Role::kMember,
       .scope = Scope::kJobsWrite, .query = {Text("team", "The team", 64)}, .schema = "FileStatus"},
      {.operation = Operation::kPutFile, .method = Method::kPut, .path = "/api/v1/files/{sha256}",
       .name = "putFile",
       .doc = "Appends bytes to an upload at its present size; the last piece completes it if the "
              "digest is right",
       .access = kTeam, .role = Role::kMember, .scope = Scope::kJobsWrite,
       .query = {Text("team", "The team", 64),
                 Need(Number("offset", 0, kMaxBytes, "Where these bytes belong")),
                 Need(Number("size", 0, kMaxBytes, "Bytes of the whole file"))},
       .body = Body::kBytes, .max_body = kMaxChunk, .schema = "FileStatus"},
  };
}

std::vector<Route> UserRoutes() {
  using enum Access;
  const auto read = Scope::kPeopleRead;
  const auto write = Scope::kPeopleWrite;
  return {
      {.operation = Operation::kListUsers, .path = "/api/v1/users", .name = "listUsers",
       .doc = "Users and service accounts by name", .access = kServer, .scope = read,
       .query = Paged(), .schema = "UserPage"},
      {.operation = Operation::kCreateUser, .method = Method::kPost, .path = "/api/v1/users",
       .name = "createUser", .doc = "Adds a user or a service account", .access = kServer,
       .scope = write, .audited = Audited::kChange, .body = Body::kJson,
       .fields = {Need(Text("name", "a-z, 0-9, '-', '_', '.'", 64)),
                  Flag("administrator", "May do everything"),
                  Flag("service", "A program, not a person")},
       .max_body = kSmallBody, .status = 201, .schema = "User"},
      {.operation = Operation::kGetUser, .path = "/api/v1/users/{name}", .name = "getUser",
       .doc = "One user", .access = kServer, .scope = read, .schema = "User"},
      {.operation = Operation::kChangeUser, .method = Method::kPatch,
       .path = "/api/v1/users/{name}", .name = "changeUser",
       .doc = "Changes the fields that are given", .access = kServer, .scope = write,
       .audited = Audited::kChange, .body = Body::kJson,
       .fields = {Flag("administrator", "May do everything"),
                  Flag("disabled", "Its tokens are refused"),
                  Text("subject", "Of the provider that signs it in: `ISSUER SUB`", 1024)},
       .max_body = kSmallBody, .schema = "User"},
      {.operation = Operation::kRemoveUser, .method = Method::kDelete,
       .path = "/api/v1/users/{name}", .name = "removeUser",
       .doc = "Removes a user with its tokens; its jobs stay", .access = kServer, .scope = write,
       .audited = Audited::kChange, .status = 204, .reply = Reply::kNothing},
      {.operation = Operation::kListTokens, .path = "/api/v1/tokens", .name = "listTokens",
       .doc = "The user's own tokens; an administrator may name another user",
       .access = kSignedIn, .role = Role::kNone, .scope = read,
       .query = Paged({Text("user", "Whose tokens [the own]", 64)}), .schema = "TokenPage"},
      {.operation = Operation::kCreateToken, .method = Method::kPost, .path = "/api/v1/tokens",
       .name = "createToken",
       .doc = "A new token of the user, with at most the scopes of the token that asks; an "
              "administrator may name another user. Its text is in this reply only",
       .access = kSignedIn, .role = Role::kNone, .scope = write, .audited = Audited::kChange,
       .body = Body::kJson,
       .fields = {Text("name", "What it is for", 128), Text("user", "Whose token [the own]", 64),
                  {.name = "scopes", .kind = Kind::kTexts, .most = kScopes,
                   .doc = "Its scopes [those of the token that asks]"},
                  Number("seconds", 1, kTenYears, "Seconds until it expires [90 days]")},
       .max_body = kSmallBody, .status = 201, .schema = "NewToken"},
      {.operation = Operation::kRevokeToken, .method = Method::kDelete,
       .path = "/api/v1/tokens/{id}", .name = "revokeToken",
       .doc = "Revokes an own token; an administrator may revoke any", .access = kSignedIn,
       .role = Role::kNone, .scope = write, .audited = Audited::kChange, .status = 204,
       .reply = Reply::kNothing},
  };
}

std::vector<Route> SecretRoutes() {
  using enum Access;
  return {
      {.operation = Operation::kListSecrets, .path = "/api/v1/teams/{team}/secrets",
       .name = "listSecrets", .doc = "The names of a team's secrets; values are never returned",
       .access = kTeam, .role = Role::kMember, .scope = Scope::kJobsRead, .schema = "Secrets"},
      {.operation = Operation::kSetSecret, .method = Method::kPut,
       .path = "/api/v1/teams/{team}/secrets/{name}", .name = "setSecret",
       .doc = "Makes or replaces a secret, from one of the two fields", .access = kTeam,
       .role = Role::kOperator, .scope = Scope::kJobsWrite, .audited = Audited::kChange,
       .body = Body::kJson,
       .fields = {Text("value", "The value, 1 byte to 64 KiB", kMaxSecretText),
                  Text("base64", "The value's bytes in base64", kMaxSecretText)},
       .max_body = kSecretBody, .status = 204, .reply = Reply::kNothing},
      {.operation = Operation::kRemoveSecret, .method = Method::kDelete,
       .path = "/api/v1/teams/{team}/secrets/{name}", .name = "removeSecret",
       .doc = "Removes a secret; running jobs keep what they have", .access = kTeam,
       .role = Role::kOperator, .scope = Scope::kJobsWrite, .audited = Audited::kChange,
       .status = 204, .reply = Reply::kNothing},
  };
}

std::vector<Route> TeamRoutes() {
  using enum Access;
  const auto read = Scope::kPeopleRead;
  const auto write = Scope::kPeopleWrite;
  return {
      {.operation = Operation::kListTeams, .path = "/api/v1/teams", .name = "listTeams",
       .doc = "All teams", .access = kServer, .scope = read, .query = Paged(),
       .schema = "TeamPage"},
      {.operation = Operation::kCreateTeam, .method = Method::kPost, .path = "/api/v1/teams",
       .name = "createTeam", .doc = "Adds a team", .access = kServer, .scope = write,
       .audited = Audited::kChange, .body = Body::kJson,
       .fields = {Need(Text("name", "a-z, 0-9, '-', '_', '.'", 64))}, .max_body = kSmallBody,
       .status = 201, .schema = "Team"},
      {.operation = Operation::kGetTeam, .path = "/api/v1/teams/{team}", .name = "getTeam",
       .doc = "A team with its members", .access = kTeam, .role = Role::kViewer, .scope = read,
       .schema = "Team"},
      {.operation = Operation::kRemoveTeam, .method = Method::kDelete,
       .path = "/api/v1/teams/{team}", .name = "removeTeam",
       .doc = "Removes a team without members", .access = kServer, .scope = write,
       .audited = Audited::kChange, .status = 204, .reply = Reply::kNothing},
      {.operation = Operation::kSetMember, .method = Method::kPut,
       .path = "/api/v1/teams/{team}/members/{user}", .name = "setMember",
       .doc = "Gives a user a role in the team", .access = kServer, .scope = write,
       .audited = Audited::kChange, .body = Body::kJson,
       .fields = {Need(Choice("role", "viewer|member|operator", "The role"))},
       .max_body = kSmallBody, .schema = "User"},
      {.operation = Operation::kRemoveMember, .method = Method::kDelete,
       .path = "/api/v1/teams/{team}/members/{user}", .name = "removeMember",
       .doc = "Takes a user out of the team", .access = kServer, .scope = write,
       .audited = Audited::kChange, .status = 204, .reply = Reply::kNothing},
      {.operation = Operation::kListAudit, .path = "/api/v1/audit", .name = "listAudit",
       .doc = "The audit log, newest first: each change, and each read of logs and outputs",
       .access = kServer, .scope = Scope::kAuditRead,
       .query = Paged({Text("user", "Only actions of this user", 64),
                       Text("team", "Only actions in this team", 64),
                       Text("action", "Only this action, such as `stopJob`", 64),
                       Text("object", "Only what was done to this job, user, …"),
                       Time("since", "Only at or after this time (RFC 3339)"),
                       Time("until", "Only before this time (RFC 3339)")}),
       .schema = "AuditPage"},
  };
}

// clang-format on

std::vector<Route> AllRoutes() {
  std::vector<Route> all;
  for (const auto& part :
       {ServerRoutes(), JobRoutes(), GroupRoutes(), ScheduleRoutes(), QueueRoutes(SubmitFields()),
        ActionRoutes(), EventRoutes(), SeriesRoutes(), LogRoutes(), DataRoutes(), UserRoutes(),
        SignInRoutes(), PolicyRoutes(), SecretRoutes(), CatalogRoutes(), SqlRoutes(), ModelRoutes(),
        WebhookRoutes(), TeamRoutes()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

std::string_view NameOf(Method method) {
  constexpr std::array<std::string_view, 5> kNames = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  return kNames[static_cast<size_t>(method)];
}

std::span<const Route> Routes() {
  static const std::vector<Route> all = AllRoutes();
  return all;
}

const Route* FindRoute(Operation operation) {
  const auto all = Routes();
  const auto found = std::ranges::find(all, operation, &Route::operation);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace shoal::api
