// The handlers of all operations, one function each, and the table that finds them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/rest/route.h"
#include "api/server/call.h"
#include "api/server/followers.h"

namespace shoal::api {

// nullptr for an operation without a handler, which a test excludes.
Handler HandlerOf(Operation operation);

// server_handlers.cc
void AnswerHealth(const Backend& backend, const CallPtr& call);
void AnswerReady(const Backend& backend, const CallPtr& call);
void AnswerOpenApi(const Backend& backend, const CallPtr& call);
void AnswerServerInfo(const Backend& backend, const CallPtr& call);
void AnswerMe(const Backend& backend, const CallPtr& call);
void ListEngines(const Backend& backend, const CallPtr& call);
void ListAudit(const Backend& backend, const CallPtr& call);

// submit_handlers.cc
void SubmitJob(const Backend& backend, const CallPtr& call);
void PlanJob(const Backend& backend, const CallPtr& call);
void TryJob(const Backend& backend, const CallPtr& call);

// submission_handlers.cc
void SubmitAll(const Backend& backend, const CallPtr& call);

// group_handlers.cc
void ListGroups(const Backend& backend, const CallPtr& call);
void GetGroup(const Backend& backend, const CallPtr& call);
void StopGroup(const Backend& backend, const CallPtr& call);
void RemoveGroup(const Backend& backend, const CallPtr& call);

// schedule_handlers.cc
void ListSchedules(const Backend& backend, const CallPtr& call);
void PutSchedule(const Backend& backend, const CallPtr& call);
void RemoveSchedule(const Backend& backend, const CallPtr& call);
void RunSchedule(const Backend& backend, const CallPtr& call);

// job_handlers.cc
void ListJobs(const Backend& backend, const CallPtr& call);
void GetJob(const Backend& backend, const CallPtr& call);
void GetJobFile(const Backend& backend, const CallPtr& call);
void WhyJob(const Backend& backend, const CallPtr& call);
void StopJob(const Backend& backend, const CallPtr& call);
void SuspendJob(const Backend& backend, const CallPtr& call);
void ResumeJob(const Backend& backend, const CallPtr& call);
void ScaleJob(const Backend& backend, const CallPtr& call);
void RemoveJob(const Backend& backend, const CallPtr& call);
void ListTasks(const Backend& backend, const CallPtr& call);

// queue_handlers.cc
void ListQueues(const Backend& backend, const CallPtr& call);
void ReloadQueues(const Backend& backend, const CallPtr& call);
void SetQueueMode(const Backend& backend, const CallPtr& call);

// queues/usage_handlers.cc
void ReadUsage(const Backend& backend, const CallPtr& call);

// event_handlers.cc
void ListJobEvents(const Backend& backend, const CallPtr& call);
void ListEvents(const Backend& backend, const CallPtr& call);
void StreamJob(const Backend& backend, const CallPtr& call);
void WatchJobs(const Backend& backend, const CallPtr& call);

// data_handlers.cc
void ListLogs(const Backend& backend, const CallPtr& call);
void ReadLog(const Backend& backend, const CallPtr& call);
void ListOutputs(const Backend& backend, const CallPtr& call);
void ReadOutput(const Backend& backend, const CallPtr& call);
void FindMissingFiles(const Backend& backend, const CallPtr& call);
void GetFile(const Backend& backend, const CallPtr& call);
void PutFile(const Backend& backend, const CallPtr& call);

// series_handlers.cc
void ListSeries(const Backend& backend, const CallPtr& call);
void ReadSeries(const Backend& backend, const CallPtr& call);

// metrics_handler.cc
void AnswerMetrics(const Backend& backend, const CallPtr& call);

// log_handlers.cc
void ReadLogTimes(const Backend& backend, const CallPtr& call);
void SearchLogs(const Backend& backend, const CallPtr& call);

// people_handlers.cc
void ListUsers(const Backend& backend, const CallPtr& call);
void CreateUser(const Backend& backend, const CallPtr& call);
void GetUser(const Backend& backend, const CallPtr& call);
void ChangeUser(const Backend& backend, const CallPtr& call);
void RemoveUser(const Backend& backend, const CallPtr& call);
void ListTeams(const Backend& backend, const CallPtr& call);
void CreateTeam(const Backend& backend, const CallPtr& call);
void GetTeam(const Backend& backend, const CallPtr& call);
void RemoveTeam(const Backend& backend, const CallPtr& call);
void SetMember(const Backend& backend, const CallPtr& call);
void RemoveMember(const Backend& backend, const CallPtr& call);
void ListTokens(const Backend& backend, const CallPtr& call);
void CreateToken(const Backend& backend, const CallPtr& call);
void RevokeToken(const Backend& backend, const CallPtr& call);

// people_handlers.cc, sign-ins
void ListSignIns(const Backend& backend, const CallPtr& call);
void BeginDeviceSignIn(const Backend& backend, const CallPtr& call);
void FinishDeviceSignIn(const Backend& backend, const CallPtr& call);
void BeginCodeSignIn(const Backend& backend, const CallPtr& call);
void FinishCodeSignIn(const Backend& backend, const CallPtr& call);

// policy_handlers.cc
void GetDefaultPolicy(const Backend& backend, const CallPtr& call);
void SetDefaultPolicy(const Backend& backend, const CallPtr& call);
void RemoveDefaultPolicy(const Backend& backend, const CallPtr& call);
void GetPolicy(const Backend& backend, const CallPtr& call);
void SetPolicy(const Backend& backend, const CallPtr& call);
void RemovePolicy(const Backend& backend, const CallPtr& call);

// secret_handlers.cc
void ListSecrets(const Backend& backend, const CallPtr& call);
void SetSecret(const Backend& backend, const CallPtr& call);
void RemoveSecret(const Backend& backend, const CallPtr& call);

// catalog/catalog_handlers.cc, catalog/lineage_handlers.cc
void ListDatabases(const Backend& backend, const CallPtr& call);
void SetDatabase(const Backend& backend, const CallPtr& call);
void RemoveDatabase(const Backend& backend, const CallPtr& call);
void SetTagPolicy(const Backend& backend, const CallPtr& call);
void RemoveTagPolicy(const Backend& backend, const CallPtr& call);
void ListTables(const Backend& backend, const CallPtr& call);
void GetTable(const Backend& backend, const CallPtr& call);
void CreateTable(const Backend& backend, const CallPtr& call);
void RemoveTable(const Backend& backend, const CallPtr& call);
void CreateGrant(const Backend& backend, const CallPtr& call);
void RevokeGrant(const Backend& backend, const CallPtr& call);
void SetColumn(const Backend& backend, const CallPtr& call);
void AnswerTableAccess(const Backend& backend, const CallPtr& call);
void ListLineage(const Backend& backend, const CallPtr& call);

// sql/sql_handlers.cc
void ListSqlSessions(const Backend& backend, const CallPtr& call);
void CreateSqlSession(const Backend& backend, const CallPtr& call);
void GetSqlSession(const Backend& backend, const CallPtr& call);
void EndSqlSession(const Backend& backend, const CallPtr& call);
void RunSql(const Backend& backend, const CallPtr& call);
void CancelSql(const Backend& backend, const CallPtr& call);
void CompleteSql(const Backend& backend, const CallPtr& call);
void InspectSql(const Backend& backend, const CallPtr& call);
void ReadSqlEvents(const Backend& backend, const CallPtr& call);

// models/model_handlers.cc
void ListModels(const Backend& backend, const CallPtr& call);
void GetModel(const Backend& backend, const CallPtr& call);
void GetModelVersion(const Backend& backend, const CallPtr& call);
void ReadModelFile(const Backend& backend, const CallPtr& call);
void CompareModels(const Backend& backend, const CallPtr& call);
void AddModelVersion(const Backend& backend, const CallPtr& call);
void SetModelTag(const Backend& backend, const CallPtr& call);
void RemoveModelTag(const Backend& backend, const CallPtr& call);
void RollbackModel(const Backend& backend, const CallPtr& call);
void RemoveModelVersion(const Backend& backend, const CallPtr& call);

// webhooks/webhook_handlers.cc
void ListServerWebhooks(const Backend& backend, const CallPtr& call);
void SetServerWebhook(const Backend& backend, const CallPtr& call);
void RemoveServerWebhook(const Backend& backend, const CallPtr& call);
void ListWebhooks(const Backend& backend, const CallPtr& call);
void SetWebhook(const Backend& backend, const CallPtr& call);
void RemoveWebhook(const Backend& backend, const CallPtr& call);

// Of replies that are pages or streams of server-sent events, as the request asks;
// event_handlers.cc.
//
// Whether the request has `Accept: text/event-stream`.
bool WantsStream(const Call& call);
// Where a stream goes on: Last-Event-ID of a client that connects again, else `after`.
std::string AfterOf(const Call& call);
// Opens the stream and ties the life of the follower that `add` makes to it. `on_closed` is called
// when the peer has gone; may be empty.
void Follow(const Backend& backend, const CallPtr& call,
            const std::function<Followers::Id(std::shared_ptr<Sink>)>& add,
            std::function<void(Followers::Id)> on_closed = {});

}  // namespace shoal::api
