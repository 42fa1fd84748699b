// Answers requests for predictions over HTTP: Open Inference Protocol v2 and the REST interface of
// TensorFlow Serving. Owned by `shoal publish`, which gives it versions to serve.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "net/http/http_server.h"
#include "serving/endpoint/request_metrics.h"
#include "serving/inference/inference.h"
#include "serving/inference/served_model.h"

namespace shoal::serving {

struct ModelServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: the kernel chooses
  net::TlsServerOptions tls = {};
  net::HttpServerLimits http = {};
  InferenceLimits limits = {};
  size_t max_body = 16 << 20;  // bytes of a request
  size_t threads = 2;          // I/O threads
  // Of requests with long bodies and searches in vectors, which would delay others of their I/O
  // thread; more are answered with 503 while `max_waiting` wait.
  size_t workers = 2;
  size_t max_waiting = 256;
  // Token by model; "" is that of all others. Without an entry a model needs none.
  std::map<std::string, std::string> tokens = {};
  const Clock* clock = RealClock::Get();
};

// Thread-safe.
class ModelServer {
 public:
  // Serves `models`, whose names differ. Errors as net::HttpServer::Start.
  static Result<std::unique_ptr<ModelServer>> Start(
      ModelServerOptions options, std::vector<std::shared_ptr<const ServedModel>> models);
  ~ModelServer();

  // The version that requests get from now on. Requests that have begun are answered by the one
  // that they began with, which is freed after the last of them. NotFound if no model of the name
  // is served.
  Status Swap(std::shared_ptr<const ServedModel> model);
  // Null if no model of the name is served.
  std::shared_ptr<const ServedModel> Current(const std::string& name) const;

  std::string url() const;
  uint16_t port() const;
  // Not ready from now on, and ends when the requests under way are answered or `limit` passed.
  void Shutdown(Duration limit);

 private:
  class Service;
  explicit ModelServer(std::shared_ptr<Service> service);

  const std::shared_ptr<Service> service_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace shoal::serving
