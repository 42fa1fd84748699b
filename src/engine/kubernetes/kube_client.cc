#include "engine/kubernetes/kube_client.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mutex.h"
#include "engine/kubernetes/decode.h"
#include "net/byte_channel.h"
#include "net/http_status.h"

namespace shoal::engine::kubernetes {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kTimeout{30'000};
constexpr milliseconds kPatience{90'000};     // while the server is unreachable
constexpr milliseconds kLongestWish{30'000};  // maximum Retry-After
// An API server that has just started forbids what it allows once it has read its roles.
constexpr milliseconds kReadingRoles{20'000};
constexpr int kForbidden = 403;
constexpr size_t kMaxReply = 64 << 20;

bool IsBusy(int status) { return status == 429 || status == 502 || status == 503 || status == 504; }

}  // namespace

// Shared by all calls that start before the next Interrupt.
struct KubeClient::Interruption {
  const UniqueFd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  bool told = false;  // guarded by State::mu
};

struct KubeClient::State {
  std::shared_ptr<Interruption> Current() {
    const MutexLock lock(mu);
    return interruption;
  }
  Mutex mu;
  CondVar wake;
  std::shared_ptr<Interruption> interruption GUARDED_BY(mu) = std::make_shared<Interruption>();
  bool given_up GUARDED_BY(mu) = false;
  std::shared_ptr<const net::HttpClient> http GUARDED_BY(mu);  // made with
  std::string certificate GUARDED_BY(mu);
  std::optional<SteadyClock::time_point> away GUARDED_BY(mu);  // when it was last unreachable
};

KubeClient::KubeClient(ClusterAccess access, std::shared_ptr<Credentials> credentials)
    : access_(std::move(access)),
      credentials_(std::move(credentials)),
      state_(std::make_unique<State>()) {}

KubeClient::~KubeClient() = default;

Result<std::unique_ptr<KubeClient>> KubeClient::Make(ClusterAccess access, const Clock* clock) {
  TRY_ASSIGN(auto credentials, Credentials::Make(access, clock));
  std::unique_ptr<KubeClient> client(new KubeClient(std::move(access), std::move(credentials)));
  TRY(client->Open().status());
  return client;
}

std::unique_ptr<KubeClient> KubeClient::Share() const {
  return std::unique_ptr<KubeClient>(new KubeClient(access_, credentials_));
}

Result<KubeClient::ServerConnection> KubeClient::Open() const {
  TRY_ASSIGN(std::string authorization, credentials_->Authorization());
  const KeyPair own = credentials_->Certificate();
  const MutexLock lock(state_->mu);
  if (state_->http == nullptr || own.certificate != state_->certificate) {
    net::TlsOptions tls = access_.tls;
    if (!own.certificate.empty()) {
      tls.certificate = own.certificate;
      tls.key = own.key;
    }
    auto http = net::HttpClient::Make(access_.server, tls, access_.proxy);
    if (!http.ok()) return http.status().With(access_.source);
    state_->http = std::move(*http);
    state_->certificate = own.certificate;
  }
  return ServerConnection{state_->http, std::move(authorization)};
}

milliseconds BackOff(int attempt, uint64_t chance) {
  constexpr int64_t kFirst = 100;
  constexpr int64_t kLongest = 5'000;
  const int64_t whole = std::min(kLongest, kFirst << std::min(attempt, 10));
  return milliseconds(whole / 2 + static_cast<int64_t>(chance % static_cast<uint64_t>(whole / 2)));
}

milliseconds WaitAfter(const net::HttpReply& reply, int attempt, uint64_t chance) {
  const int seconds = std::atoi(reply.Header("retry-after").c_str());
  return std::max(BackOff(attempt, chance),
                  std::min(milliseconds(1000) * std::max(seconds, 0), kLongestWish));
}

Status ErrorOf(const net::HttpReply& reply) {
  const std::string text = DecodeStatus(reply.body, reply.status);
  const Code code = net::CodeOfHttp(reply.status);
  if (code != Code::kUnauthenticated) return Status(code, text);
  return Unauthenticated("the cluster does not know who asks: " + text +
                         "; log in to it again, `kubectl auth whoami` shows as whom");
}

bool KubeClient::Sleep(milliseconds time, const Interruption& interruption) const {
  MutexLock lock(state_->mu);
  return !state_->wake.wait_for(
      lock, time, [&]() REQUIRES(state_->mu) { return state_->given_up || interruption.told; });
}

void KubeClient::Interrupt() {
  {
    const MutexLock lock(state_->mu);
    const auto current = std::exchange(state_->interruption, std::make_shared<Interruption>());
    current->told = true;
    (void)::eventfd_write(current->fd.get(), 1);
  }
  state_->wake.notify_all();
}

void KubeClient::Shutdown() {
  {
    const MutexLock lock(state_->mu);
    state_->given_up = true;
  }
  Interrupt();
}

Status KubeClient::SendAuthenticated(
    net::HttpRequest request,
    const std::function<Result<int>(const net::HttpClient&, const net::HttpRequest&)>& ask) const {
  constexpr int kNotKnown = 401;
  for (bool again = false;; again = true) {
    TRY_ASSIGN(const ServerConnection door, Open());
    net::HttpRequest sent = request;
    sent.target = door.http->prefix() + request.target;
    if (!door.authorization.empty()) sent.headers.emplace_back("Authorization", door.authorization);
    TRY_ASSIGN(const int status, ask(*door.http, sent));
    if (status != kNotKnown || again) return Status::Ok();
    InvalidateCredentials();
  }
}

Result<net::HttpReply> KubeClient::SendOnce(net::HttpRequest request) const {
  request.headers.emplace_back("Accept", "application/json");
  request.headers.emplace_back("User-Agent", "shoal");
  net::HttpReply reply;
  TRY(SendAuthenticated(
      std::move(request),
      [&](const net::HttpClient& http, const net::HttpRequest& sent) -> Result<int> {
        TRY_ASSIGN(reply, http.Call(sent, kTimeout, kMaxReply));
        return reply.status;
      }));
  return reply;
}

bool KubeClient::MayBeStarting() const {
  const MutexLock lock(state_->mu);
  return state_->away && SteadyClock::now() < *state_->away + kReadingRoles;
}

// All calls are idempotent and may be repeated: reads, applies, patches and deletes.
Result<net::HttpReply> KubeClient::Call(const net::HttpRequest& request) const {
  const auto deadline = SteadyClock::now() + kPatience;
  const auto interruption = state_->Current();
  const net::WaitInterrupt interrupted(interruption->fd.get());
  for (int attempt = 0;; ++attempt) {
    auto reply = SendOnce(request);
    milliseconds wait = BackOff(attempt, RandomSeed());
    Status why = reply.status();
    const bool early = reply.ok() && reply->status == kForbidden && MayBeStarting();
    if (reply.ok() && !IsBusy(reply->status) && !early) return reply;
    if (reply.ok()) {
      why = ErrorOf(*reply);
      wait = WaitAfter(*reply, attempt, RandomSeed());
    } else if (why.code() != Code::kUnavailable && why.code() != Code::kDeadlineExceeded) {
      return why;
    } else {
      const MutexLock lock(state_->mu);
      state_->away = SteadyClock::now();
    }
    if (SteadyClock::now() + wait >= deadline || !Sleep(wait, *interruption)) {
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
  request.target = path;
  return CallForObject(std::move(request));
}

Result<json::object> KubeClient::Patch(const std::string& path, const char* options,
                                       const char* kind, const json::object& body) const {
  net::HttpRequest request;
  request.method = "PATCH";
  request.target = path + "?fieldManager=shoal" + options;
  request.headers = {{"Content-Type", kind}};
  request.body = ToText(body);
  return CallForObject(std::move(request));
}

Result<json::object> KubeClient::Apply(const std::string& path, const json::object& object) const {
  return Patch(path, "&force=true", "application/apply-patch+yaml", object);
}

Status KubeClient::DryRunApply(const std::string& path, const json::object& object) const {
  return Patch(path, "&force=true&dryRun=All", "application/apply-patch+yaml", object).status();
}

Result<json::object> KubeClient::MergePatch(const std::string& path,
                                            const json::object& patch) const {
  return Patch(path, "", "application/merge-patch+json", patch);
}

Status KubeClient::Delete(const std::string& path, const json::object& options) const {
  net::HttpRequest request;
  request.method = "DELETE";
  request.target = path;
  request.headers = {{"Content-Type", "application/json"}};
  request.body = ToText(options);
  TRY_ASSIGN(const net::HttpReply reply, Call(std::move(request)));
  constexpr int kNotFound = 404;
  if (reply.status < 300 || reply.status == kNotFound) return Status::Ok();
  return ErrorOf(reply);
}

Result<std::string> KubeClient::Text(const std::string& path, size_t limit) const {
  net::HttpRequest request;
  request.target = path;
  TRY_ASSIGN(net::HttpReply reply, Call(std::move(request)));
  if (reply.status != 200) return ErrorOf(reply);
  if (reply.body.size() > limit) reply.body.erase(0, reply.body.size() - limit);
  return std::move(reply.body);
}

Result<std::unique_ptr<net::HttpStream>> KubeClient::Watch(const std::string& path) const {
  net::HttpRequest request;
  request.target = path;
  std::unique_ptr<net::HttpStream> stream;
  TRY(SendAuthenticated(
      std::move(request),
      [&](const net::HttpClient& http, const net::HttpRequest& sent) -> Result<int> {
        TRY_ASSIGN(stream, http.Open(sent, kTimeout));
        return stream->head().status;
      }));
  if (stream->head().status == 200) return stream;
  net::HttpReply reply = stream->head();
  reply.body = stream->Next(kTimeout).value_or("");
  if (IsBusy(reply.status)) (void)Sleep(WaitAfter(reply, 0, RandomSeed()), *state_->Current());
  return ErrorOf(reply);
}

Result<net::UpgradedChannel> KubeClient::Upgrade(
    const std::string& path,
    const std::vector<std::pair<std::string, std::string>>& headers) const {
  net::HttpRequest request;
  request.target = path;
  request.headers = headers;
  net::HttpReply refusal;
  Result<net::UpgradedChannel> upgraded = Unavailable("nothing was asked");
  TRY(SendAuthenticated(
      std::move(request),
      [&](const net::HttpClient& http, const net::HttpRequest& sent) -> Result<int> {
        refusal = {};
        upgraded = http.Upgrade(sent, "websocket", kTimeout, &refusal);
        return refusal.status;
      }));
  if (!upgraded.ok() && refusal.status != 0) return ErrorOf(refusal);
  return upgraded;
}

}  // namespace shoal::engine::kubernetes
