#include "net/http/http_server.h"

#include <gtest/gtest.h>

#include "net/http_client.h"

namespace shoal::net {
namespace {

TEST(HttpServer, AnswersOverKeepAlive) {
  HttpServerOptions options;
  options.handler = [](const std::shared_ptr<HttpExchange>& exchange) {
    HttpServerReply reply;
    reply.body = exchange->request().method + " " + exchange->request().target + " " +
                 exchange->request().body;
    exchange->Reply(std::move(reply));
  };
  auto server = HttpServer::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status().message();
  auto client = HttpClient::Make((*server)->url(), {});
  ASSERT_TRUE(client.ok());
  HttpRequest request;
  request.method = "POST";
  request.target = "/a/b?c=d";
  request.body = "hello";
  const auto reply = (*client)->Call(request, std::chrono::seconds(5));
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "POST /a/b?c=d hello");
}

}  // namespace
}  // namespace shoal::net
