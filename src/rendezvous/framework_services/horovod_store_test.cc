#include "rendezvous/framework_services/horovod_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace shoal::rendezvous {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Method = HorovodStoreRequest::Method;

// The answer to these bytes of a request.
std::string Ask(HorovodStore* store, const std::string& bytes) {
  HorovodRequestReader reader;
  auto request = reader.Feed(bytes);
  if (!request.ok()) return HorovodStore::Refusal(request.status());
  return request->has_value() ? store->Answer(std::move(**request)) : "";
}

std::string Put(const std::string& path, const std::string& value) {
  return "PUT " + path +
         " HTTP/1.1\r\nHost: 10.0.0.1:80\r\ncontent-length: " + std::to_string(value.size()) +
         "\r\n\r\n" + value;
}
std::string Get(const std::string& path) { return "GET " + path + " HTTP/1.1\r\n\r\n"; }
std::string Delete(const std::string& path) { return "DELETE " + path + " HTTP/1.1\r\n\r\n"; }

const std::string kOk = "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

class Store : public ::testing::Test {
 protected:
  HorovodStore store_ = *HorovodStore::Make("worker-0:2 worker-1:1");
};

TEST_F(Store, GivesAValueOnceItIsThere) {
  EXPECT_THAT(Ask(&store_, Get("/global/0")), StartsWith("HTTP/1.0 404 "));
  const std::string value("\0\r\n\r\nbytes", 10);
  EXPECT_EQ(Ask(&store_, Put("/global/0", value)), kOk);
  EXPECT_EQ(Ask(&store_, Get("/global/0")),
            "HTTP/1.0 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\n" + value);
  EXPECT_THAT(Ask(&store_, Get("/global/1")), StartsWith("HTTP/1.0 404 "));
  EXPECT_THAT(Ask(&store_, Get("/local_worker-0/0")), StartsWith("HTTP/1.0 404 "));
  EXPECT_EQ(Ask(&store_, Put("/global/0", "new")), kOk);
  EXPECT_THAT(Ask(&store_, Get("/global/0")), HasSubstr("\r\n\r\nnew"));
}

// Each scope when its own last rank has left: 3 in all, 2 and 1 in the workers, 2 first ranks and 1
// second.
TEST_F(Store, ForgetsAGroupThatAllHaveLeft) {
  const auto ranks = {std::pair{"global", 3},
                      {"local_worker-0", 2},
                      {"local_worker-1", 1},
                      {"cross_0", 2},
                      {"cross_1", 1}};
  for (const auto& [group, size] : ranks) {
    const std::string scope = std::string("/") + group + "/";
    ASSERT_EQ(Ask(&store_, Put(scope + "0", "here")), kOk);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_THAT(Ask(&store_, Get(scope + "0")), StartsWith("HTTP/1.0 200 ")) << scope;
      EXPECT_EQ(Ask(&store_, Delete(scope + std::to_string(rank))), kOk);
      EXPECT_EQ(Ask(&store_, Delete(scope + "0")), kOk) << "a rank counts once";
    }
    EXPECT_THAT(Ask(&store_, Get(scope + "0")), StartsWith("HTTP/1.0 404 ")) << scope;
  }
  EXPECT_EQ(Ask(&store_, Delete("/other/0")), kOk);
}

TEST_F(Store, RefusesWhatIsNoRequestOfOurs) {
  for (const std::string& bytes :
       {Get("/global"), Get("/global/"), Get("//0"), Get("/a/b/c"), Get("global/0"), Get("/"),
        std::string("POST /a/b HTTP/1.1\r\n\r\n"), std::string("GET /a/b SPDY\r\n\r\n"),
        std::string("\r\n\r\n"), Get("/a/" + std::string(1025, 'x')),
        std::string("PUT /a/b HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        std::string("PUT /a/b HTTP/1.1\r\nContent-Length: 1x\r\n\r\n"),
        std::string("PUT /a/b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")}) {
    EXPECT_THAT(Ask(&store_, bytes), StartsWith("HTTP/1.0 400 ")) << bytes;
  }
  EXPECT_THAT(Ask(&store_, "PUT /a/b HTTP/1.1\r\nContent-Length: 4194305\r\n\r\n"),
              StartsWith("HTTP/1.0 413 "));
  EXPECT_THAT(Ask(&store_, std::string(10'000, 'x')), StartsWith("HTTP/1.0 413 "));
  EXPECT_THAT(Ask(&store_, "GET /a/b HTTP/1.1\r\nX: " + std::string(10'000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.0 413 "));
}

TEST_F(Store, HoldsSoMuchAndNoMore) {
  const std::string value(HorovodRequestReader::kMostBody, 'x');
  int kept = 0;
  for (; kept < 100; ++kept) {
    if (store_.Answer({Method::kPut, "global", std::to_string(kept), value}) != kOk) break;
  }
  EXPECT_EQ(kept, 63);
  for (const char* rank : {"0", "1", "2"}) store_.Answer({Method::kDelete, "global", rank, ""});
  EXPECT_EQ(store_.Answer({Method::kPut, "global", "0", value}), kOk);
}

TEST(HorovodRequestReader, TakesARequestInAnyPieces) {
  EXPECT_TRUE(rc::check([](const std::string& value) {
    const std::string bytes = Put("/cross_0/3", value);
    HorovodRequestReader reader;
    std::optional<HorovodStoreRequest> whole;
    for (size_t at = 0; at < bytes.size();) {
      RC_ASSERT(!whole.has_value());
      const size_t take = *rc::gen::inRange<size_t>(1, bytes.size() - at + 1);
      auto fed = reader.Feed(std::string_view(bytes).substr(at, take));
      RC_ASSERT(fed.ok());
      whole = std::move(*fed);
      at += take;
    }
    RC_ASSERT(whole.has_value());
    RC_ASSERT(whole->method == Method::kPut);
    RC_ASSERT(whole->scope == "cross_0" && whole->key == "3" && whole->body == value);
  }));
}

TEST(HorovodStoreHosts, MustBeSome) {
  EXPECT_FALSE(HorovodStore::Make("").ok());
  EXPECT_FALSE(HorovodStore::Make("worker-0").ok());
}

}  // namespace
}  // namespace shoal::rendezvous
