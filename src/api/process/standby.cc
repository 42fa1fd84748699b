#include "api/process/standby.h"

#include <utility>

#include "api/rest/problem.h"

namespace shoal::api {
namespace {

using net::HttpServerReply;

constexpr int kOk = 200;
constexpr int kUnavailable = 503;

HttpServerReply Text(int status, const std::string& text) {
  return {status,
          {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}},
          text + "\n"};
}

std::string StandbyText(const std::string& leader) {
  return "standby; " + (leader.empty() ? "no server leads yet" : leader + " leads");
}

HttpServerReply Answer(const net::HttpServerRequest& request, const std::string& leader) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const std::string path = request.path.size() == 1 ? request.path.front() : "";
  if (reads && path == "healthz") return Text(kOk, "ok");
  if (reads && path == "readyz") {
    const bool wanted = request.Query("standby") == "true";
    HttpServerReply reply = Text(wanted ? kOk : kUnavailable, StandbyText(leader));
    if (!leader.empty()) reply.headers.emplace_back(kLeaderHeader, leader);
    return reply;
  }
  return NotLeadingReply(leader);
}

}  // namespace

std::function<void(std::shared_ptr<net::HttpExchange>)> StandbyHandler(
    std::function<std::string()> leader) {
  return [leader = std::move(leader)](const std::shared_ptr<net::HttpExchange>& exchange) {
    exchange->Reply(Answer(exchange->request(), leader()));
  };
}

}  // namespace shoal::api
