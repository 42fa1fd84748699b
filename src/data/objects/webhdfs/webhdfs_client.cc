#include "data/objects/webhdfs/webhdfs_client.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/objects/s3/signature.h"

namespace shoal::data {
namespace {

constexpr std::string_view kPrefix = "/webhdfs/v1";

// A field of the exception in the body: {"RemoteException":{"exception":…,"message":…}}.
std::string ExceptionField(const net::HttpReply& reply, std::string_view field) {
  const auto json = ParseJsonObject(reply.body);
  if (!json.ok()) return "";
  const json::object* const exception = FindObject(*json, "RemoteException");
  if (exception == nullptr) return "";
  std::string text = GetStringOr(*exception, field, "");
  text.erase(std::min(text.find('\n'), text.size()));  // a stack follows
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  constexpr size_t kMost = 300;
  if (text.size() > kMost) text.resize(kMost);
  return text;
}

bool IsStandby(const net::HttpReply& reply) {
  const std::string exception = ExceptionField(reply, "exception");
  return exception == "StandbyException" || exception == "RetriableException" ||
         exception == "SafeModeException";
}

}  // namespace

WebHdfsClient::WebHdfsClient(WebHdfsSettings settings, const ObjectUri& place,
                             std::shared_ptr<HttpTransport> transport)
    : settings_(std::move(settings)), place_(place), transport_(std::move(transport)) {
  const std::string scheme = place.scheme == ObjectScheme::kWebHdfsTls ? "https://" : "http://";
  std::string_view rest = place.authority;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string node(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (node.empty()) continue;
    if (node.find(':') == std::string::npos)
      node += place.scheme == ObjectScheme::kWebHdfsTls ? ":9871" : ":9870";
    nodes_.push_back(scheme + node);
  }
}

// A transfer has two requests: the name node is asked without the body, and the data node, which
// its redirect names, gets it.
Result<net::HttpReply> WebHdfsClient::CallOne(const std::string& node, const std::string& path,
                                              const WebHdfsCall& call) const {
  TransportCall request;
  request.server = node;
  request.max_body = std::max<size_t>(call.max_body, 64 << 10);
  request.redirects = call.redirects ? 1 : 0;
  // The other name node may be the active one, and is asked at once.
  request.repeat = call.repeat && nodes_.size() == 1;
  request.redirect_body = call.body;
  request.request = [&](WallTime) -> Result<net::HttpRequest> {
    net::HttpRequest made;
    made.method = call.method;
    made.target = fmt::format("{}{}?op={}", kPrefix, EncodeKey(path), call.op);
    if (!settings_.token.empty()) {
      made.target += "&delegation=" + net::PercentEncode(settings_.token);
    } else if (!settings_.user.empty()) {
      made.target += "&user.name=" + net::PercentEncode(settings_.user);
    }
    if (!call.query.empty()) made.target += "&" + call.query;
    return made;
  };
  return transport_->Run(request);
}

// One attempt with each name node.
Result<net::HttpReply> WebHdfsClient::CallAll(const std::string& path,
                                              const WebHdfsCall& call) const {
  const size_t first = active_;
  Status failed = InvalidArgument("no name node was named");
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const size_t at = (first + i) % nodes_.size();
    auto reply = CallOne(nodes_[at], path, call);
    if (!reply.ok()) {
      failed = reply.status().With(UriOf(path));
      const bool passing = failed.retryable() || failed.code() == Code::kDeadlineExceeded;
      if (!passing || !call.repeat) return failed;
      continue;
    }
    if (reply->status == kHttpOk || reply->status == kHttpCreated) {
      active_ = at;
      return reply;
    }
    failed = ErrorOf(path, *reply);
    if (!IsStandby(*reply)) return failed;
  }
  return nodes_.size() == 1 ? failed : Unavailable("no name node is active: " + failed.message());
}

// A failover takes a while.
Result<net::HttpReply> WebHdfsClient::Call(const std::string& path, const WebHdfsCall& call) const {
  for (int attempt = 1;; ++attempt) {
    auto reply = CallAll(path, call);
    const bool again = nodes_.size() > 1 && call.repeat && !reply.ok() &&
                       reply.status().code() == Code::kUnavailable &&
                       attempt < transport_->context().retry.attempts;
    if (!again) return reply;
    transport_->Pause(attempt);
  }
}

Result<json::object> WebHdfsClient::CallForJson(const std::string& path,
                                                const WebHdfsCall& call) const {
  TRY_ASSIGN(const net::HttpReply reply, Call(path, call));
  auto json = ParseJsonObject(reply.body);
  if (!json.ok())
    return DataLoss(UriOf(path) + ": the answer is not WebHDFS: " + json.status().message());
  return json;
}

Status WebHdfsClient::ErrorOf(const std::string& path, const net::HttpReply& reply) const {
  const std::string exception = ExceptionField(reply, "exception");
  const std::string uri = UriOf(path);
  if (exception == "FileNotFoundException") return NotFound(uri + ": there is no such file");
  std::string text = fmt::format("{}: the server answers {}", uri, reply.status);
  if (!exception.empty()) text += " " + exception;
  if (const std::string said = ExceptionField(reply, "message"); !said.empty())
    text += " (" + said + ")";
  if (reply.status == 401)
    text +=
        "; the cluster wants Kerberos, which is not spoken: set HDFS_DELEGATION_TOKEN (hdfs "
        "fetchdt)";
  if (exception == "AccessControlException")
    text += settings_.token.empty() ? "; the user is " + settings_.user + " (HADOOP_USER_NAME)"
                                    : "; the user is that of HDFS_DELEGATION_TOKEN";
  if (exception == "AccessControlException") return PermissionDenied(std::move(text));
  return StatusOfHttp(reply.status, std::move(text));
}

}  // namespace shoal::data
