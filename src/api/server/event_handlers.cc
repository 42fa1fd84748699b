#include <charconv>
#include <utility>

#include "api/rest/job_json.h"
#include "api/rest/sse.h"
#include "api/server/followers.h"
#include "api/server/handlers.h"
#include "api/server/watch_socket.h"
#include "controller/store/cursor.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr const char* kNow = "now";

int LimitOf(const Call& call) {
  return static_cast<int>(call.arguments.Integer("limit", kDefaultPage));
}

std::shared_ptr<net::HttpReplyStream> OpenStream(const CallPtr& call) {
  return call->exchange->Stream(
      kOk,
      {{"Content-Type", kEventStream}, {"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}});
}

// A number of events that were read, for a page of one job.
Result<int64_t> ParseSeq(const std::string& text) {
  if (text.empty()) return 0;
  int64_t seq = 0;
  const std::string number = text.substr(0, text.find(';'));
  const char* const end = number.data() + number.size();
  const auto [rest, error] = std::from_chars(number.data(), end, seq);
  if (error != std::errc() || rest != end || seq < 0)
    return InvalidArgument("after: got " + text.substr(0, 64) +
                           ", expected the position of an event of this job");
  return seq;
}

// "worker-0.0:1234,worker-1.0:17" into offsets, "tail:20" into lines.
Status ParseFrom(const std::string& text, JobFollowRequest* request) {
  constexpr std::string_view kTail = "tail:";
  constexpr int kMaxLines = 1'000'000'000;
  const auto number = [](std::string_view digits) -> int64_t {
    int64_t value = -1;
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, value);
    return error == std::errc() && rest == end ? value : -1;
  };
  const Status wrong =
      InvalidArgument("from: expected positions such as worker-0.0:1234,worker-1.0:17 or tail:20");
  if (text.starts_with(kTail)) {
    const int64_t lines = number(std::string_view(text).substr(kTail.size()));
    if (lines < 0 || lines > kMaxLines) return wrong;
    request->tail = static_cast<int>(lines);
    return Status::Ok();
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string_view one = rest.substr(0, end);
    const size_t colon = one.rfind(':');
    const auto key = ParseLogName(one.substr(0, colon));
    const int64_t offset = colon == std::string_view::npos ? -1 : number(one.substr(colon + 1));
    if (!key || offset < 0) return wrong;
    request->from[*key] = offset;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return Status::Ok();
}

json::object EventItem(const Backend& backend, const controller::StoredEvent& event) {
  json::object item = EventToReply(event.job, event.event);
  item["cursor"] = controller::FormatCursor(backend.store->store_id(), event.position);
  return item;
}

}  // namespace

bool WantsStream(const Call& call) {
  return call.request().Header("accept").find(kEventStream) != std::string_view::npos;
}

std::string AfterOf(const Call& call) {
  const std::string last(call.request().Header("last-event-id"));
  return last.empty() ? call.arguments.Text("after") : last;
}

void Follow(const Backend& backend, const CallPtr& call,
            const std::function<Followers::Id(std::shared_ptr<Sink>)>& add,
            std::function<void(Followers::Id)> on_closed) {
  if (backend.followers->count() >= Followers::kMax)
    return call->answer(Problem(Unavailable("too many streams are open; try again later")));
  const std::shared_ptr<net::HttpReplyStream> stream = OpenStream(call);
  if (stream == nullptr) return;
  const Followers::Id id = add(MakeSseSink(stream));
  Followers* const followers = backend.followers;
  stream->OnDrained([followers, id] { followers->Wake(id); });
  stream->OnClosed([followers, id, on_closed = std::move(on_closed)] {
    followers->Remove(id);
    if (on_closed) on_closed(id);
  });
}

Result<JobFollowRequest> ReadJobFollow(const Arguments& arguments, const std::string& job,
                                       const std::string& after) {
  JobFollowRequest request;
  request.job = job;
  request.events = arguments.Boolean("events", true);
  request.logs = arguments.Boolean("logs", false);
  TRY_ASSIGN(request.after, ParseSeq(after));
  if (const std::string task = arguments.Text("task"); !task.empty()) {
    TRY_ASSIGN(request.selection, controller::ParseLogSelection(task));
  }
  if (arguments.Has("attempt"))
    request.selection.attempt = static_cast<int>(arguments.Integer("attempt", 0));
  const size_t logs = after.find(';');
  TRY(ParseFrom(logs == std::string::npos ? arguments.Text("from") : after.substr(logs + 1),
                &request));
  return request;
}

Result<int64_t> ReadEventsAfter(const Backend& backend, const std::string& after) {
  if (after.empty()) return 0;
  if (after == kNow) return backend.store->LastPosition();
  return controller::ParseCursor(backend.store->store_id(), after);
}

void ListJobEvents(const Backend& backend, const CallPtr& call) {
  const auto after = ParseSeq(AfterOf(*call));
  if (!after.ok()) return call->answer(QueryProblem(after.status()));
  if (WantsStream(*call)) {
    JobFollowRequest request;
    request.job = call->job->id;
    request.after = *after;
    return Follow(backend, call, [&](std::shared_ptr<Sink> sink) {
      return backend.followers->AddJob(request, call->principal, std::move(sink));
    });
  }
  const auto events = backend.store->ReadEvents(call->job->id, *after, LimitOf(*call));
  if (!events.ok()) return call->answer(Problem(events.status()));
  json::array items;
  for (const controller::Event& event : *events)
    items.push_back(EventToReply(call->job->id, event));
  json::object object{{"items", std::move(items)}};
  if (static_cast<int>(events->size()) == LimitOf(*call))
    object["next"] = std::to_string(events->back().seq);
  call->answer(JsonReply(kOk, object));
}

void ListEvents(const Backend& backend, const CallPtr& call) {
  Result<int64_t> after = ReadEventsAfter(backend, AfterOf(*call));
  if (!after.ok()) return call->answer(QueryProblem(after.status()));
  const std::string team = call->arguments.Text("team");
  if (WantsStream(*call)) {
    return Follow(backend, call, [&](std::shared_ptr<Sink> sink) {
      return backend.followers->AddEvents({*after, team, call->principal}, std::move(sink));
    });
  }
  // Pages skip what the user may not see, so they read on until they are full.
  const auto limit = static_cast<size_t>(LimitOf(*call));
  json::array items;
  bool more = true;
  while (more && items.size() < limit) {
    const auto events = backend.store->ReadAllEvents(*after, LimitOf(*call));
    if (!events.ok()) return call->answer(Problem(events.status()));
    more = events->size() == limit;
    for (const controller::StoredEvent& event : *events) {
      if (items.size() == limit) break;
      after = event.position;
      const bool sees =
          (team.empty() || team == event.team) && call->principal.RoleIn(event.team) != Role::kNone;
      if (sees) items.push_back(EventItem(backend, event));
    }
  }
  json::object object{{"items", std::move(items)}};
  if (more) object["next"] = controller::FormatCursor(backend.store->store_id(), *after);
  call->answer(JsonReply(kOk, object));
}

void StreamJob(const Backend& backend, const CallPtr& call) {
  const auto request = ReadJobFollow(call->arguments, call->job->id, AfterOf(*call));
  if (!request.ok()) {
    const bool body = call->route->operation == Operation::kFollowJob;
    return call->answer(body ? Problem(request.status()) : QueryProblem(request.status()));
  }
  if (request->logs && !call->principal.scopes.Has(Scope::kDataRead))
    return call->answer(Problem(
        PermissionDenied("the token lacks the scope " + std::string(NameOf(Scope::kDataRead)))));
  Follow(backend, call, [&](std::shared_ptr<Sink> sink) {
    return backend.followers->AddJob(*request, call->principal, std::move(sink));
  });
}

void WatchJobs(const Backend& backend, const CallPtr& call) { ServeWatch(backend, call); }

}  // namespace shoal::api
