#include <charconv>
#include <cstdint>
#include <utility>

#include "api/server/followers.h"
#include "api/server/handlers.h"
#include "api/sql/sql_follower.h"
#include "api/sql/sql_sessions.h"
#include "base/id.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kCreated = 201;
constexpr int kAccepted = 202;
constexpr int kNoContent = 204;
constexpr int kTooMany = 429;
constexpr int64_t kDefaultRows = 1000;
constexpr int64_t kResultBytes = int64_t{4} << 20;  // of a result's cells
constexpr size_t kAuditedText = 1000;               // bytes of statements in the audit log

json::object ReplyOf(const SqlSession& session) {
  const SqlSessionInfo info = session.info();
  json::object reply{{"id", session.id()},
                     {"team", session.team()},
                     {"user", session.user()},
                     {"state", info.state},
                     {"statements", info.statements},
                     {"created", FormatWall(info.created)}};
  if (!info.reason.empty()) reply["reason"] = info.reason;
  return reply;
}

// The session of the path; null after an answer.
SqlSessionPtr SessionOf(const Backend& backend, const CallPtr& call) {
  call->target = call->arguments.PathText("id");
  Result<SqlSessionPtr> session = backend.sql->Find(call->team, call->target, call->principal);
  if (session.ok()) return std::move(*session);
  call->answer(Problem(session.status()));
  return nullptr;
}

// Answers with what the session's process says about a place of a text.
void AskAbout(const Backend& backend, const CallPtr& call, std::string_view op) {
  const SqlSessionPtr session = SessionOf(backend, call);
  if (session == nullptr) return;
  json::object question{{"op", op},
                        {"text", call->arguments.Text("text")},
                        {"cursor", call->arguments.Integer("cursor", 0)}};
  const Status asked = session->Ask(std::move(question), [call](Result<json::object> answer) {
    if (!answer.ok()) return call->answer(Problem(answer.status()));
    for (const char* const field : {"event", "id"}) answer->erase(field);
    call->answer(JsonReply(kOk, *answer));
  });
  if (!asked.ok()) call->answer(Problem(asked));
}

Result<int64_t> ReadPosition(const std::string& text) {
  if (text.empty()) return 0;
  int64_t position = -1;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, position);
  if (error != std::errc() || rest != end || position < 0)
    return InvalidArgument("after: got " + text.substr(0, 64) +
                           ", expected the position of an event of this session");
  return position;
}

}  // namespace

void ListSqlSessions(const Backend& backend, const CallPtr& call) {
  json::array items;
  for (const SqlSessionPtr& session : backend.sql->List(call->team, call->principal))
    items.push_back(ReplyOf(*session));
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
}

void CreateSqlSession(const Backend& backend, const CallPtr& call) {
  const Result<SqlSessionPtr> session = backend.sql->Create(call->team, call->principal);
  if (session.status().code() == Code::kResourceExhausted)
    return call->answer(Problem(kTooMany, session.status().message()));
  if (!session.ok()) return call->answer(Problem(session.status()));
  call->target = (*session)->id();
  call->answer(JsonReply(kCreated, ReplyOf(**session)));
}

void GetSqlSession(const Backend& backend, const CallPtr& call) {
  const SqlSessionPtr session = SessionOf(backend, call);
  if (session != nullptr) call->answer(JsonReply(kOk, ReplyOf(*session)));
}

void EndSqlSession(const Backend& backend, const CallPtr& call) {
  const SqlSessionPtr session = SessionOf(backend, call);
  if (session == nullptr) return;
  backend.sql->End(session, "ended by " + call->principal.user);
  call->answer({kNoContent, {}, ""});
}

void RunSql(const Backend& backend, const CallPtr& call) {
  const SqlSessionPtr session = SessionOf(backend, call);
  if (session == nullptr) return;
  const std::string text = call->arguments.Text("text");
  call->details = {{"text", text.substr(0, kAuditedText)}, {"sha256", Sha256Hex(text)}};
  // An administrator may look at a session and end it, and not use its tables.
  if (session->user() != call->principal.user)
    return call->answer(
        Problem(PermissionDenied("the session is one of " + session->user() + "; begin another")));
  const int64_t after = session->Read(INT64_MAX, 0).next;
  const Result<int64_t> number = session->Run(
      {text, call->arguments.Integer("rows", kDefaultRows), kResultBytes}, call->principal);
  if (!number.ok()) return call->answer(Problem(number.status()));
  call->answer(
      JsonReply(kAccepted, json::object{{"statement", *number}, {"after", std::to_string(after)}}));
}

void CancelSql(const Backend& backend, const CallPtr& call) {
  const SqlSessionPtr session = SessionOf(backend, call);
  if (session == nullptr) return;
  backend.sql->Cancel(session);
  call->answer(JsonReply(kAccepted, ReplyOf(*session)));
}

void CompleteSql(const Backend& backend, const CallPtr& call) {
  AskAbout(backend, call, "complete");
}

void InspectSql(const Backend& backend, const CallPtr& call) { AskAbout(backend, call, "inspect"); }

void ReadSqlEvents(const Backend& backend, const CallPtr& call) {
  const SqlSessionPtr session = SessionOf(backend, call);
  if (session == nullptr) return;
  const auto after = ReadPosition(AfterOf(*call));
  if (!after.ok()) return call->answer(QueryProblem(after.status()));
  if (WantsStream(*call)) {
    SqlSessions* const sessions = backend.sql;
    const std::string id = session->id();
    return Follow(
        backend, call,
        [&](std::shared_ptr<Sink> sink) {
          const Followers::Id follower = backend.followers->Add(
              MakeSqlFollower(session, *after, std::move(sink)), call->principal);
          sessions->AddStream(id, follower);
          return follower;
        },
        [sessions, id](Followers::Id follower) { sessions->RemoveStream(id, follower); });
  }
  const SqlEvents events =
      session->Read(*after, static_cast<size_t>(call->arguments.Integer("limit", kDefaultPage)));
  json::array items(events.items.begin(), events.items.end());
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)},
                                           {"next", std::to_string(events.next)},
                                           {"lost", events.lost},
                                           {"ended", events.ended}}));
}

}  // namespace shoal::api
