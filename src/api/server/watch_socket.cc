#include "api/server/watch_socket.h"

#include <map>
#include <optional>
#include <utility>

#include "api/rest/router.h"
#include "api/server/followers.h"
#include "base/mutex.h"

namespace shoal::api {
namespace {

constexpr size_t kMaxSubscriptions = 1000;
constexpr uint16_t kUnsupportedData = 1003;
constexpr int kNotFound = 404;

// One WebSocket. Held by its own callbacks; they are dropped when it closes.
class WatchSocket : public std::enable_shared_from_this<WatchSocket> {
 public:
  WatchSocket(const Backend& backend, CallPtr call, std::shared_ptr<net::HttpWebSocket> socket)
      : backend_(backend), call_(std::move(call)), socket_(std::move(socket)) {}

  void Serve() {
    const auto self = shared_from_this();
    socket_->OnClosed([self](uint16_t, const std::string&) { self->RemoveAll(); });
    socket_->OnDrained([self] { self->WakeAll(); });
    socket_->OnMessage([self](std::string_view bytes, bool text) {
      if (!text) return self->socket_->Close(kUnsupportedData, "expected JSON in text messages");
      // Reads the store, so not on the I/O thread.
      const std::string message(bytes);
      const bool added = self->backend_.defer([self, message] { self->OnMessage(message); });
      if (!added) self->Complain(0, Unavailable("the server is busy; try again"));
    });
  }

 private:
  void OnMessage(const std::string& text) {
    const Result<json::object> message = ParseJsonObject(text);
    if (!message.ok()) return Complain(0, message.status());
    if (message->contains("unsubscribe")) return Unsubscribe(GetIntOr(*message, "unsubscribe", 0));
    const Result<int64_t> number = GetInt(*message, "subscribe");
    if (!number.ok()) return Complain(0, number.status());
    const Status done = Subscribe(*number, *message);
    if (!done.ok()) Complain(*number, done);
  }

  Status Subscribe(int64_t number, const json::object& message) {
    // The connection may be older than the end of its token.
    if (!backend_.people->IsValid(call_->principal)) {
      RefuseSocket(socket_.get());
      return Status::Ok();
    }
    TRY(CheckFields(message));
    TRY(Reserve(number));
    const Status added = Add(number, message);
    if (!added.ok()) Forget(number);
    return added;
  }

  // The fields are the parameters of the request that streams the same over HTTP.
  static Status CheckFields(json::object message) {
    const bool one_job = message.contains("job");
    message.erase("subscribe");
    if (one_job) TRY(GetString(message, "job").status());
    message.erase("job");
    return CheckValues(*FindRoute(one_job ? Operation::kStreamJob : Operation::kListEvents),
                       message);
  }

  // Keeps the number for the subscription that is being made.
  Status Reserve(int64_t number) {
    const MutexLock lock(mu_);
    if (closed_) return Unavailable("the connection is closed");
    if (followers_.contains(number))
      return AlreadyExists("there is a subscription " + std::to_string(number) + " already");
    if (followers_.size() >= kMaxSubscriptions)
      return ResourceExhausted("a connection has at most " + std::to_string(kMaxSubscriptions) +
                               " subscriptions");
    followers_[number] = 0;
    return Status::Ok();
  }

  void Forget(int64_t number) {
    const MutexLock lock(mu_);
    followers_.erase(number);
  }

  Status Add(int64_t number, const json::object& message) {
    const std::string job = GetStringOr(message, "job", "");
    const std::string after = GetStringOr(message, "after", "");
    const auto sink = MakeSocketSink(socket_, number, [weak = weak_from_this(), number] {
      if (const auto self = weak.lock()) self->Forget(number);
    });
    if (job.empty()) {
      TRY_ASSIGN(const int64_t position, ReadEventsAfter(backend_, after));
      const std::string team = GetStringOr(message, "team", "");
      return Keep(number, backend_.followers->AddEvents({position, team, call_->principal}, sink));
    }
    TRY(CheckJob(job));
    Arguments arguments;
    arguments.body = message;
    TRY_ASSIGN(JobFollowRequest request, ReadJobFollow(arguments, job, after));
    if (request.logs) TRY(AuditLogs(job));
    return Keep(number, backend_.followers->AddJob(std::move(request), call_->principal, sink));
  }

  Status CheckJob(const std::string& id) const {
    const auto job = backend_.store->GetJob(id);
    if (!job.ok() || call_->principal.RoleIn(job->team) == Role::kNone)
      return NotFound("there is no job " + id + " that you may see");
    return Status::Ok();
  }

  Status AuditLogs(const std::string& id) const {
    if (!call_->principal.scopes.Has(Scope::kDataRead))
      return PermissionDenied("the token lacks the scope data:read");
    controller::AuditEntry entry;
    entry.time = backend_.clock->Wall();
    entry.actor = call_->principal.user;
    entry.action = call_->route->name;
    entry.object = id;
    entry.detail = {{"logs", true}};
    return backend_.audit->Append({&entry, 1});
  }

  Status Keep(int64_t number, Followers::Id id) {
    if (id == 0) return Unavailable("too many streams are open; try again later");
    const MutexLock lock(mu_);
    const auto found = followers_.find(number);
    if (found == followers_.end()) {  // it has ended, or the peer has gone, meanwhile
      backend_.followers->Remove(id);
    } else {
      found->second = id;
    }
    return Status::Ok();
  }

  void Unsubscribe(int64_t number) {
    const MutexLock lock(mu_);
    const auto found = followers_.find(number);
    if (found == followers_.end()) return;
    if (found->second != 0) backend_.followers->Remove(found->second);
    followers_.erase(found);
  }

  void RemoveAll() {
    const MutexLock lock(mu_);
    closed_ = true;
    for (const auto& [number, id] : followers_) backend_.followers->Remove(id);
    followers_.clear();
  }

  void WakeAll() {
    const MutexLock lock(mu_);
    for (const auto& [number, id] : followers_) backend_.followers->Wake(id);
  }

  void Complain(int64_t number, const Status& status) {
    (void)socket_->Send(ToText(json::object{
        {"sub", number}, {"status", HttpStatusOf(status.code())}, {"error", status.message()}}));
  }

  const Backend& backend_;
  const CallPtr call_;
  const std::shared_ptr<net::HttpWebSocket> socket_;
  Mutex mu_;
  // By the client's number, 0 while a subscription is being made; guarded by mu_.
  std::map<int64_t, Followers::Id> followers_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace

void ServeWatch(const Backend& backend, const CallPtr& call) {
  if (!call->request().websocket)
    return call->answer(Problem(
        426, "this address is for WebSockets of the protocol " + std::string(kWatchProtocol)));
  const bool offered = call->request().Header("sec-websocket-protocol").find(kWatchProtocol) !=
                       std::string_view::npos;
  auto socket = call->exchange->AcceptWebSocket(offered ? kWatchProtocol : "");
  if (!socket.ok()) return call->answer(Problem(socket.status()));
  std::make_shared<WatchSocket>(backend, call, std::move(*socket))->Serve();
}

}  // namespace shoal::api
