#include "api/client/search_logs.h"

#include <algorithm>
#include <memory>
#include <string>

#include "api/people/identity.h"
#include "api/rest/router.h"
#include "base/base64.h"

namespace shoal::api {
namespace {

constexpr int64_t kPage = 100'000;
constexpr std::chrono::milliseconds kSilence{45'000};
// A line of a log and its escapes.
constexpr size_t kLongestObject = size_t{8} << 20;

std::string Target(const controller::LogSearchRequest& request, int64_t limit,
                   const std::string& after) {
  const auto number = [](const std::optional<int>& value) {
    return value ? std::to_string(*value) : "";
  };
  const auto time = [](const std::optional<WallTime>& value) {
    return value ? FormatWall(*value) : "";
  };
  return "/api/v1/logs" + QueryText({{"grep", request.grep},
                                     {"ignore_case", request.ignore_case ? "true" : ""},
                                     {"team", request.team},
                                     {"role", request.selection.role},
                                     {"index", number(request.selection.index)},
                                     {"attempt", number(request.selection.attempt)},
                                     {"since", time(request.since)},
                                     {"until", time(request.until)},
                                     {"times", request.times ? "true" : ""},
                                     {"limit", std::to_string(std::min(limit, kPage))},
                                     {"after", after}});
}

// What the lines of a reply have told.
struct Progress {
  bool stopped = false;  // by the caller
  bool end = false;
  std::string next;
  int64_t left = 0;  // lines
};

Status Take(const std::string& text, const controller::OnFoundLine& on_found, Progress* progress) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  if (object.contains("end")) {
    progress->end = true;
    return Status::Ok();
  }
  if (object.contains("next")) {
    TRY_ASSIGN(progress->next, GetString(object, "next"));
    return Status::Ok();
  }
  if (object.contains("error")) return Unavailable(GetStringOr(object, "error", ""));
  controller::FoundLine found;
  TRY_ASSIGN(const std::string job, GetString(object, "job"));
  std::string line = GetStringOr(object, "text", "");
  if (object.contains("base64")) {
    TRY_ASSIGN(line, DecodeBase64(GetStringOr(object, "base64", "")));
  }
  found.job = job;
  found.key = {GetStringOr(object, "role", ""), static_cast<int>(GetIntOr(object, "index", 0)),
               static_cast<int>(GetIntOr(object, "attempt", 0))};
  found.line.offset = GetIntOr(object, "offset", 0);
  found.line.text = line;
  if (const auto micros = ParseTime(GetStringOr(object, "time", ""))) {
    found.line.time = WallOf(*micros);
  }
  progress->stopped = !on_found(found) || --progress->left <= 0;
  return Status::Ok();
}

// One reply.
Status ReadReply(net::HttpStream* stream, const controller::OnFoundLine& on_found,
                 Progress* progress) {
  std::string rest;
  while (!progress->stopped) {
    TRY_ASSIGN(const std::string bytes, stream->Next(kSilence));
    if (bytes.empty()) break;
    rest += bytes;
    size_t begin = 0;
    for (size_t end = rest.find('\n'); end != std::string::npos && !progress->stopped;
         end = rest.find('\n', begin)) {
      TRY(Take(rest.substr(begin, end - begin), on_found, progress));
      begin = end + 1;
    }
    rest.erase(0, begin);
    if (rest.size() > kLongestObject) return DataLoss("the server sent a line that is too long");
  }
  return Status::Ok();
}

}  // namespace

Status SearchRemoteLogs(const ApiClient& client, const controller::LogSearchRequest& request,
                        const controller::OnFoundLine& on_found) {
  Progress progress;
  progress.left = request.limit;
  std::string after;
  while (!progress.stopped && !progress.end && progress.left > 0) {
    progress.next.clear();
    TRY_ASSIGN(const auto stream, client.OpenEvents(Target(request, progress.left, after)));
    TRY(ReadReply(stream.get(), on_found, &progress));
    if (progress.next.empty() && !progress.end && !progress.stopped)
      return Unavailable("the server ended the search early; try again");
    after = progress.next;
  }
  return Status::Ok();
}

}  // namespace shoal::api
