#include "api/client/remote_schedules.h"

#include <utility>

#include "api/client/api_client.h"
#include "api/client/remote_groups.h"
#include "api/client/remote_secrets.h"
#include "net/http.h"

namespace shoal::api {
namespace {

engine::ScheduleStatus StatusOf(const json::object& item) {
  engine::ScheduleStatus status;
  status.name = GetStringOr(item, "name", "");
  status.cron = GetStringOr(item, "cron", "");
  status.time_zone = GetStringOr(item, "time_zone", "");
  status.enabled = GetBoolOr(item, "enabled", true);
  status.next = GetStringOr(item, "next", "");
  status.successes = GetInt(item, "successes").value_or(0);
  status.failures = GetInt(item, "failures").value_or(0);
  status.last_success = GetStringOr(item, "last_success", "");
  status.last_failure = GetStringOr(item, "last_failure", "");
  const json::value* const active = item.if_contains("active");
  if (active == nullptr || !active->is_array()) return status;
  for (const json::value& id : active->get_array())
    if (id.is_string()) status.active.emplace_back(id.get_string());
  return status;
}

class ServerSchedules final : public RemoteSchedules {
 public:
  ServerSchedules(std::unique_ptr<ApiClient> client, std::string team,
                  std::function<void(const std::string&)> on_note)
      : client_(std::move(client)), team_(std::move(team)), on_note_(std::move(on_note)) {}

  Result<std::string> Describe(const job::Job& /*job*/,
                               const engine::ScheduledRun& /*run*/) override {
    return Unimplemented("a server's schedules are not described; `shoal schedule` makes them");
  }
  Result<bool> Put(const job::Job& /*job*/, const engine::ScheduledRun& /*run*/) override {
    return Unimplemented("a server's schedules are made of a file");
  }

  Result<RemoteSchedule> PutFile(const std::string& name,
                                 const controller::NewFile& file) override {
    TRY_ASSIGN(json::object body, FileRequest(*client_, file, team_, on_note_));
    body.erase("team");
    if (const json::value* const manifests = body.if_contains("manifests")) {
      body["manifest"] = manifests->as_array().front();
      body.erase("manifests");
    }
    ApiRequest request;
    request.method = "PUT";
    request.target = TargetOf(name);
    request.content_type = "application/json";
    request.body = ToText(body);
    TRY_ASSIGN(const net::HttpReply reply, client_->Call(request));
    TRY_ASSIGN(const json::object schedule, ParseJsonObject(reply.body));
    constexpr int kCreated = 201;
    return RemoteSchedule{reply.status == kCreated, GetStringOr(schedule, "next", "")};
  }

  Result<std::vector<engine::ScheduleStatus>> List() override {
    TRY_ASSIGN(const json::object reply, client_->Get("/api/v1/schedules"));
    const json::value* const items = reply.if_contains("items");
    if (items == nullptr || !items->is_array())
      return DataLoss("the server's answer has no list of items");
    std::vector<engine::ScheduleStatus> list;
    for (const json::value& item : items->get_array())
      if (item.is_object()) list.push_back(StatusOf(item.get_object()));
    return list;
  }

  Status Remove(const std::string& name, bool stop) override {
    return client_->CallJson("DELETE", TargetOf(name) + (stop ? "?stop=true" : "")).status();
  }

  Result<std::string> RunNow(const std::string& name) override {
    TRY_ASSIGN(const json::object reply, client_->CallJson("POST", TargetOf(name) + "/run"));
    return GetString(reply, "id");
  }

 private:
  std::string TargetOf(const std::string& name) const {
    return "/api/v1/teams/" + net::PercentEncode(team_) + "/schedules/" + net::PercentEncode(name);
  }

  const std::unique_ptr<ApiClient> client_;
  const std::string team_;
  const std::function<void(const std::string&)> on_note_;
};

}  // namespace

Result<std::unique_ptr<RemoteSchedules>> MakeRemoteSchedules(
    const Login& login, std::string team, std::function<void(const std::string&)> on_note) {
  TRY_ASSIGN(auto client, ApiClient::Make(login));
  if (team.empty()) {
    TRY_ASSIGN(team, UsualTeam(*client));
  }
  return std::unique_ptr<RemoteSchedules>(
      std::make_unique<ServerSchedules>(std::move(client), std::move(team), std::move(on_note)));
}

}  // namespace shoal::api
