#include "engine/marathon/service_client.h"

#include <chrono>
#include <cstdlib>

#include "base/base64.h"
#include "base/file.h"
#include "engine/marathon/decode.h"
#include "net/http_status.h"

namespace shoal::engine::marathon {
namespace {

constexpr std::chrono::milliseconds kTimeout{30'000};
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

}  // namespace

Result<Credentials> CredentialsFromEnvironment() {
  Credentials credentials{Variable("SHOAL_MARATHON_TOKEN"), Variable("SHOAL_MARATHON_USER")};
  if (!credentials.empty()) return credentials;
  const std::string path = Variable("SHOAL_MARATHON_CREDENTIALS");
  if (path.empty()) return credentials;
  TRY_ASSIGN(std::string text, ReadFile(path, kMaxFile));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty() || text.find('\n') != std::string::npos)
    return InvalidArgument(path + ": expected one line, USER:PASSWORD or a token of DC/OS");
  (text.find(':') == std::string::npos ? credentials.token : credentials.user) = text;
  return credentials;
}

Result<std::unique_ptr<ServiceClient>> ServiceClient::Make(const std::string& name,
                                                           const std::string& url,
                                                           const std::string& authorities,
                                                           const Credentials& credentials) {
  net::TlsOptions tls;
  if (!authorities.empty()) {
    TRY_ASSIGN(tls.authorities, ReadFile(authorities, kMaxFile));
  }
  TRY_ASSIGN(auto http, net::HttpClient::Make(url, tls));
  return std::unique_ptr<ServiceClient>(
      new ServiceClient(name, std::move(http), Authorization(credentials)));
}

net::HttpRequest ServiceClient::Request(const std::string& method,
                                        const std::string& target) const {
  net::HttpRequest request;
  request.method = method;
  request.target = http_->prefix() + target;
  request.headers.emplace_back("Accept", "application/json");
  if (!authorization_.empty()) request.headers.emplace_back("Authorization", authorization_);
  return request;
}

net::HttpRequest ServiceClient::Request(const std::string& method, const std::string& target,
                                        const json::object& body) const {
  net::HttpRequest request = Request(method, target);
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = ToText(body);
  return request;
}

Status ServiceClient::Refusal(const net::HttpRequest& request, const net::HttpReply& reply) const {
  std::string complaint = DecodeErrorMessage(reply.body);
  while (complaint.ends_with('.')) complaint.pop_back();
  const std::string text = name_ + " at " + url() + " answers " + request.method + " " +
                           request.target + " with " + std::to_string(reply.status) + ": " +
                           complaint;
  const Code code = net::CodeOfHttp(reply.status);
  if (code == Code::kAlreadyExists) return FailedPrecondition(text);
  if (code != Code::kUnauthenticated) return Status(code, text);
  return Unauthenticated(text +
                         "; set SHOAL_MARATHON_TOKEN, SHOAL_MARATHON_USER or "
                         "SHOAL_MARATHON_CREDENTIALS");
}

Status ServiceClient::Unreadable(const std::string& target, const Status& why) const {
  return DataLoss(name_ + "'s answer to GET " + target + " cannot be read: " + why.message());
}

Result<net::HttpReply> ServiceClient::Call(const net::HttpRequest& request, int also) const {
  TRY_ASSIGN(net::HttpReply reply, http_->Call(request, kTimeout));
  const bool good = reply.status >= 200 && reply.status < 300;
  if (!good && reply.status != also) return Refusal(request, reply);
  return reply;
}

Result<std::unique_ptr<net::HttpStream>> ServiceClient::Open(
    const net::HttpRequest& request) const {
  return http_->Open(request, kTimeout);
}

}  // namespace shoal::engine::marathon
