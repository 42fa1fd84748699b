#include "api/client/api_client.h"

#include <algorithm>
#include <utility>

#include "api/rest/problem.h"
#include "api/rest/sse.h"
#include "net/http/proxy_environment.h"

namespace shoal::api {
namespace {

constexpr std::chrono::milliseconds kStreamTimeout{30'000};
constexpr size_t kMaxReply = size_t{64} << 20;
constexpr int kFirstError = 300;

}  // namespace

Result<std::unique_ptr<ApiClient>> ApiClient::Make(const Login& login) {
  if (!std::ranges::all_of(login.token, [](char c) { return c > ' ' && c < '\x7f'; }))
    return Unauthenticated("the token for the server " + login.url +
                           " has a blank, a line break or another character that no token has; "
                           "check SHOAL_TOKEN, or use `shoal login " +
                           login.url + "`");
  net::HttpSessionOptions options;
  options.tls.pinned_sha256 = login.fingerprint;
  options.proxy = net::ProxyFromEnvironment(login.url);
  TRY_ASSIGN(std::unique_ptr<net::HttpSession> http,
             net::HttpSession::Make(login.url, std::move(options)));
  return std::unique_ptr<ApiClient>(new ApiClient(login, std::move(http)));
}

net::HttpRequest ApiClient::Make(const ApiRequest& request) const {
  net::HttpRequest http;
  http.method = request.method;
  http.target = request.target;
  http.headers = request.headers;
  http.headers.emplace_back("Authorization", "Bearer " + login_.token);
  if (!request.content_type.empty())
    http.headers.emplace_back("Content-Type", request.content_type);
  http.body = request.body;
  return http;
}

// Errors of the connection, which begin with the URL, as sentences about the server.
Status ApiClient::Explain(const Status& status) const {
  std::string why = status.message();
  while (why.starts_with(login_.url + ": ")) why.erase(0, login_.url.size() + 2);
  const std::string server = "the server " + login_.url;
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
  Result<net::HttpReply> reply = http_->Call(Make(request), request.timeout, kMaxReply);
  if (!reply.ok()) return Explain(reply.status());
  if (reply->status < kFirstError) return reply;
  return StatusOfReply(reply->status, reply->body, login_.url);
}

Result<json::object> ApiClient::CallJson(const std::string& method, const std::string& target,
                                         const json::object& body) const {
  ApiRequest request;
  request.method = method;
  request.target = target;
  if (method != "GET") {
    request.body = ToText(body);
    request.content_type = "application/json";
  }
  TRY_ASSIGN(const net::HttpReply reply, Call(request));
  if (reply.body.empty()) return json::object();
  const Result<json::object> object = ParseJsonObject(reply.body);
  if (object.ok()) return object;
  return DataLoss("the server " + login_.url + " answered with something else than JSON (" +
                  object.status().message() + "); is it a shoal server?");
}

Result<std::unique_ptr<net::HttpStream>> ApiClient::OpenEvents(const std::string& target) const {
  ApiRequest request;
  request.target = target;
  request.headers = {{"Accept", kEventStream}};
  Result<std::unique_ptr<net::HttpStream>> stream = http_->Open(Make(request), kStreamTimeout);
  if (!stream.ok()) return Explain(stream.status());
  if ((*stream)->head().status < kFirstError) return stream;
  std::string body;
  constexpr size_t kMaxProblem = size_t{64} << 10;
  while (body.size() < kMaxProblem) {
    const Result<std::string> piece = (*stream)->Next(kStreamTimeout);
    if (!piece.ok() || piece->empty()) break;
    body += *piece;
  }
  return StatusOfReply((*stream)->head().status, body, login_.url);
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
