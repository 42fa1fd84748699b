// The description of one endpoint of the REST API. routes.cc has the table of all of them, from
// which routing, checks of requests, the OpenAPI document and the table of rights in docs/rest.md
// are derived.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "api/people/role.h"

namespace shoal::api {

enum class Method : uint8_t { kGet, kPost, kPut, kPatch, kDelete };
std::string_view NameOf(Method method);

// Names the handler of a route (api/server).
enum class Operation : uint8_t {
  kHealth,
  kReady,
  kOpenApi,
  kServerInfo,
  kListSignIns,
  kBeginDeviceSignIn,
  kFinishDeviceSignIn,
  kBeginCodeSignIn,
  kFinishCodeSignIn,
  kMe,
  kListEngines,
  kSubmitJob,
  kSubmitAll,
  kPlanJob,
  kTryJob,
  kListJobs,
  kGetJob,
  kGetJobFile,
  kWhyJob,
  kListQueues,
  kReloadQueues,
  kSetQueueMode,
  kReadUsage,
  kStopJob,
  kSuspendJob,
  kResumeJob,
  kScaleJob,
  kRemoveJob,
  kListTasks,
  kListGroups,
  kGetGroup,
  kStopGroup,
  kRemoveGroup,
  kListSchedules,
  kPutSchedule,
  kRemoveSchedule,
  kRunSchedule,
  kListJobEvents,
  kListEvents,
  kStreamJob,
  kFollowJob,
  kWatch,
  kListLogs,
  kReadLog,
  kReadLogTimes,
  kSearchLogs,
  kListOutputs,
  kReadOutput,
  kListSeries,
  kReadSeries,
  kMetrics,
  kFindMissingFiles,
  kGetFile,
  kPutFile,
  kListUsers,
  kCreateUser,
  kGetUser,
  kChangeUser,
  kRemoveUser,
  kListTeams,
  kCreateTeam,
  kGetTeam,
  kRemoveTeam,
  kSetMember,
  kRemoveMember,
  kListTokens,
  kCreateToken,
  kRevokeToken,
  kGetDefaultPolicy,
  kSetDefaultPolicy,
  kRemoveDefaultPolicy,
  kGetPolicy,
  kSetPolicy,
  kRemovePolicy,
  kListSecrets,
  kSetSecret,
  kRemoveSecret,
  kListServerWebhooks,
  kSetServerWebhook,
  kRemoveServerWebhook,
  kListWebhooks,
  kSetWebhook,
  kRemoveWebhook,
  kListDatabases,
  kSetDatabase,
  kRemoveDatabase,
  kSetTagPolicy,
  kRemoveTagPolicy,
  kListTables,
  kGetTable,
  kCreateTable,
  kRemoveTable,
  kCreateGrant,
  kRevokeGrant,
  kSetColumn,
  kTableAccess,
  kListLineage,
  kListSqlSessions,
  kCreateSqlSession,
  kGetSqlSession,
  kEndSqlSession,
  kRunSql,
  kCancelSql,
  kCompleteSql,
  kInspectSql,
  kReadSqlEvents,
  kListModels,
  kGetModel,
  kGetModelVersion,
  kReadModelFile,
  kCompareModels,
  kAddModelVersion,
  kSetModelTag,
  kRemoveModelTag,
  kRollbackModel,
  kRemoveModelVersion,
  kListAudit,
};

// Which role the route's `role` is compared with.
enum class Access : uint8_t {
  kOpen,      // no token is needed
  kSignedIn,  // any user
  kAnyTeam,   // the highest role that the user has in a team
  kJob,       // the role in the team of the job {id}; 404 where it has none
  kOwnJob,    // likewise; a member may do it to its own jobs, an operator to all
  kTeam,      // the role in the team of the request (parameter or body field `team`)
  kServer,    // administrators
};

enum class Audited : uint8_t { kNo, kChange, kRead };

enum class Kind : uint8_t { kText, kInteger, kBoolean, kTime, kObject, kTexts, kObjects };

// A parameter of the path or query, or a field of a JSON body.
struct Parameter {
  std::string_view name;
  Kind kind = Kind::kText;
  bool required = false;
  int64_t least = 0;              // of an integer, or the length of a text
  int64_t most = 256;             // likewise, or the number of texts in a list
  std::string_view choices = {};  // "viewer|member|operator"
  std::string_view doc = {};
};

enum class Body : uint8_t { kNone, kJson, kBytes };
enum class Reply : uint8_t { kJson, kText, kBytes, kEvents, kJsonLines, kWebSocket, kNothing };

struct Route {
  Operation operation;
  Method method = Method::kGet;
  std::string_view path;  // "/api/v1/jobs/{id}/tasks"
  std::string_view name;  // operationId
  std::string_view doc;
  Access access = Access::kServer;
  Role role = Role::kAdministrator;
  std::optional<Scope> scope = {};
  Audited audited = Audited::kNo;
  std::vector<Parameter> query = {};
  Body body = Body::kNone;
  std::vector<Parameter> fields = {};  // of the JSON body
  size_t max_body = 0;                 // bytes
  int status = 200;                    // of success
  Reply reply = Reply::kJson;
  std::string_view schema = {};  // of the reply, in the components of the document
  bool conditional = false;      // If-Match is honoured
};

inline constexpr std::string_view kApiPrefix = "/api/v1";
inline constexpr int64_t kMaxPage = 1000;
inline constexpr int64_t kDefaultPage = 100;
// Of one piece of an uploaded file.
inline constexpr size_t kMaxChunk = size_t{4} << 20;

// In the order of the documents.
std::span<const Route> Routes();
// nullptr for an operation that has none, which the tests exclude.
const Route* FindRoute(Operation operation);

}  // namespace shoal::api
