#include "engine/kubernetes/kube_client.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "base/id.h"
#include "base/log.h"
#include "engine/kubernetes/decode.h"
#include "net/http_status.h"

namespace shoal::engine::kubernetes {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kTimeout{30'000};
constexpr milliseconds kPatience{90'000};     // with a server that is away
constexpr milliseconds kLongestWish{30'000};  // of Retry-After
constexpr size_t kMaxReply = 64 << 20;

bool IsBusy(int status) { return status == 429 || status == 502 || status == 503 || status == 504; }

milliseconds RetryAfter(const net::HttpReply& reply) {
  const int seconds = std::atoi(reply.Header("retry-after").c_str());
  return std::clamp(milliseconds(1000) * seconds, milliseconds(0), kLongestWish);
}

}  // namespace

struct KubeClient::Waiting {
  std::mutex mu;
  std::condition_variable wake;
  bool given_up = false;  // guarded by mu
};

KubeClient::KubeClient(std::string name_space, std::unique_ptr<net::HttpClient> http,
                       std::unique_ptr<Credentials> credentials)
    : name_space_(std::move(name_space)),
      http_(std::move(http)),
      credentials_(std::move(credentials)),
      waiting_(std::make_unique<Waiting>()) {}

KubeClient::~KubeClient() = default;

Result<std::unique_ptr<KubeClient>> KubeClient::Make(ClusterAccess access, const Clock* clock) {
  TRY_ASSIGN(auto credentials, Credentials::Make(&access, clock));
  auto http = net::HttpClient::Make(access.server, access.tls, access.proxy);
  if (!http.ok()) return http.status().With(access.source);
  return std::unique_ptr<KubeClient>(
      new KubeClient(access.name_space, std::move(*http), std::move(credentials)));
}

milliseconds BackOff(int attempt, uint64_t chance) {
  constexpr int64_t kFirst = 100;
  constexpr int64_t kLongest = 5'000;
  const int64_t whole = std::min(kLongest, kFirst << std::min(attempt, 10));
  return milliseconds(whole / 2 + static_cast<int64_t>(chance % static_cast<uint64_t>(whole / 2)));
}

Status ErrorOf(const net::HttpReply& reply) {
  const std::string text = DecodeStatus(reply.body, reply.status);
  const Code code = net::CodeOfHttp(reply.status);
  if (code != Code::kUnauthenticated) return Status(code, text);
  return Unauthenticated("the cluster does not know who asks: " + text +
                         "; log in to it again, `kubectl auth whoami` shows as whom");
}

bool KubeClient::Sleep(milliseconds time) const {
  std::unique_lock lock(waiting_->mu);
  return !waiting_->wake.wait_for(lock, time, [this] { return waiting_->given_up; });
}

void KubeClient::GiveUp() {
  {
    std::lock_guard lock(waiting_->mu);
    waiting_->given_up = true;
  }
  waiting_->wake.notify_all();
}

Result<net::HttpReply> KubeClient::Once(net::HttpRequest request) const {
  TRY_ASSIGN(const std::string authorization, credentials_->Authorization());
  if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
  request.headers.emplace_back("Accept", "application/json");
  request.headers.emplace_back("User-Agent", "shoal");
  return http_->Call(request, kTimeout, kMaxReply);
}

// Every call that we make may be made twice: reads, applies, patches and deletes.
Result<net::HttpReply> KubeClient::Call(net::HttpRequest request) const {
  const auto deadline = SteadyClock::now() + kPatience;
  bool refused = false;
  for (int attempt = 0;; ++attempt) {
    auto reply = Once(request);
    milliseconds wait = BackOff(attempt, RandomSeed());
    Status why = reply.status();
    if (reply.ok() && reply->status == 401 && !std::exchange(refused, true)) {
      credentials_->Refused();
      continue;
    }
    if (reply.ok() && !IsBusy(reply->status)) return reply;
    if (reply.ok()) {
      why = ErrorOf(*reply);
      wait = std::max(wait, RetryAfter(*reply));
    } else if (why.code() != Code::kUnavailable && why.code() != Code::kDeadlineExceeded) {
      return why;
    }
    if (SteadyClock::now() + wait >= deadline || !Sleep(wait)) {
      return Unavailable("the cluster's API server does not answer: " + why.message());
    }
    if (attempt == 3)
      LogWarning("the cluster's API server does not answer: {}; trying again", why.message());
  }
}

Result<json::object> KubeClient::CallForObject(net::HttpRequest request) const {
  TRY_ASSIGN(const net::HttpReply reply, Call(std::move(request)));
  if (reply.status < 200 || reply.status >= 300) return ErrorOf(reply);
  auto object = ParseJsonObject(reply.body);
  if (!object.ok()) return DataLoss("the API server's answer is no JSON object");
  return object;
}

Result<json::object> KubeClient::Get(const std::string& path) const {
  net::HttpRequest request;
  request.target = http_->prefix() + path;
  return CallForObject(std::move(request));
}

Result<json::object> KubeClient::Patch(const std::string& path, const char* options,
                                       const char* kind, const json::object& body) const {
  net::HttpRequest request;
  request.method = "PATCH";
  request.target = http_->prefix() + path + "?fieldManager=shoal" + options;
  request.headers = {{"Content-Type", kind}};
  request.body = ToText(body);
  return CallForObject(std::move(request));
}

Result<json::object> KubeClient::Apply(const std::string& path, const json::object& object) const {
  return Patch(path, "&force=true", "application/apply-patch+yaml", object);
}

Result<json::object> KubeClient::MergePatch(const std::string& path,
                                            const json::object& patch) const {
  return Patch(path, "", "application/merge-patch+json", patch);
}

Status KubeClient::Delete(const std::string& path, const json::object& options) const {
  net::HttpRequest request;
  request.method = "DELETE";
  request.target = http_->prefix() + path;
  request.headers = {{"Content-Type", "application/json"}};
  request.body = ToText(options);
  TRY_ASSIGN(const net::HttpReply reply, Call(std::move(request)));
  constexpr int kNotFound = 404;
  if (reply.status < 300 || reply.status == kNotFound) return Status::Ok();
  return ErrorOf(reply);
}

Result<std::string> KubeClient::Text(const std::string& path, size_t limit) const {
  net::HttpRequest request;
  request.target = http_->prefix() + path;
  TRY_ASSIGN(net::HttpReply reply, Call(std::move(request)));
  if (reply.status != 200) return ErrorOf(reply);
  if (reply.body.size() > limit) reply.body.erase(0, reply.body.size() - limit);
  return std::move(reply.body);
}

Result<std::unique_ptr<net::HttpStream>> KubeClient::Watch(const std::string& path) const {
  net::HttpRequest request;
  request.target = http_->prefix() + path;
  TRY_ASSIGN(const std::string authorization, credentials_->Authorization());
  if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
  TRY_ASSIGN(auto stream, http_->Open(request, kTimeout));
  if (stream->head().status == 200) return stream;
  net::HttpReply reply = stream->head();
  reply.body = stream->Next(kTimeout).value_or("");
  return ErrorOf(reply);
}

Result<net::UpgradedChannel> KubeClient::Upgrade(
    const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& headers) const {
  net::HttpRequest request;
  request.target = http_->prefix() + path;
  request.headers = headers;
  TRY_ASSIGN(const std::string authorization, credentials_->Authorization());
  if (!authorization.empty()) request.headers.emplace_back("Authorization", authorization);
  net::HttpReply refusal;
  auto upgraded = http_->Upgrade(request, "websocket", kTimeout, &refusal);
  if (!upgraded.ok() && refusal.status != 0) return ErrorOf(refusal);
  return upgraded;
}

}  // namespace shoal::engine::kubernetes
