#include "engine/marathon/marathon_api.h"

#include "engine/marathon/app_spec.h"

namespace shoal::engine::marathon {
namespace {

constexpr std::chrono::milliseconds kTimeout{30'000};

}  // namespace

Result<std::unique_ptr<MarathonApi>> MarathonApi::Make(const std::string& url,
                                                       const std::string& authorities,
                                                       const Credentials& credentials) {
  TRY_ASSIGN(auto client, ServiceClient::Make("Marathon", url, authorities, credentials));
  return std::unique_ptr<MarathonApi>(new MarathonApi(std::move(client)));
}

Result<Capacity> MarathonApi::Numbers() const {
  TRY_ASSIGN(const net::HttpReply info, client_->Call(client_->Request("GET", "/v2/info")));
  const auto mesos = DecodeMesosUrl(info.body);
  if (!mesos.ok()) return client_->Unreadable("/v2/info", mesos.status());
  if (mesos->empty()) return Unimplemented("Marathon at " + url() + " does not say where Mesos is");
  TRY_ASSIGN(const auto http, net::HttpClient::Make(*mesos, {}));
  net::HttpRequest request;
  request.target = http->prefix() + "/metrics/snapshot";
  TRY_ASSIGN(const net::HttpReply reply, http->Call(request, kTimeout));
  if (reply.status != 200)
    return Unavailable("Mesos at " + *mesos + " answers GET /metrics/snapshot with " +
                       std::to_string(reply.status));
  const auto numbers = DecodeClusterResources(reply.body);
  if (!numbers.ok()) return client_->Unreadable("/metrics/snapshot", numbers.status());
  return Capacity{numbers->cpus, static_cast<int64_t>(numbers->memory_mb) << 20,
                  static_cast<int>(numbers->gpus)};
}

Result<MarathonApi::Change> MarathonApi::SendChange(const net::HttpRequest& request) const {
  constexpr int kConflict = 409;
  TRY_ASSIGN(const net::HttpReply reply, client_->Call(request, kConflict));
  Change change;
  if (reply.status != kConflict) {
    change.deployment = DecodeDeployment(reply.body);
    return change;
  }
  change.conflicting = DecodeConflict(reply.body);
  if (change.conflicting.empty()) return client_->Refusal(request, reply);
  return change;
}

Result<MarathonApi::Change> MarathonApi::PutGroup(const json::object& group, bool force) const {
  const std::string id(group.at("id").as_string());
  return SendChange(
      client_->Request("PUT", "/v2/groups" + id + (force ? "?force=true" : ""), group));
}

Result<MarathonApi::Change> MarathonApi::KillTasks(const std::vector<std::string>& ids,
                                                   bool force) const {
  return SendChange(client_->Request(
      "POST", std::string("/v2/tasks/delete?scale=true") + (force ? "&force=true" : ""),
      json::object{{"ids", json::array(ids.begin(), ids.end())}}));
}

Result<std::string> MarathonApi::DeleteGroup(const std::string& id) const {
  constexpr int kNotFound = 404;
  TRY_ASSIGN(
      const net::HttpReply reply,
      client_->Call(client_->Request("DELETE", "/v2/groups" + id + "?force=true"), kNotFound));
  return reply.status == kNotFound ? std::string() : DecodeDeployment(reply.body);
}

Result<std::vector<std::string>> MarathonApi::Deployments() const {
  TRY_ASSIGN(const net::HttpReply reply, client_->Call(client_->Request("GET", "/v2/deployments")));
  auto ids = DecodeDeployments(reply.body);
  if (!ids.ok()) return client_->Unreadable("/v2/deployments", ids.status());
  return ids;
}

Result<std::vector<App>> MarathonApi::AppsOf(const std::string& job_id) const {
  const std::string target =
      "/v2/apps?label=" + net::PercentEncode(std::string(kJobLabel) + "==" + job_id) +
      "&embed=apps.tasks&embed=apps.lastTaskFailure";
  TRY_ASSIGN(const net::HttpReply reply, client_->Call(client_->Request("GET", target)));
  auto apps = DecodeApps(reply.body);
  if (!apps.ok()) return client_->Unreadable(target, apps.status());
  return apps;
}

Result<std::vector<PendingApp>> MarathonApi::Queue() const {
  TRY_ASSIGN(const net::HttpReply reply, client_->Call(client_->Request("GET", "/v2/queue")));
  auto waiting = DecodeQueue(reply.body);
  if (!waiting.ok()) return client_->Unreadable("/v2/queue", waiting.status());
  return waiting;
}

Result<std::unique_ptr<net::HttpStream>> MarathonApi::Events() const {
  net::HttpRequest request = client_->Request(
      "GET", "/v2/events?event_type=status_update_event&event_type=deployment_success");
  request.headers.front().second = "text/event-stream";
  TRY_ASSIGN(auto stream, client_->Open(request));
  if (stream->head().status == 200) return stream;
  return client_->Refusal(request, stream->head());
}

}  // namespace shoal::engine::marathon
