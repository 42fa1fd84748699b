// Answers HTTP requests: gives the page's files, or finds the route, authenticates, checks rights
// and arguments, calls the handler on a worker thread and writes the audit log.
//
//     RestServer rest(backend, {});
//     auto http = net::HttpServer::Start({.handler = rest.handler(), .max_body = rest.max_body()});
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "api/page/page_files.h"
#include "api/people/throttle.h"
#include "api/server/call.h"
#include "controller/threads/worker_pool.h"
#include "net/event_loop.h"
#include "net/http/http_server.h"

namespace shoal::api {

struct RestServerOptions {
  size_t threads = 8;
  size_t max_queued = 2000;  // requests that wait for a thread; more get 503
  // Calls a function after a delay, on any thread: holds back answers to failed authentication.
  std::function<void(Duration, std::function<void()>)> later;
};

// Thread-safe. Must outlive the HttpServer that it answers for.
class RestServer {
 public:
  // `backend.defer` is set by this class.
  RestServer(Backend backend, RestServerOptions options);

  std::function<void(std::shared_ptr<net::HttpExchange>)> handler();
  std::function<net::HttpBodyLimit(const net::HttpServerRequest&)> max_body();
  const Backend& backend() const { return backend_; }

 private:
  // False, without running the task, if too many wait.
  bool Defer(std::function<void()> task);
  void OnRequest(const std::shared_ptr<net::HttpExchange>& exchange);
  void Answer(const std::shared_ptr<net::HttpExchange>& exchange, const Match& match);
  void Refuse(const std::shared_ptr<net::HttpExchange>& exchange, const Status& why);
  // Whether the user may do this; else the reply. Sets `team` and `job` of the call.
  std::optional<net::HttpServerReply> CheckRights(Call* call);
  std::optional<net::HttpServerReply> CheckTeam(const Call& call) const;
  std::optional<net::HttpServerReply> FindJob(Call* call);
  void Finish(const CallPtr& call, net::HttpServerReply reply);
  Status WriteAudit(const Call& call, int status);

  Backend backend_;
  const RestServerOptions options_;
  const PageFiles page_;
  Throttle throttle_;
  std::atomic<size_t> waiting_{0};  // tasks that wait or run
  controller::WorkerPool pool_;     // last: its threads use the others
};

// The token of a request: of the header Authorization, or, for WebSockets of pages, which cannot
// set headers, of a protocol "shoal.token.TOKEN". Empty without one.
std::string TokenOf(const net::HttpServerRequest& request);

}  // namespace shoal::api
