#include "api/server/handlers.h"

#include <array>
#include <utility>

namespace shoal::api {
namespace {

constexpr std::pair<Operation, Handler> kHandlers[] = {
    {Operation::kHealth, AnswerHealth},
    {Operation::kReady, AnswerReady},
    {Operation::kOpenApi, AnswerOpenApi},
    {Operation::kServerInfo, AnswerServerInfo},
    {Operation::kListSignIns, ListSignIns},
    {Operation::kBeginDeviceSignIn, BeginDeviceSignIn},
    {Operation::kFinishDeviceSignIn, FinishDeviceSignIn},
    {Operation::kBeginCodeSignIn, BeginCodeSignIn},
    {Operation::kFinishCodeSignIn, FinishCodeSignIn},
    {Operation::kMe, AnswerMe},
    {Operation::kListEngines, ListEngines},
    {Operation::kSubmitJob, SubmitJob},
    {Operation::kSubmitAll, SubmitAll},
    {Operation::kPlanJob, PlanJob},
    {Operation::kTryJob, TryJob},
    {Operation::kListJobs, ListJobs},
    {Operation::kGetJob, GetJob},
    {Operation::kWhyJob, WhyJob},
    {Operation::kListQueues, ListQueues},
    {Operation::kReloadQueues, ReloadQueues},
    {Operation::kSetQueueMode, SetQueueMode},
    {Operation::kReadUsage, ReadUsage},
    {Operation::kStopJob, StopJob},
    {Operation::kSuspendJob, SuspendJob},
    {Operation::kResumeJob, ResumeJob},
    {Operation::kScaleJob, ScaleJob},
    {Operation::kRemoveJob, RemoveJob},
    {Operation::kListTasks, ListTasks},
    {Operation::kListGroups, ListGroups},
    {Operation::kGetGroup, GetGroup},
    {Operation::kStopGroup, StopGroup},
    {Operation::kRemoveGroup, RemoveGroup},
    {Operation::kListSchedules, ListSchedules},
    {Operation::kPutSchedule, PutSchedule},
    {Operation::kRemoveSchedule, RemoveSchedule},
    {Operation::kRunSchedule, RunSchedule},
    {Operation::kListJobEvents, ListJobEvents},
    {Operation::kListEvents, ListEvents},
    {Operation::kStreamJob, StreamJob},
    {Operation::kFollowJob, StreamJob},
    {Operation::kWatch, WatchJobs},
    {Operation::kListLogs, ListLogs},
    {Operation::kReadLog, ReadLog},
    {Operation::kReadLogTimes, ReadLogTimes},
    {Operation::kSearchLogs, SearchLogs},
    {Operation::kListOutputs, ListOutputs},
    {Operation::kReadOutput, ReadOutput},
    {Operation::kListSeries, ListSeries},
    {Operation::kReadSeries, ReadSeries},
    {Operation::kMetrics, AnswerMetrics},
    {Operation::kFindMissingFiles, FindMissingFiles},
    {Operation::kGetFile, GetFile},
    {Operation::kPutFile, PutFile},
    {Operation::kListUsers, ListUsers},
    {Operation::kCreateUser, CreateUser},
    {Operation::kGetUser, GetUser},
    {Operation::kChangeUser, ChangeUser},
    {Operation::kRemoveUser, RemoveUser},
    {Operation::kListTeams, ListTeams},
    {Operation::kCreateTeam, CreateTeam},
    {Operation::kGetTeam, GetTeam},
    {Operation::kRemoveTeam, RemoveTeam},
    {Operation::kSetMember, SetMember},
    {Operation::kRemoveMember, RemoveMember},
    {Operation::kListTokens, ListTokens},
    {Operation::kCreateToken, CreateToken},
    {Operation::kRevokeToken, RevokeToken},
    {Operation::kGetDefaultPolicy, GetDefaultPolicy},
    {Operation::kSetDefaultPolicy, SetDefaultPolicy},
    {Operation::kRemoveDefaultPolicy, RemoveDefaultPolicy},
    {Operation::kGetPolicy, GetPolicy},
    {Operation::kSetPolicy, SetPolicy},
    {Operation::kRemovePolicy, RemovePolicy},
    {Operation::kListDatabases, ListDatabases},
    {Operation::kSetDatabase, SetDatabase},
    {Operation::kRemoveDatabase, RemoveDatabase},
    {Operation::kSetTagPolicy, SetTagPolicy},
    {Operation::kRemoveTagPolicy, RemoveTagPolicy},
    {Operation::kListTables, ListTables},
    {Operation::kGetTable, GetTable},
    {Operation::kCreateTable, CreateTable},
    {Operation::kRemoveTable, RemoveTable},
    {Operation::kCreateGrant, CreateGrant},
    {Operation::kRevokeGrant, RevokeGrant},
    {Operation::kSetColumn, SetColumn},
    {Operation::kTableAccess, AnswerTableAccess},
    {Operation::kListLineage, ListLineage},
    {Operation::kListSecrets, ListSecrets},
    {Operation::kSetSecret, SetSecret},
    {Operation::kRemoveSecret, RemoveSecret},
    {Operation::kListServerWebhooks, ListServerWebhooks},
    {Operation::kSetServerWebhook, SetServerWebhook},
    {Operation::kRemoveServerWebhook, RemoveServerWebhook},
    {Operation::kListWebhooks, ListWebhooks},
    {Operation::kSetWebhook, SetWebhook},
    {Operation::kRemoveWebhook, RemoveWebhook},
    {Operation::kListAudit, ListAudit},
};

}  // namespace

Handler HandlerOf(Operation operation) {
  for (const auto& [one, handler] : kHandlers) {
    if (one == operation) return handler;
  }
  return nullptr;
}

net::HttpServerReply JsonReply(int status, const json::value& value) {
  return {status,
          {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}},
          ToText(value) + "\n"};
}

}  // namespace shoal::api
