// A web server of objects for tests: ranges, ETags, preconditions, redirects, failures on request.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "data/objects/object_context.h"
#include "net/http/http_server.h"

namespace shoal::data {

class TestObjectServer {
 public:
  struct Stored {
    std::string bytes;
    std::string tag = "\"1\"";
  };
  using Handler = std::function<net::HttpServerReply(const net::HttpServerRequest&)>;

  TestObjectServer() {
    net::HttpServerOptions options;
    options.max_body = [](const net::HttpServerRequest&) {
      return net::HttpBodyLimit(size_t{64} << 20);
    };
    options.handler = [this](const std::shared_ptr<net::HttpExchange>& exchange) {
      exchange->Reply(Answer(exchange->request()));
    };
    auto made = net::HttpServer::Start(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().message();
    server_ = std::move(*made);
  }
  ~TestObjectServer() { server_.reset(); }

  std::string host() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  std::string url(const std::string& path) const { return "http://" + host() + path; }

  // Of the next requests, these are answered so, one each.
  void Fail(std::vector<net::HttpServerReply> replies) {
    const std::lock_guard lock(mu_);
    for (auto& reply : replies) failures_.push_back(std::move(reply));
  }
  void Put(const std::string& path, std::string bytes, std::string tag = "\"1\"") {
    const std::lock_guard lock(mu_);
    objects_[path] = {std::move(bytes), std::move(tag)};
  }
  // Answers everything else than what failures do.
  void Use(Handler handler) {
    const std::lock_guard lock(mu_);
    handler_ = std::move(handler);
  }
  std::vector<net::HttpServerRequest> requests() const {
    const std::lock_guard lock(mu_);
    return requests_;
  }

  bool ranges = true;

 private:
  net::HttpServerReply Answer(const net::HttpServerRequest& request) {
    const std::lock_guard lock(mu_);
    requests_.push_back(request);
    if (!failures_.empty()) {
      auto reply = std::move(failures_.front());
      failures_.erase(failures_.begin());
      return reply;
    }
    return handler_ ? handler_(request) : Get(request);
  }

  net::HttpServerReply Get(const net::HttpServerRequest& request) const {
    net::HttpServerReply reply;
    const auto found = objects_.find(request.target.substr(0, request.target.find('?')));
    if (found == objects_.end()) {
      reply.status = 404;
      return reply;
    }
    const Stored& stored = found->second;
    reply.headers = {{"ETag", stored.tag}};
    const std::string match(request.Header("if-match"));
    if (!match.empty() && match != stored.tag) {
      reply.status = 412;
      return reply;
    }
    const std::string range(request.Header("range"));
    unsigned long long first = 0;
    unsigned long long last = 0;
    if (!ranges || std::sscanf(range.c_str(), "bytes=%llu-%llu", &first, &last) != 2) {
      reply.body = stored.bytes;
      return reply;
    }
    const std::string size = std::to_string(stored.bytes.size());
    if (first >= stored.bytes.size()) {
      reply.status = 416;
      reply.headers.emplace_back("Content-Range", "bytes */" + size);
      return reply;
    }
    reply.status = 206;
    reply.body = stored.bytes.substr(first, last - first + 1);
    reply.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                    std::to_string(first + reply.body.size() - 1) +
                                                    "/" + size);
    return reply;
  }

  mutable std::mutex mu_;
  std::map<std::string, Stored> objects_;
  std::vector<net::HttpServerReply> failures_;
  std::vector<net::HttpServerRequest> requests_;
  Handler handler_;
  std::unique_ptr<net::HttpServer> server_;
};

// A context that waits for nothing and knows these variables alone.
struct TestContext {
  std::map<std::string, std::string> env;
  std::vector<std::chrono::milliseconds> waits;

  ObjectContext Make() {
    ObjectContext context;
    context.env = [this](const char* name) { return env[name]; };
    context.sleep = [this](std::chrono::milliseconds time) { waits.push_back(time); };
    context.seed = 7;
    return context;
  }
};

}  // namespace shoal::data
