#include "api/client/api_client.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "api/rest/problem.h"
#include "api/rest/sse.h"
#include "base/clock.h"
#include "net/http/proxy_environment.h"

namespace shoal::api {
namespace {

constexpr std::chrono::milliseconds kStreamTimeout{30'000};
constexpr size_t kMaxReply = size_t{64} << 20;
constexpr int kFirstError = 300;
constexpr int kUnavailable = 503;
constexpr Duration kNextRound = std::chrono::milliseconds(300);
constexpr const char* kLeaderHeaderName = "shoal-leader";  // kLeaderHeader in lower case

}  // namespace

Result<std::unique_ptr<ApiClient>> ApiClient::Make(const Login& login) {
  if (!std::ranges::all_of(login.token, [](char c) { return c > ' ' && c < '\x7f'; }))
    return Unauthenticated("the token for the server " + login.url +
                           " has a blank, a line break or another character that no token has; "
                           "check SHOAL_TOKEN, or use `shoal login " +
                           login.url + "`");
  Servers servers;
  for (const std::string& url : SplitUrls(login.url)) {
    net::HttpSessionOptions options;
    options.tls.pinned_sha256 = login.fingerprint;
    options.proxy = net::ProxyFromEnvironment(url);
    TRY_ASSIGN(std::unique_ptr<net::HttpSession> http,
               net::HttpSession::Make(url, std::move(options)));
    servers.push_back(std::move(http));
  }
  return std::unique_ptr<ApiClient>(new ApiClient(login, std::move(servers)));
}

size_t ApiClient::After(size_t server, const std::string& named) const {
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (i != server && servers_[i]->url() == named) return i;
  }
  return (server + 1) % servers_.size();
}

template <typename T>
Result<T> ApiClient::OnLeader(const std::function<Result<T>(net::HttpSession&)>& call,
                              const net::HttpReply& (*head_of)(const T&)) const {
  const TimePoint end = RealClock::Get()->Now() + kTakeover;
  for (size_t tries = 1;; ++tries) {
    const size_t server = current_;
    Result<T> reply = call(*servers_[server]);
    if (!reply.ok()) reply = Explain(servers_[server]->url(), reply.status());
    const bool away = !reply.ok() && reply.status().code() == Code::kUnavailable;
    const bool stands_by = reply.ok() && head_of(*reply).status == kUnavailable;
    if (servers_.size() == 1 || (!away && !stands_by)) return reply;
    if (RealClock::Get()->Now() > end) return reply;
    current_ = After(server, reply.ok() ? head_of(*reply).Header(kLeaderHeaderName) : "");
    if (tries % servers_.size() == 0) std::this_thread::sleep_for(kNextRound);
  }
}

net::HttpRequest ApiClient::Make(const ApiRequest& request) const {
  net::HttpRequest http;
  http.method = request.method;
  http.target = request.target;
  http.headers = request.headers;
  if (!login_.token.empty()) http.headers.emplace_back("Authorization", "Bearer " + login_.token);
  if (!request.content_type.empty())
    http.headers.emplace_back("Content-Type", request.content_type);
  http.body = request.body;
  return http;
}

// Errors of the connection, which begin with the URL, as sentences about the server.
Status ApiClient::Explain(const std::string& url, const Status& status) const {
  std::string why = status.message();
  while (why.starts_with(url + ": ")) why.erase(0, url.size() + 2);
  const std::string server = "the server " + url;
  if (status.code() == Code::kUnavailable)
    return Unavailable(server + " cannot be reached: " + why +
                       "; check that it runs and that the URL is right (--server none uses none)");
  if (status.code() == Code::kDeadlineExceeded)
    return Unavailable(server + " did not answer in time: " + why);
  if (status.code() == Code::kUnauthenticated && login_.fingerprint.empty())
    return Unauthenticated(server + ": " + why +
                           "; a self-signed certificate is accepted by the fingerprint that `shoal "
                           "server` prints: `shoal login " +
                           login_.url + " --fingerprint …`");
  return {status.code(), server + ": " + why};
}

Result<net::HttpReply> ApiClient::Call(const ApiRequest& request) const {
  Result<net::HttpReply> reply = OnLeader<net::HttpReply>(
      [&](net::HttpSession& server) {
        return server.Call(Make(request), request.timeout, kMaxReply);
      },
      [](const net::HttpReply& made) -> const net::HttpReply& { return made; });
  if (!reply.ok() || reply->status < kFirstError) return reply;
  return StatusOfReply(reply->status, reply->body, url());
}

Result<json::object> ApiClient::CallJson(const std::string& method, const std::string& target,
                                         const json::object& body) const {
  ApiRequest request;
  request.method = method;
  request.target = target;
  if (method != "GET" && (method != "DELETE" || !body.empty())) {
    request.body = ToText(body);
    request.content_type = "application/json";
  }
  TRY_ASSIGN(const net::HttpReply reply, Call(request));
  if (reply.body.empty()) return json::object();
  const Result<json::object> object = ParseJsonObject(reply.body);
  if (object.ok()) return object;
  return DataLoss("the server " + url() + " answered with something else than JSON (" +
                  object.status().message() + "); is it a shoal server?");
}

Result<std::unique_ptr<net::HttpStream>> ApiClient::OpenEvents(const std::string& target,
                                                               const std::string& body) const {
  ApiRequest request;
  request.target = target;
  if (!body.empty()) {
    request.method = "POST";
    request.content_type = "application/json";
    request.body = body;
  }
  request.headers = {{"Accept", kEventStream}};
  using Stream = std::unique_ptr<net::HttpStream>;
  Result<Stream> stream = OnLeader<Stream>(
      [&](net::HttpSession& server) { return server.Open(Make(request), kStreamTimeout); },
      [](const Stream& made) -> const net::HttpReply& { return made->head(); });
  if (!stream.ok() || (*stream)->head().status < kFirstError) return stream;
  std::string problem;
  constexpr size_t kMaxProblem = size_t{64} << 10;
  while (problem.size() < kMaxProblem) {
    const Result<std::string> piece = (*stream)->Next(kStreamTimeout);
    if (!piece.ok() || piece->empty()) break;
    problem += *piece;
  }
  return StatusOfReply((*stream)->head().status, problem, url());
}

std::string QueryText(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) {
    if (value.empty()) continue;
    text += (text.empty() ? "?" : "&") + name + "=" + net::PercentEncode(value);
  }
  return text;
}

}  // namespace shoal::api
