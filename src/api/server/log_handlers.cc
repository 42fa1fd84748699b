// Times of logs, and the search over the logs of all jobs of a user's teams.

#include <memory>
#include <string>
#include <utility>

#include "api/people/identity.h"
#include "api/rest/job_json.h"
#include "api/server/handlers.h"
#include "base/access/directory_owner.h"
#include "base/base64.h"
#include "base/utf8.h"
#include "controller/files/log_search.h"
#include "job/execution/job_dir.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int kJobsAtOnce = 200;
constexpr int64_t kDefaultLines = 1000;
constexpr Duration kTimeLimit = std::chrono::seconds(10);
// Searched between two turns of a thread.
constexpr int64_t kStepBytes = int64_t{8} << 20;
// Written at once; the search goes on when the peer has taken it.
constexpr size_t kEnough = size_t{256} << 10;

// A search on its way. Held by the callbacks of its stream; used by one thread at a time.
struct Searching {
  Searching(controller::LogSearch::NextSources sources, controller::LineFilter filter,
            controller::LogSelection selection, bool with_times)
      : search(std::move(sources), std::move(filter), std::move(selection), with_times),
        times(with_times) {}
  controller::LogSearch search;
  const bool times;
  std::shared_ptr<net::HttpReplyStream> stream;
  int64_t left = 0;  // lines
  TimePoint deadline{};
};

// The jobs that the user may see: as ListJobs selects.
controller::LogSearch::NextSources SourcesOf(const Backend& backend, const CallPtr& call) {
  controller::JobFilter filter;
  const std::string team = call->arguments.Text("team");
  const Principal& principal = call->principal;
  if (!team.empty()) filter.teams = {team};
  if (team.empty() && !principal.administrator)
    for (const auto& [name, role] : principal.teams) filter.teams.push_back(name);
  const bool none = (!team.empty() && principal.RoleIn(team) == Role::kNone) ||
                    (filter.teams.empty() && !principal.administrator);
  return [&backend, filter, none](const std::string& cursor) -> Result<controller::LogSources> {
    controller::LogSources sources;
    if (none) return sources;
    TRY_ASSIGN(const controller::JobPage page,
               backend.store->ListPage(filter, cursor, kJobsAtOnce));
    for (const controller::JobSummary& job : page.jobs)
      sources.jobs.push_back({job.id, backend.home.job_dir(job.id)});
    sources.next = page.next;
    return sources;
  };
}

json::object LineToReply(const controller::FoundLine& found, bool times) {
  json::object object{{"job", found.job},
                      {"role", found.key.role},
                      {"index", found.key.index},
                      {"attempt", found.key.attempt},
                      {"offset", found.line.offset}};
  if (times) object["time"] = found.line.time ? json::value(FormatWall(*found.line.time)) : nullptr;
  if (IsUtf8(found.line.text)) {
    object["text"] = found.line.text;
  } else {
    object["base64"] = EncodeBase64(found.line.text);
  }
  return object;
}

void Go(const Backend& backend, const std::shared_ptr<Searching>& searching);

// Lets other requests have their turn.
void GoLater(const Backend& backend, const std::shared_ptr<Searching>& searching) {
  if (!backend.defer([&backend, searching] { Go(backend, searching); })) {
    // Too many wait; dropping the stream tells the peer that the reply is not whole.
    searching->stream->OnDrained({});
  }
}

// One step, then what it found; the next step when the peer has taken it.
void Go(const Backend& backend, const std::shared_ptr<Searching>& searching) {
  std::string out;
  const auto more = searching->search.Step(kStepBytes, [&](const controller::FoundLine& found) {
    out += ToText(LineToReply(found, searching->times)) + "\n";
    return --searching->left > 0 && out.size() < kEnough;
  });
  const bool late = backend.clock->Now() >= searching->deadline || backend.stopping();
  const bool last = !more.ok() || !*more || searching->left <= 0 || late;
  if (!more.ok()) {
    out += ToText(json::object{{"error", more.status().message()}}) + "\n";
  } else if (!*more) {
    out += ToText(json::object{{"end", true}}) + "\n";
  } else if (last) {
    out += ToText(json::object{{"next", searching->search.position()}}) + "\n";
  }
  // Without output the peer has nothing to take.
  const bool idle = out.empty();
  // A drained last piece must not begin another step.
  if (last) searching->stream->OnDrained({});
  if (!idle && !searching->stream->Write(out)) return searching->stream->OnDrained({});
  if (last) return searching->stream->Finish();
  if (idle) GoLater(backend, searching);
}

controller::LogSearchRequest RequestOf(const Arguments& arguments) {
  controller::LogSearchRequest request;
  request.grep = arguments.Text("grep");
  request.ignore_case = arguments.Boolean("ignore_case", false);
  request.selection.role = arguments.Text("role");
  if (arguments.Has("index"))
    request.selection.index = static_cast<int>(arguments.Integer("index", 0));
  if (arguments.Has("attempt"))
    request.selection.attempt = static_cast<int>(arguments.Integer("attempt", 0));
  if (arguments.Has("since")) request.since = WallOf(arguments.Integer("since", 0));
  if (arguments.Has("until")) request.until = WallOf(arguments.Integer("until", 0));
  return request;
}

}  // namespace

void ReadLogTimes(const Backend& backend, const CallPtr& call) {
  const std::string name =
      call->arguments.PathText("task") + "." + call->arguments.PathText("attempt");
  const auto key = ParseLogName(name);
  if (!key)
    return call->answer(
        Problem(NotFound("job " + call->job->id + " has no log " + name.substr(0, 80))));
  const job::JobDir dir(backend.home.job_dir(call->job->id));
  const FileAccessAs owner(dir.root());
  const auto times = rendezvous::ReadLogTimes(dir.logs(), *key, call->arguments.Integer("from", 0));
  if (!times.ok()) return call->answer(Problem(times.status()));
  call->answer(JsonReply(kOk, LogTimesToReply(*times)));
}

void SearchLogs(const Backend& backend, const CallPtr& call) {
  const controller::LogSearchRequest request = RequestOf(call->arguments);
  auto filter = controller::MakeLineFilter(request);
  if (!filter.ok()) return call->answer(QueryProblem(filter.status()));
  const bool times = call->arguments.Boolean("times", false);
  const auto searching = std::make_shared<Searching>(SourcesOf(backend, call), std::move(*filter),
                                                     request.selection, times);
  searching->left = call->arguments.Integer("limit", kDefaultLines);
  searching->deadline = backend.clock->Now() + kTimeLimit;
  if (call->arguments.Has("after")) {
    const Status resumed = searching->search.Resume(call->arguments.Text("after"));
    if (!resumed.ok()) return call->answer(QueryProblem(resumed));
  }
  searching->stream = call->exchange->Stream(
      kOk, {{"Content-Type", "application/jsonl"}, {"X-Content-Type-Options", "nosniff"}});
  if (searching->stream == nullptr) return;
  searching->stream->OnDrained([&backend, searching] { GoLater(backend, searching); });
  Go(backend, searching);
}

}  // namespace shoal::api
