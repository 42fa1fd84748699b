#include "engine/marathon/marathon_api.h"

#include <cstdlib>

#include "base/base64.h"
#include "base/file.h"
#include "engine/marathon/app_spec.h"
#include "net/http_status.h"

namespace shoal::engine::marathon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout{30'000};
constexpr size_t kMaxFile = 1 << 20;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Authorization(const Credentials& credentials) {
  if (!credentials.token.empty()) return "token=" + credentials.token;
  if (!credentials.user.empty()) return "Basic " + EncodeBase64(credentials.user);
  return "";
}

// Of what Marathon said, not of what we sent.
Status Unreadable(const std::string& target, const Status& why) {
  return DataLoss("Marathon's answer to GET " + target + " cannot be read: " + why.message());
}

}  // namespace

Result<Credentials> CredentialsFromEnvironment() {
  Credentials credentials{Variable("SHOAL_MARATHON_TOKEN"), Variable("SHOAL_MARATHON_USER")};
  if (!credentials.token.empty() || !credentials.user.empty()) return credentials;
  const std::string path = Variable("SHOAL_MARATHON_CREDENTIALS");
  if (path.empty()) return credentials;
  TRY_ASSIGN(std::string text, ReadFile(path, kMaxFile));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty() || text.find('\n') != std::string::npos)
    return InvalidArgument(path + ": expected one line, USER:PASSWORD or a token of DC/OS");
  (text.find(':') == std::string::npos ? credentials.token : credentials.user) = text;
  return credentials;
}

Result<std::unique_ptr<MarathonApi>> MarathonApi::Make(const std::string& url,
                                                       const std::string& authorities,
                                                       const Credentials& credentials) {
  net::TlsOptions tls;
  if (!authorities.empty()) {
    TRY_ASSIGN(tls.authorities, ReadFile(authorities, kMaxFile));
  }
  TRY_ASSIGN(auto http, net::HttpClient::Make(url, tls));
  return std::unique_ptr<MarathonApi>(new MarathonApi(std::move(http), Authorization(credentials)));
}

net::HttpRequest MarathonApi::Request(const std::string& method, const std::string& target) const {
  net::HttpRequest request;
  request.method = method;
  request.target = http_->prefix() + target;
  request.headers.emplace_back("Accept", "application/json");
  if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
  return request;
}

Status MarathonApi::Refusal(const net::HttpRequest& request, const net::HttpReply& reply) const {
  std::string complaint = DecodeComplaint(reply.body);
  while (complaint.ends_with('.')) complaint.pop_back();
  const std::string text = "Marathon at " + url() + " answers " + request.method + " " +
                           request.target + " with " + std::to_string(reply.status) + ": " +
                           complaint;
  const Code code = net::CodeOfHttp(reply.status);
  if (code == Code::kAlreadyExists) return FailedPrecondition(text);
  if (code != Code::kUnauthenticated) return Status(code, text);
  return Unauthenticated(text +
                         "; set SHOAL_MARATHON_TOKEN, SHOAL_MARATHON_USER or "
                         "SHOAL_MARATHON_CREDENTIALS");
}

Result<net::HttpReply> MarathonApi::Call(const net::HttpRequest& request, int also) const {
  TRY_ASSIGN(net::HttpReply reply, http_->Call(request, kTimeout));
  const bool good = reply.status >= 200 && reply.status < 300;
  if (!good && reply.status != also) return Refusal(request, reply);
  return reply;
}

Result<Capacity> MarathonApi::Numbers() const {
  TRY_ASSIGN(const net::HttpReply info, Call(Request("GET", "/v2/info")));
  const auto mesos = DecodeMesosUrl(info.body);
  if (!mesos.ok()) return Unreadable("/v2/info", mesos.status());
  if (mesos->empty()) return Unimplemented("Marathon at " + url() + " does not say where Mesos is");
  TRY_ASSIGN(const auto http, net::HttpClient::Make(*mesos, {}));
  net::HttpRequest request;
  request.target = http->prefix() + "/metrics/snapshot";
  TRY_ASSIGN(const net::HttpReply reply, http->Call(request, kTimeout));
  if (reply.status != 200)
    return Unavailable("Mesos at " + *mesos + " answers GET /metrics/snapshot with " +
                       std::to_string(reply.status));
  const auto numbers = DecodeNumbers(reply.body);
  if (!numbers.ok()) return Unreadable("/metrics/snapshot", numbers.status());
  return Capacity{numbers->cpus, static_cast<int64_t>(numbers->memory_mb) << 20,
                  static_cast<int>(numbers->gpus)};
}

Result<MarathonApi::Change> MarathonApi::SendChange(const net::HttpRequest& request) const {
  constexpr int kConflict = 409;
  TRY_ASSIGN(const net::HttpReply reply, Call(request, kConflict));
  Change change;
  if (reply.status != kConflict) {
    change.deployment = DecodeDeployment(reply.body);
    return change;
  }
  change.conflicting = DecodeConflict(reply.body);
  if (change.conflicting.empty()) return Refusal(request, reply);
  return change;
}

Result<MarathonApi::Change> MarathonApi::PutGroup(const json::object& group, bool force) const {
  const std::string id(group.at("id").as_string());
  net::HttpRequest request = Request("PUT", "/v2/groups" + id + (force ? "?force=true" : ""));
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = ToText(group);
  return SendChange(request);
}

Result<MarathonApi::Change> MarathonApi::KillTasks(const std::vector<std::string>& ids,
                                                   bool force) const {
  net::HttpRequest request =
      Request("POST", std::string("/v2/tasks/delete?scale=true") + (force ? "&force=true" : ""));
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = ToText(json::object{{"ids", json::array(ids.begin(), ids.end())}});
  return SendChange(request);
}

Result<std::string> MarathonApi::DeleteGroup(const std::string& id) const {
  constexpr int kNotFound = 404;
  TRY_ASSIGN(const net::HttpReply reply,
             Call(Request("DELETE", "/v2/groups" + id + "?force=true"), kNotFound));
  return reply.status == kNotFound ? std::string() : DecodeDeployment(reply.body);
}

Result<std::vector<std::string>> MarathonApi::Deployments() const {
  TRY_ASSIGN(const net::HttpReply reply, Call(Request("GET", "/v2/deployments")));
  auto ids = DecodeDeployments(reply.body);
  if (!ids.ok()) return Unreadable("/v2/deployments", ids.status());
  return ids;
}

Result<std::vector<App>> MarathonApi::AppsOf(const std::string& job_id) const {
  const std::string target =
      "/v2/apps?label=" + net::PercentEncode(std::string(kJobLabel) + "==" + job_id) +
      "&embed=apps.tasks&embed=apps.lastTaskFailure";
  TRY_ASSIGN(const net::HttpReply reply, Call(Request("GET", target)));
  auto apps = DecodeApps(reply.body);
  if (!apps.ok()) return Unreadable(target, apps.status());
  return apps;
}

Result<std::vector<Waiting>> MarathonApi::Queue() const {
  TRY_ASSIGN(const net::HttpReply reply, Call(Request("GET", "/v2/queue")));
  auto waiting = DecodeQueue(reply.body);
  if (!waiting.ok()) return Unreadable("/v2/queue", waiting.status());
  return waiting;
}

Result<std::unique_ptr<net::HttpStream>> MarathonApi::Events() const {
  net::HttpRequest request =
      Request("GET", "/v2/events?event_type=status_update_event&event_type=deployment_success");
  request.headers.front().second = "text/event-stream";
  TRY_ASSIGN(auto stream, http_->Open(request, kTimeout));
  if (stream->head().status == 200) return stream;
  return Refusal(request, stream->head());
}

}  // namespace shoal::engine::marathon
