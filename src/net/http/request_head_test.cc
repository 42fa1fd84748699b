#include "net/http/request_head.h"

#include <gtest/gtest.h>

namespace shoal::net {
namespace {

struct Outcome {
  int status = 0;  // 0: it is good, -1: the head has not ended
  HttpServerRequest request;
  RequestFraming framing;
  std::string detail;
};

Outcome Read(const std::string& bytes, const RequestHeadLimits& limits = {}) {
  Outcome outcome;
  std::optional<HttpRefusal> refusal;
  HeadScanner scanner;
  size_t length = 0;
  // Byte by byte, which must not make a difference.
  for (size_t i = 1; i <= bytes.size() && length == 0 && !refusal; ++i)
    length = scanner.Scan(std::string_view(bytes).substr(0, i), limits, &refusal);
  HeadScanner at_once;
  std::optional<HttpRefusal> other;
  const size_t same = at_once.Scan(bytes, limits, &other);
  EXPECT_EQ(length, same);
  EXPECT_EQ(refusal.has_value(), other.has_value());
  if (!refusal && length == 0) {
    outcome.status = -1;
    return outcome;
  }
  if (!refusal)
    refusal = ParseRequestHead(std::string_view(bytes).substr(0, length), limits, &outcome.request,
                               &outcome.framing);
  if (refusal) {
    outcome.status = refusal->status;
    outcome.detail = refusal->detail;
  }
  return outcome;
}

std::string Get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

std::string With(const std::string& headers) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}

TEST(RequestHead, ReadsARequest) {
  const Outcome got = Read(
      "POST /api/v1/jobs/caf%C3%A9?after=a%2Fb&limit=5&x HTTP/1.1\r\nHost: example:7117\r\n"
      "X-Two:  with blanks \t\r\nContent-Length: 12\r\nExpect: 100-Continue\r\n\r\n");
  ASSERT_EQ(got.status, 0) << got.detail;
  EXPECT_EQ(got.request.method, "POST");
  EXPECT_EQ(got.request.path, (std::vector<std::string>{"api", "v1", "jobs", "café"}));
  EXPECT_EQ(got.request.Query("after"), "a/b");
  EXPECT_EQ(got.request.Query("limit"), "5");
  EXPECT_EQ(got.request.Query("x"), "");
  EXPECT_FALSE(got.request.Query("y").has_value());
  EXPECT_EQ(got.request.Header("x-two"), "with blanks");
  EXPECT_EQ(got.request.host, "example:7117");
  EXPECT_EQ(got.framing.content_length, 12u);
  EXPECT_TRUE(got.framing.expect_continue);
  EXPECT_TRUE(got.framing.keep_alive);
}

TEST(RequestHead, ReadsTargets) {
  EXPECT_TRUE(Read(Get("/")).request.path.empty());
  EXPECT_EQ(Read(Get("/a//b/")).request.path, (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(Read(Get("/a;b=c/...")).request.path, (std::vector<std::string>{"a;b=c", "..."}));
  EXPECT_EQ(Read(Get("/a+b?c+d=e%2Bf")).request.path, (std::vector<std::string>{"a+b"}));
  EXPECT_EQ(Read(Get("/?c+d=e%2Bf")).request.Query("c d"), "e+f");
  const Outcome absolute = Read(Get("HTTP://other:81/p?q=1"));
  ASSERT_EQ(absolute.status, 0) << absolute.detail;
  EXPECT_EQ(absolute.request.host, "other:81");
  EXPECT_EQ(absolute.request.target, "/p?q=1");
  EXPECT_EQ(Read(Get("http://other")).request.target, "/");
  EXPECT_EQ(Read("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").status, 0);
  EXPECT_EQ(Read("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n").status, 0);
}

struct Case {
  const char* name;
  std::string bytes;
  int status;
};

const std::string kNul("\0", 1);

TEST(RequestHead, RefusesRequestLines) {
  const Case cases[] = {
      {"two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a blank at the end", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
      {"a blank at the beginning", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"HTTP/0.9", "GET /\r\n\r\n", 400},
      {"no version", "GET / \r\nHost: a\r\n\r\n", 400},
      {"lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", 400},
      {"a longer version", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400},
      {"another version", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"a method that is none", "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a long method", std::string(40, 'A') + " / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"two empty lines before", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"a bare LF", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
      {"a bare CR", "GET / HTTP/1.1\rHost: a\r\n\r\n", 400},
      {"CR CR LF", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400},
      {"TLS on a plain port", std::string("\x16\x03\x01\x02", 4), 400},
      {"CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 405},
      {"a star", Get("*"), 400},
      {"no slash", Get("index.html"), 400},
      {"another scheme", Get("ftp://a/"), 400},
      {"an authority that is none", Get("http://a b/"), 400},
      {"user information", Get("http://me@a/"), 400},
      {"a fragment", Get("/a#b"), 400},
      {"raw UTF-8", Get("/caf\xc3\xa9"), 400},
      {"a raw delete", Get("/a\x7f"), 400},
  };
  for (const Case& one : cases) EXPECT_EQ(Read(one.bytes).status, one.status) << one.name;
}

TEST(RequestHead, RefusesTargets) {
  for (const char* target :
       {"/a/../b", "/..",   "/%2e%2e/b", "/.%2E",   "/a/./b",  "/%2e",   "/a%2Fb",
        "/a%2fb",  "/a%00", "/a%",       "/a%4",    "/a%zz",   "/%C3",   "/%c0%af",
        "/%0a",    "/%7f",  "/?a=%",     "/?%zz=1", "/?a=%00", "/?a=%C3"}) {
    EXPECT_EQ(Read(Get(target)).status, 400) << target;
  }
}

TEST(RequestHead, RefusesAmbiguousFraming) {
  const Case cases[] = {
      {"CL and TE", With("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"TE and CL", With("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 400},
      {"two lengths", With("Content-Length: 3\r\nContent-Length: 4\r\n"), 400},
      {"the same length twice", With("Content-Length: 3\r\nContent-Length: 3\r\n"), 400},
      {"a list of lengths", With("Content-Length: 3, 3\r\n"), 400},
      {"a sign", With("Content-Length: +3\r\n"), 400},
      {"a negative", With("Content-Length: -3\r\n"), 400},
      {"hexadecimal", With("Content-Length: 0x3\r\n"), 400},
      {"a blank within", With("Content-Length: 1 2\r\n"), 400},
      {"empty", With("Content-Length:\r\n"), 400},
      {"over 64 bits", With("Content-Length: 18446744073709551617\r\n"), 413},
      {"over 63 bits", With("Content-Length: 9223372036854775808\r\n"), 413},
      {"two codings", With("Transfer-Encoding: gzip, chunked\r\n"), 501},
      {"chunked twice", With("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"chunked, chunked", With("Transfer-Encoding: chunked, chunked\r\n"), 501},
      {"identity", With("Transfer-Encoding: identity\r\n"), 501},
      {"a near miss", With("Transfer-Encoding: xchunked\r\n"), 501},
      {"quoted", With("Transfer-Encoding: \"chunked\"\r\n"), 501},
      {"a vertical tab",
       With("Transfer-Encoding: \x0b"
            "chunked\r\n"),
       400},
      {"a blank before the colon", With("Transfer-Encoding : chunked\r\n"), 400},
      {"a tab before the colon", With("Content-Length\t: 3\r\n"), 400},
      {"a folded header", With("Transfer-Encoding:\r\n chunked\r\n"), 400},
      {"a folded first line", "POST / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {"HTTP/1.0 chunked", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"another expectation", With("Content-Length: 3\r\nExpect: cookies\r\n"), 417},
  };
  for (const Case& one : cases) EXPECT_EQ(Read(one.bytes).status, one.status) << one.name;
  EXPECT_TRUE(Read(With("Transfer-Encoding: CHUNKED\r\n")).framing.chunked);
  EXPECT_EQ(Read(With("Content-Length: 0003\r\n")).framing.content_length, 3u);
}

TEST(RequestHead, RefusesHeaders) {
  const Case cases[] = {
      {"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", With("Host: b\r\n"), 400},
      {"an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
      {"a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"a Host with a list", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
      {"a Host with a port that is none", "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n", 400},
      {"no colon", With("Nothing\r\n"), 400},
      {"no name", With(": nothing\r\n"), 400},
      {"a name that is none", With("a b: c\r\n"), 400},
      {"a name with UTF-8", With("caf\xc3\xa9: c\r\n"), 400},
      {"NUL in a name", With("a" + kNul + ": c\r\n"), 400},
      {"NUL in a value", With("a: b" + kNul + "c\r\n"), 400},
      {"an escape in a value", With("a: \x1b[31m\r\n"), 400},
      {"a bare CR in a value", With("a: b\rc\r\n"), 400},
      {"a bare LF after a value", With("a: b\nc: d\r\n"), 400},
      {"two Authorizations", With("Authorization: a\r\nAuthorization: b\r\n"), 400},
      {"two content types", With("Content-Type: a\r\nContent-Type: b\r\n"), 400},
      {"too many", With([] {
         std::string all;
         for (int i = 0; i < 101; ++i) all += "a: b\r\n";
         return all;
       }()),
       431},
      {"too long", With("a: " + std::string(20'000, 'b') + "\r\n"), 431},
      {"too long without an end", With("a: " + std::string(17'000, 'b')), 431},
      {"a long target", Get("/" + std::string(9000, 'a')), 414},
      {"a very long target", Get("/" + std::string(20'000, 'a')), 414},
  };
  for (const Case& one : cases) EXPECT_EQ(Read(one.bytes).status, one.status) << one.name;
  EXPECT_EQ(Read("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").status, 0);
  EXPECT_EQ(Read("GET / HTTP/1.0\r\n\r\n").status, 0);
  EXPECT_EQ(Read(With("a: caf\xe9\r\n")).status, 0);
}

TEST(RequestHead, ReadsConnectionAndUpgrade) {
  EXPECT_FALSE(Read(With("Connection: foo, Close\r\n")).framing.keep_alive);
  EXPECT_FALSE(Read("GET / HTTP/1.0\r\n\r\n").framing.keep_alive);
  const std::string upgrade =
      "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n";
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  EXPECT_TRUE(Read(upgrade + key + "Sec-WebSocket-Version: 13\r\n\r\n").request.websocket);
  EXPECT_EQ(Read(upgrade + key + "Sec-WebSocket-Version: 8\r\n\r\n").status, 426);
  EXPECT_EQ(Read(upgrade + "Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n").status,
            400);
  EXPECT_FALSE(Read(With("Connection: Upgrade\r\nUpgrade: h2c\r\n")).request.websocket);
}

TEST(RequestHead, ComparesOrigins) {
  EXPECT_TRUE(IsSameOrigin("http://a:7117", "a:7117"));
  EXPECT_TRUE(IsSameOrigin("https://A", "a"));
  EXPECT_TRUE(IsSameOrigin("https://a", "a:443"));
  EXPECT_TRUE(IsSameOrigin("http://[::1]", "[::1]:80"));
  EXPECT_FALSE(IsSameOrigin("https://a", "a:7117"));
  EXPECT_FALSE(IsSameOrigin("http://a.evil", "a"));
  EXPECT_FALSE(IsSameOrigin("null", "null"));
  EXPECT_FALSE(IsSameOrigin("file://a", "a"));
}

}  // namespace
}  // namespace shoal::net
