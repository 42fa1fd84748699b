#include "api/page/page_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace shoal::api {
namespace {

using testing::Contains;
using testing::Pair;
using testing::StartsWith;

const std::string kScript(5000, 'x');
const std::array<EmbeddedFile, 3> kFiles = {
    {{"index.html", "<html>"}, {"assets/app-1a2b.js", kScript}, {"icon.svg", "<svg/>"}}};

net::HttpServerRequest Get(std::vector<std::string> path, net::HttpHeaders headers = {}) {
  net::HttpServerRequest request;
  request.method = "GET";
  request.path = std::move(path);
  request.headers = std::move(headers);
  return request;
}

std::string Value(const net::HttpServerReply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(PageFiles, AddressesOfThePageGetItsIndex) {
  const PageFiles page(kFiles);
  for (const std::vector<std::string>& path : {std::vector<std::string>{},
                                               {"jobs"},
                                               {"jobs", "a-1", "logs"},
                                               {"queues"},
                                               {"models", "ages"},
                                               {"data", "shop.people"},
                                               {"secrets"},
                                               {"audit"}}) {
    const auto reply = page.Reply(Get(path));
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status, 200);
    EXPECT_EQ(reply->body, "<html>");
    EXPECT_EQ(Value(*reply, "Cache-Control"), "no-cache");
    EXPECT_THAT(Value(*reply, "Content-Security-Policy"), StartsWith("default-src 'none'"));
  }
}

TEST(PageFiles, OtherAddressesAndMethodsAreNotThePages) {
  const PageFiles page(kFiles);
  EXPECT_FALSE(page.Reply(Get({"api", "v1", "jobs"})).has_value());
  EXPECT_FALSE(page.Reply(Get({"nothing"})).has_value());
  EXPECT_FALSE(page.Reply(Get({"assets", "app-old.js"})).has_value());
  EXPECT_FALSE(page.Reply(Get({"assets"})).has_value());
  net::HttpServerRequest post = Get({"jobs"});
  post.method = "POST";
  EXPECT_FALSE(page.Reply(post).has_value());
}

TEST(PageFiles, FilesAreCompressedForThoseWhoTakeIt) {
  const PageFiles page(kFiles);
  const auto plain = page.Reply(Get({"assets", "app-1a2b.js"}));
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->body, kScript);
  EXPECT_THAT(Value(*plain, "Cache-Control"), testing::HasSubstr("immutable"));
  const auto packed = page.Reply(Get({"assets", "app-1a2b.js"}, {{"accept-encoding", "br, gzip"}}));
  EXPECT_THAT(packed->headers, Contains(Pair("Content-Encoding", "gzip")));
  EXPECT_LT(packed->body.size(), 100u);
  EXPECT_THAT(packed->body, StartsWith("\x1f\x8b"));
  const auto none = page.Reply(Get({"assets", "app-1a2b.js"}, {{"accept-encoding", "gzip;q=0"}}));
  EXPECT_EQ(none->body, kScript);
  // No smaller: as it is.
  EXPECT_EQ(page.Reply(Get({"icon.svg"}, {{"accept-encoding", "gzip"}}))->body, "<svg/>");
}

TEST(PageFiles, WhatABrowserHasIsNotSentAgain) {
  const PageFiles page(kFiles);
  const std::string etag = Value(*page.Reply(Get({})), "ETag");
  const auto reply = page.Reply(Get({}, {{"if-none-match", etag}}));
  EXPECT_EQ(reply->status, 304);
  EXPECT_EQ(reply->body, "");
}

TEST(PageFiles, TheProgramContainsThePage) {
  const PageFiles page;
  const auto index = page.Reply(Get({}));
  ASSERT_TRUE(index.has_value());
  EXPECT_THAT(index->body, testing::HasSubstr("/assets/index-"));
  // No script and no style stands in the page itself, which its policy forbids.
  EXPECT_EQ(index->body.find("<style"), std::string::npos);
  EXPECT_EQ(index->body.find("style="), std::string::npos);
}

}  // namespace
}  // namespace shoal::api
