// The table of routes and what is derived from it: routing, checks, the OpenAPI document, the table
// of rights, errors; and server-sent events.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <variant>

#include "api/rest/job_json.h"
#include "api/rest/openapi.h"
#include "api/rest/problem.h"
#include "api/rest/router.h"
#include "api/rest/sse.h"
#include "api/server/handlers.h"
#include "net/http/sse_reader.h"

namespace shoal::api {
namespace {

net::HttpServerRequest Request(std::string method, std::vector<std::string> path) {
  net::HttpServerRequest request;
  request.method = std::move(method);
  request.path = std::move(path);
  return request;
}

int StatusOf(const std::variant<Match, net::HttpServerReply>& found) {
  const auto* reply = std::get_if<net::HttpServerReply>(&found);
  return reply == nullptr ? 0 : reply->status;
}

TEST(RouterTest, FindsRoutesWithTheirParameters) {
  const auto found =
      FindMatch(Request("GET", {"api", "v1", "jobs", "a-1", "logs", "worker-0", "2"}));
  ASSERT_EQ(StatusOf(found), 0);
  const Match& match = std::get<Match>(found);
  EXPECT_EQ(match.route->operation, Operation::kReadLog);
  EXPECT_EQ(ToText(match.path), R"({"id":"a-1","task":"worker-0","attempt":"2"})");
}

TEST(RouterTest, SaysWhatIsWrong) {
  EXPECT_EQ(StatusOf(FindMatch(Request("GET", {}))), 404);
  EXPECT_EQ(StatusOf(FindMatch(Request("GET", {"api", "v1", "jobs", ""}))), 404);
  EXPECT_EQ(StatusOf(FindMatch(Request("GET", {"api", "v1", "jobs", std::string(200, 'a')}))), 404);
  const auto method = FindMatch(Request("PATCH", {"api", "v1", "jobs"}));
  ASSERT_EQ(StatusOf(method), 405);
  const auto& headers = std::get<net::HttpServerReply>(method).headers;
  EXPECT_EQ(headers.back(), (std::pair<std::string, std::string>("Allow", "POST, GET")));
  // Not that of /files/{sha256}.
  const auto missing = FindMatch(Request("GET", {"api", "v1", "files", "missing"}));
  ASSERT_EQ(StatusOf(missing), 405);
  EXPECT_EQ(std::get<net::HttpServerReply>(missing).headers.back().second, "POST");
  const auto version = FindMatch(Request("GET", {"api", "v2", "jobs"}));
  EXPECT_NE(std::get<net::HttpServerReply>(version).body.find("no version"), std::string::npos);
}

TEST(RouterTest, ChecksQueriesAndBodies) {
  net::HttpServerRequest request = Request("POST", {"api", "v1", "jobs", "a", "scale"});
  const Match match = std::get<Match>(FindMatch(request));
  request.headers = {{"content-type", "application/json"}};
  const auto status = [&](const std::string& body) {
    request.body = body;
    const auto checked = CheckRequest(match, request);
    const auto* reply = std::get_if<net::HttpServerReply>(&checked);
    return reply == nullptr ? 200 : reply->status;
  };
  EXPECT_EQ(status(R"({"role": "worker", "replicas": 3})"), 200);
  EXPECT_EQ(status(R"({"role": "worker", "replicas": "3"})"), 422);
  EXPECT_EQ(status(R"({"role": "worker", "replicas": -1})"), 422);
  EXPECT_EQ(status(R"({"role": "worker"})"), 422);
  EXPECT_EQ(status(R"({"role": "worker", "replicas": 3, "more": 1})"), 422);
  EXPECT_EQ(status(""), 422);
  request.headers = {{"content-type", "text/plain"}};
  EXPECT_EQ(status(R"({"role": "worker", "replicas": 3})"), 415);
  request = Request("GET", {"api", "v1", "jobs"});
  const Match list = std::get<Match>(FindMatch(request));
  for (const auto& [name, value, good] : {std::tuple{"limit", "5", true},
                                          {"limit", "0", false},
                                          {"limit", "five", false},
                                          {"since", "2026-11-21T05:04:21Z", true},
                                          {"since", "yesterday", false},
                                          {"x", "1", false}}) {
    request.query = {{name, value}};
    EXPECT_EQ(std::holds_alternative<Arguments>(CheckRequest(list, request)), good)
        << name << value;
  }
}

TEST(RouterTest, ReadsTimes) {
  EXPECT_EQ(ParseTime("1970-01-01T00:00:01Z"), 1'000'000);
  EXPECT_EQ(ParseTime("1970-01-01T00:00:01.25Z"), 1'250'000);
  for (const char* text : {"", "1970-01-01", "1970-02-30T00:00:01Z", "1970-01-01T25:00:01Z",
                           "1970-01-01T00:00:01", "1970-01-01T00:00:01.Z"})
    EXPECT_FALSE(ParseTime(text).has_value()) << text;
}

TEST(RoutesTest, EachOperationHasOneRouteAndAHandler) {
  std::set<Operation> seen;
  std::set<std::string_view> names;
  for (const Route& route : Routes()) {
    EXPECT_TRUE(seen.insert(route.operation).second) << route.name;
    EXPECT_TRUE(names.insert(route.name).second) << route.name;
    EXPECT_NE(HandlerOf(route.operation), nullptr) << route.name;
    EXPECT_EQ(route.body == Body::kNone, route.max_body == 0) << route.name;
    EXPECT_EQ(FindRoute(route.operation), &route);
    const bool changes =
        route.method != Method::kGet && route.operation != Operation::kPlanJob &&
        route.operation != Operation::kTryJob && route.operation != Operation::kFindMissingFiles &&
        route.operation != Operation::kPutFile && route.operation != Operation::kFollowJob &&
        route.operation != Operation::kCompleteSql && route.operation != Operation::kInspectSql &&
        route.access != Access::kOpen;  // sign-ins: once there is a user
    EXPECT_EQ(route.audited == Audited::kChange, changes) << route.name;
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(Operation::kListAudit) + 1);
}

TEST(OpenApiTest, EveryReferenceIsDefined) {
  const json::object document = OpenApiDocument("1");
  const json::object& schemas = document.at("components").as_object().at("schemas").as_object();
  const std::string text = ToText(document);
  constexpr std::string_view kRef = "#/components/schemas/";
  size_t found = 0;
  for (size_t at = text.find(kRef); at != std::string::npos; at = text.find(kRef, at + 1)) {
    const size_t begin = at + kRef.size();
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    EXPECT_TRUE(schemas.contains(name)) << name;
    ++found;
  }
  EXPECT_GT(found, 20U);
}

// docs/rest.md has the table between two marks.
TEST(OpenApiTest, TheDocumentHasTheTableOfRights) {
  const std::string path = SHOAL_SOURCE_DIR "/docs/rest.md";
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  const std::string text = read.str();
  const std::string begin = "<!-- rights: generated -->\n";
  const std::string end = "<!-- end of rights -->";
  const size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string whole =
      text.substr(0, from + begin.size()) + "\n" + RightsTable() + "\n" + text.substr(to);
  if (std::getenv("SHOAL_REGENERATE") != nullptr) std::ofstream(path) << whole;
  EXPECT_EQ(whole, text) << "SHOAL_REGENERATE=1 api_test rewrites it";
}

TEST(ProblemTest, StatusesAndCodesFitTogether) {
  for (const Code code : {Code::kInvalidArgument, Code::kNotFound, Code::kPermissionDenied,
                          Code::kUnauthenticated, Code::kFailedPrecondition, Code::kAborted,
                          Code::kUnavailable, Code::kUnimplemented, Code::kResourceExhausted}) {
    const net::HttpServerReply reply = Problem(Status(code, "what: why"));
    const Status back = StatusOfReply(reply.status, reply.body, "http://server");
    EXPECT_EQ(back.code(), code);
    EXPECT_EQ(back.message(), "what: why");
  }
  EXPECT_EQ(StatusOfReply(502, "<html>", "http://server").message(),
            "the server http://server answered with status 502");
}

TEST(ProblemTest, TakesErrorsOfJobFilesApart) {
  const auto errors = ParseJobFileErrors(
      "job.yaml:14:15: roles.worker.replicas: got -1, expected an integer\nno place", "job.yaml");
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].field, "roles.worker.replicas");
  EXPECT_EQ(errors[0].line, 14);
  EXPECT_EQ(errors[0].column, 15);
  EXPECT_EQ(errors[0].message, "got -1, expected an integer");
  EXPECT_EQ(errors[1].message, "no place");
}

TEST(SseTest, IsReadAsItIsWritten) {
  const std::string text = SseText("log", "7;worker-0.0:12", json::object{{"text", "a\nb"}}) +
                           std::string(kSseComment) + SseText("end", "", json::object{});
  net::SseReader reader;
  std::vector<net::SseEvent> events;
  ASSERT_TRUE(reader.Feed(text, &events).ok());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].type, "log");
  EXPECT_EQ(events[0].id, "7;worker-0.0:12");
  EXPECT_EQ(events[0].data, R"({"text":"a\nb"})");
  EXPECT_EQ(events[1].type, "end");
}

TEST(JobJsonTest, RoundTrips) {
  controller::JobRecord job;
  job.id = "a-123456";
  job.name = "a";
  job.state = job::JobState::kFailed;
  job.reason = "why";
  job.team = "red";
  job.user = "ada";
  job.submitted = WallTime(std::chrono::seconds(5));
  job.ended = WallTime(std::chrono::microseconds(7'000'001));
  job.last_seq = 9;
  job.result = {{"loss", 0.5}};
  const auto back = ParseJobReply(JobToReply(job, true));
  ASSERT_TRUE(back.ok()) << back.status().ToString();
  EXPECT_EQ(ToText(JobToReply(*back, true)), ToText(JobToReply(job, true)));
  EXPECT_EQ(back->ended, job.ended);
  EXPECT_FALSE(ParseJobReply(json::object{{"id", "a"}, {"state", "sleeping"}}).ok());
  const auto key = ParseLogName("my-role-3.12");
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(LogName(*key), "my-role-3.12");
  for (const char* text : {"", "worker", "worker-0", "worker-0.x", "../a-0.0", "a/b-0.0"})
    EXPECT_FALSE(ParseLogName(text).has_value()) << text;
}

}  // namespace
}  // namespace shoal::api
