// Other people's clients against the server, where this machine has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "net/http/test_http_server.h"

namespace shoal::net {
namespace {

using testing::HasSubstr;

// Standard output of a shell command.
std::string OutputOf(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "it did not start";
  std::string text;
  char block[4096];
  for (size_t got = 0; (got = ::fread(block, 1, sizeof block, pipe)) > 0;) text.append(block, got);
  const int status = ::pclose(pipe);
  return status == 0 ? text : text + "(status " + std::to_string(status) + ")";
}

TEST(HttpServerClients, Curl) {
  if (::access("/usr/bin/curl", X_OK) != 0) GTEST_SKIP() << "no curl";
  auto directory = TempDir::Create();
  TestHttpServer plain;
  HttpServerOptions options;
  options.tls.self_signed_directory = directory->path();
  TestHttpServer encrypted(std::move(options));
  const std::string certificate = (directory->path() / "server.crt").string();
  for (const TestHttpServer* test : {&plain, &encrypted}) {
    const std::string curl = "curl -sS --noproxy '*' -m 20 --cacert " + certificate + " ";
    const std::string url = test->server->url();
    EXPECT_EQ(OutputOf(curl + url + "/x"), "GET /x ");
    EXPECT_EQ(OutputOf(curl + url + "/x " + url + "/y"), "GET /x GET /y ");
    EXPECT_EQ(OutputOf(curl + "--http1.0 " + url + "/x"), "GET /x ");
    EXPECT_EQ(OutputOf(curl + "--http2 " + url + "/x"), "GET /x ");
    EXPECT_EQ(OutputOf(curl + "-d hello " + url + "/x"), "POST /x hello");
    EXPECT_EQ(OutputOf("printf hello | " + curl + "-T - " + url + "/x"), "PUT /x hello");
    EXPECT_THAT(OutputOf(curl + "-I " + url + "/x"), HasSubstr("Content-Length: 8\r\n"));
    EXPECT_THAT(OutputOf("head -c 500000 /dev/zero | tr '\\0' b | " + curl +
                         "-H 'Expect: 100-continue' --data-binary @- " + url + "/x | wc -c"),
                HasSubstr("500008\n"));
    EXPECT_EQ(OutputOf(curl + "-o /dev/null -w '%{http_code}' --path-as-is " + url + "/a/../b"),
              "400");
    // Two connections' worth of requests over one.
    EXPECT_EQ(OutputOf(curl + "-o /dev/null -o /dev/null -w '%{num_connects} ' " + url + "/x " +
                       url + "/y"),
              "1 0 ");
  }
}

TEST(HttpServerClients, PythonHttpClient) {
  if (::access("/usr/bin/python3", X_OK) != 0) GTEST_SKIP() << "no python3";
  TestHttpServer test;
  const std::string program =
      "import http.client\n"
      "c = http.client.HTTPConnection(\"127.0.0.1\", " +
      std::to_string(test.server->port()) +
      ")\n"
      "for i in range(3):\n"
      "    c.request(\"POST\", \"/x\", body=iter([b\"a\", b\"b\"]), encode_chunked=True,\n"
      "              headers={\"Transfer-Encoding\": \"chunked\"})\n"
      "    r = c.getresponse()\n"
      "    print(r.status, r.read().decode())\n"
      "c.request(\"HEAD\", \"/x\")\n"
      "r = c.getresponse()\n"
      "print(r.status, r.headers[\"content-length\"], r.read())\n";
  EXPECT_EQ(OutputOf("/usr/bin/python3 -c '" + program + "'"),
            "200 POST /x ab\n200 POST /x ab\n200 POST /x ab\n200 8 b''\n");
  EXPECT_EQ(test.server->stats().accepted, 1u);
}

}  // namespace
}  // namespace shoal::net
