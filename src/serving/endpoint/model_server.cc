#include "serving/endpoint/model_server.h"

#include <fmt/format.h>

#include <new>
#include <optional>
#include <utility>

#include "base/id.h"
#include "base/utf8.h"
#include "controller/threads/worker_pool.h"
#include "serving/endpoint/inference_route.h"

namespace shoal::serving {
namespace {

using Verb = InferenceVerb;

constexpr int kOk = 200;
constexpr int kForbidden = 403;
constexpr int kTooLarge = 413;
constexpr int kNotImplemented = 405;
constexpr int kInternal = 500;
constexpr int kUnavailable = 503;
constexpr size_t kShortBody = 64 << 10;  // answered by the thread that read it

int StatusOf(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return kForbidden;
    case Code::kNotFound:
      return 404;
    case Code::kUnimplemented:
      return kNotImplemented;
    case Code::kResourceExhausted:
      return kTooLarge;
    case Code::kUnavailable:
      return kUnavailable;
    default:
      return kInternal;
  }
}

net::HttpServerReply JsonReply(int status, std::string body) {
  net::HttpServerReply reply;
  reply.status = status;
  reply.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  reply.body = std::move(body);
  return reply;
}

net::HttpServerReply ErrorReply(const Status& status) {
  net::HttpServerReply reply =
      JsonReply(StatusOf(status), "{\"error\":" + Quoted(status.message()) + "}\n");
  if (status.code() == Code::kUnauthenticated)
    reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (reply.status == kUnavailable) reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

std::string StatusV1(const ServedModel& model) {
  return fmt::format(
      "{{\"model_version_status\":[{{\"version\":\"{}\",\"state\":\"AVAILABLE\",\"status\":"
      "{{\"error_code\":\"OK\",\"error_message\":\"\"}}}}]}}\n",
      model.version());
}

constexpr const char* kServerMetadata =
    "{\"name\":\"shoal\",\"version\":\"2\",\"extensions\":[\"model_repository\"]}\n";

}  // namespace

class ModelServer::Service : public std::enable_shared_from_this<Service> {
 public:
  Service(ModelServerOptions options, std::vector<std::shared_ptr<const ServedModel>> models)
      : options_(std::move(options)),
        pool_(std::make_unique<controller::WorkerPool>(options_.workers)) {
    for (auto& model : models) models_[model->name()] = std::move(model);
  }

  Status Swap(std::shared_ptr<const ServedModel> model) {
    // The old one may be large: it is freed after the lock, by the last request that uses it.
    std::shared_ptr<const ServedModel> old;
    const std::string name = model->name();
    {
      const MutexLock lock(mu_);
      const auto found = models_.find(name);
      if (found == models_.end()) return NotFound("no model '" + name + "' is served");
      old = std::exchange(found->second, std::move(model));
    }
    metrics_.CountSwap(name);
    return Status::Ok();
  }

  std::shared_ptr<const ServedModel> Current(const std::string& name) const {
    const MutexLock lock(mu_);
    const auto found = models_.find(name);
    return found == models_.end() ? nullptr : found->second;
  }

  void Stop() { ready_ = false; }
  void EndWork() { pool_.reset(); }

  net::HttpBodyLimit BodyLimit(const net::HttpServerRequest& head) const {
    const Result<InferenceRoute> route = RouteOf(head);
    if (!route.ok()) return ErrorReply(route.status());
    if (const Status allowed = CheckToken(*route, head); !allowed.ok()) return ErrorReply(allowed);
    return options_.max_body;
  }

  void Handle(const std::shared_ptr<net::HttpExchange>& exchange) {
    const net::HttpServerRequest& request = exchange->request();
    const Result<InferenceRoute> route = RouteOf(request);
    if (!route.ok()) return Reply(exchange, ErrorReply(route.status()));
    if (const Status allowed = CheckToken(*route, request); !allowed.ok())
      return Reply(exchange, ErrorReply(allowed));
    if (!request.origin_allowed)
      return Reply(exchange, ErrorReply(PermissionDenied("pages of other sites are not served")));
    if (route->model.empty()) return Reply(exchange, AnswerForServer(*route, request));
    const auto model = Find(*route);
    if (!model.ok()) return Reply(exchange, ErrorReply(model.status()));
    AnswerForModel(exchange, *route, *model);
  }

 private:
  static void Reply(const std::shared_ptr<net::HttpExchange>& exchange,
                    net::HttpServerReply reply) {
    (void)exchange->Reply(std::move(reply));  // false: the peer has gone
  }

  // Health is asked by probes without a token; metrics by any token.
  Status CheckToken(const InferenceRoute& route, const net::HttpServerRequest& request) const {
    if (options_.tokens.empty() || route.verb == Verb::kLive || route.verb == Verb::kReady)
      return Status::Ok();
    constexpr std::string_view kBearer = "Bearer ";
    std::string_view given = request.Header("authorization");
    given = given.starts_with(kBearer) ? given.substr(kBearer.size()) : "";
    const auto own = options_.tokens.find(route.model);
    const auto all = options_.tokens.find("");
    if (route.model.empty()) {
      for (const auto& [name, token] : options_.tokens) {
        if (EqualInConstantTime(Sha256Hex(given), Sha256Hex(token))) return Status::Ok();
      }
    } else {
      const auto token = own != options_.tokens.end() ? own : all;
      if (token == options_.tokens.end()) return Status::Ok();
      if (EqualInConstantTime(Sha256Hex(given), Sha256Hex(token->second))) return Status::Ok();
    }
    return Unauthenticated(given.empty()
                               ? "a token is needed: send it as Authorization: Bearer TOKEN"
                               : "the token is not the one of this model");
  }

  net::HttpServerReply AnswerForServer(const InferenceRoute& route,
                                       const net::HttpServerRequest& request) const {
    switch (route.verb) {
      case Verb::kLive:
        return JsonReply(kOk, "{\"live\":true}\n");
      case Verb::kReady:
        return JsonReply(ready_ ? kOk : kUnavailable,
                         ready_ ? "{\"ready\":true}\n" : "{\"ready\":false}\n");
      case Verb::kMetrics: {
        net::HttpServerReply reply = JsonReply(kOk, metrics_.Text());
        reply.headers[0].second = "text/plain; version=0.0.4";
        return reply;
      }
      case Verb::kIndex:
        return JsonReply(kOk, Index());
      default:
        (void)request;
        return JsonReply(kOk, kServerMetadata);
    }
  }

  std::string Index() const {
    std::string text = "[";
    const MutexLock lock(mu_);
    for (const auto& [name, model] : models_) {
      text +=
          fmt::format("{}{{\"name\":{},\"version\":\"{}\",\"state\":\"READY\",\"reason\":\"\"}}",
                      text.size() == 1 ? "" : ",", Quoted(name), model->version());
    }
    return text + "]\n";
  }

  Result<std::shared_ptr<const ServedModel>> Find(const InferenceRoute& route) const {
    std::shared_ptr<const ServedModel> model = Current(route.model);
    constexpr size_t kShown = 100;
    if (model == nullptr) {
      return NotFound(
          EscapedUtf8(fmt::format("no model '{}' is served; POST /v2/repository/index "
                                  "lists those that are",
                                  route.model.substr(0, kShown))));
    }
    if (route.version != 0 && route.version != model->version()) {
      return NotFound(fmt::format("version {} of {} is not served; version {} is", route.version,
                                  model->name(), model->version()));
    }
    return model;
  }

  void AnswerForModel(const std::shared_ptr<net::HttpExchange>& exchange,
                      const InferenceRoute& route,
                      const std::shared_ptr<const ServedModel>& model) {
    switch (route.verb) {
      case Verb::kModelReady:
        return Reply(exchange, JsonReply(ready_ ? kOk : kUnavailable,
                                         fmt::format("{{\"name\":{},\"ready\":{}}}\n",
                                                     Quoted(model->name()), ready_.load())));
      case Verb::kModelMetadata:
        return Reply(exchange, JsonReply(kOk, MetadataV2(*model)));
      case Verb::kModelStatus:
        return Reply(exchange, JsonReply(kOk, StatusV1(*model)));
      default:
        break;
    }
    const TimePoint begun = options_.clock->Now();
    if (model->vectors() == nullptr && exchange->request().body.size() <= kShortBody)
      return Infer(exchange, route.verb, model, begun);
    if (waiting_.fetch_add(1) >= options_.max_waiting) {
      --waiting_;
      const Status full = Unavailable("too many requests wait; ask again later");
      metrics_.Count(model->name(), model->version(), StatusOf(full), 0, {});
      return Reply(exchange, ErrorReply(full));
    }
    pool_->Execute([self = shared_from_this(), exchange, verb = route.verb, model, begun] {
      --self->waiting_;
      if (!exchange->closed()) self->Infer(exchange, verb, model, begun);
    });
  }

  void Infer(const std::shared_ptr<net::HttpExchange>& exchange, Verb verb,
             const std::shared_ptr<const ServedModel>& model, TimePoint begun) {
    Result<InferenceReply> reply = InferNow(verb, *model, exchange->request().body);
    const int status = reply.ok() ? kOk : StatusOf(reply.status());
    metrics_.Count(model->name(), model->version(), status, reply.ok() ? reply->instances : 0,
                   options_.clock->Now() - begun);
    Reply(exchange,
          reply.ok() ? JsonReply(kOk, std::move(reply->body)) : ErrorReply(reply.status()));
  }

  Result<InferenceReply> InferNow(Verb verb, const ServedModel& model, std::string_view body) const
      try {
    if (verb == Verb::kInferV2) return InferV2(model, body, options_.limits);
    if (verb == Verb::kVectorsV1) return VectorsV1(model, body, options_.limits);
    return PredictV1(model, body, options_.limits);
  } catch (const std::bad_alloc&) {
    return Unavailable("there is not enough memory for the answer");
  }

  const ModelServerOptions options_;
  std::atomic<bool> ready_{true};
  std::atomic<size_t> waiting_{0};
  RequestMetrics metrics_;
  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<const ServedModel>> models_ GUARDED_BY(mu_);
  std::unique_ptr<controller::WorkerPool> pool_;
};

Result<std::unique_ptr<ModelServer>> ModelServer::Start(
    ModelServerOptions options, std::vector<std::shared_ptr<const ServedModel>> models) {
  net::HttpServerOptions http;
  http.address = options.address;
  http.port = options.port;
  http.tls = options.tls;
  http.limits = options.http;
  http.threads = options.threads;
  http.clock = options.clock;
  auto service = std::make_shared<Service>(std::move(options), std::move(models));
  http.handler = [service](const std::shared_ptr<net::HttpExchange>& exchange) {
    service->Handle(exchange);
  };
  http.max_body = [service](const net::HttpServerRequest& head) {
    return service->BodyLimit(head);
  };
  std::unique_ptr<ModelServer> made(new ModelServer(service));
  TRY_ASSIGN(made->http_, net::HttpServer::Start(std::move(http)));
  return made;
}

ModelServer::ModelServer(std::shared_ptr<Service> service) : service_(std::move(service)) {}

ModelServer::~ModelServer() {
  http_.reset();
  service_->EndWork();
}

Status ModelServer::Swap(std::shared_ptr<const ServedModel> model) {
  return service_->Swap(std::move(model));
}

std::shared_ptr<const ServedModel> ModelServer::Current(const std::string& name) const {
  return service_->Current(name);
}

std::string ModelServer::url() const { return http_->url(); }
uint16_t ModelServer::port() const { return http_->port(); }

void ModelServer::Shutdown(Duration limit) {
  service_->Stop();
  http_->Shutdown(limit);
}

}  // namespace shoal::serving
