#include "data/objects/http_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/corpus/corpus.h"
#include "data/objects/object_stores.h"
#include "data/objects/test_object_server.h"
#include "data/text/tokenizer.h"

namespace shoal::data {
namespace {

using testing::HasSubstr;

std::string ReadAll(const Object& object) {
  std::string bytes(object.info().bytes + 10, '\0');
  const auto got = object.ReadAt(0, bytes.data(), bytes.size());
  EXPECT_TRUE(got.ok()) << got.status().message();
  bytes.resize(got.value_or(0));
  return bytes;
}

class HttpObjects : public testing::Test {
 protected:
  TestObjectServer server_;
  TestContext context_;
  ObjectStores stores_{context_.Make()};
};

TEST_F(HttpObjects, ReadsRanges) {
  server_.Put("/a.txt", "0123456789");
  const auto object = stores_.Open(server_.url("/a.txt?token=x")).value();
  EXPECT_EQ(object->info().bytes, 10u);
  EXPECT_EQ(object->info().version, "\"1\"");
  char some[4] = {};
  EXPECT_EQ(object->ReadAt(3, some, 4).value(), 4u);
  EXPECT_EQ(std::string(some, 4), "3456");
  EXPECT_EQ(object->ReadAt(8, some, 4).value(), 2u);
  EXPECT_EQ(object->ReadAt(10, some, 4).value(), 0u);
  EXPECT_EQ(object->ReadAt(99, some, 4).value(), 0u);
  EXPECT_EQ(ReadAll(*object), "0123456789");
  EXPECT_EQ(server_.requests().back().target, "/a.txt?token=x");
}

TEST_F(HttpObjects, EmptyAndMissingOnes) {
  server_.Put("/empty", "");
  EXPECT_EQ(stores_.Open(server_.url("/empty")).value()->info().bytes, 0u);
  const auto missing = stores_.Open(server_.url("/none"));
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("/none: the server answers 404"));
}

TEST_F(HttpObjects, ServersWithoutRangesAreReadWhole) {
  server_.ranges = false;
  server_.Put("/a.txt", "0123456789");
  const auto object = stores_.Open(server_.url("/a.txt")).value();
  const size_t before = server_.requests().size();
  char some[4] = {};
  EXPECT_EQ(object->ReadAt(3, some, 4).value(), 4u);
  EXPECT_EQ(std::string(some, 4), "3456");
  EXPECT_EQ(server_.requests().size(), before);
}

TEST_F(HttpObjects, AChangedObjectIsAnErrorThatNamesIt) {
  server_.Put("/a.txt", "0123456789", "\"1\"");
  const auto object = stores_.Open(server_.url("/a.txt")).value();
  char some[4] = {};
  server_.Put("/a.txt", "9876543210", "\"2\"");
  Status changed = object->ReadAt(0, some, 4).status();
  EXPECT_EQ(changed.code(), Code::kDataLoss);
  EXPECT_THAT(changed.message(), HasSubstr("/a.txt has changed since it was opened"));
  // Also where the server ignores If-Match and it only became shorter.
  server_.Put("/b.txt", "0123456789", "W/\"x\"");
  const auto weak = stores_.Open(server_.url("/b.txt")).value();
  server_.Put("/b.txt", "01234", "W/\"x\"");
  changed = weak->ReadAt(0, some, 4).status();
  EXPECT_THAT(changed.message(), HasSubstr("/b.txt has changed"));
}

TEST_F(HttpObjects, PassingFailuresAreRepeatedWithGrowingWaits) {
  server_.Put("/a.txt", "0123456789");
  net::HttpServerReply busy;
  busy.status = 503;
  net::HttpServerReply slow;
  slow.status = 429;
  slow.headers = {{"Retry-After", "7"}};
  server_.Fail({busy, busy, slow});
  EXPECT_TRUE(stores_.Open(server_.url("/a.txt")).ok());
  ASSERT_EQ(context_.waits.size(), 3u);
  using std::chrono::milliseconds;
  EXPECT_GE(context_.waits[0], milliseconds(50));
  EXPECT_LE(context_.waits[0], milliseconds(100));
  EXPECT_GE(context_.waits[1], milliseconds(100));
  EXPECT_LE(context_.waits[1], milliseconds(200));
  EXPECT_EQ(context_.waits[2], milliseconds(7000));
}

TEST_F(HttpObjects, AFailureThatStaysIsTold) {
  net::HttpServerReply busy;
  busy.status = 503;
  busy.body = "out of order\n";
  server_.Fail(std::vector<net::HttpServerReply>(6, busy));
  const auto object = stores_.Open(server_.url("/a.txt"));
  EXPECT_EQ(object.status().code(), Code::kUnavailable);
  EXPECT_THAT(object.status().message(), HasSubstr("answers 503: out of order  (6 attempts)"));
  EXPECT_EQ(context_.waits.size(), 5u);
}

TEST_F(HttpObjects, FollowsRedirectsOfALoopbackServer) {
  server_.Put("/b.txt", "here");
  server_.Put("/c.txt", "there");
  net::HttpServerReply to;
  to.status = 302;
  to.headers = {{"Location", "b.txt"}};
  server_.Fail({to});
  EXPECT_EQ(stores_.Open(server_.url("/a.txt")).value()->info().bytes, 4u);
  TestObjectServer other;
  other.Put("/c.txt", "there!");
  to.headers = {{"Location", other.url("/c.txt")}};
  server_.Fail({to});
  EXPECT_EQ(stores_.Open(server_.url("/a.txt")).value()->info().bytes, 6u);
}

TEST_F(HttpObjects, EndlessRedirectsEnd) {
  server_.Use([](const net::HttpServerRequest&) {
    net::HttpServerReply to;
    to.status = 307;
    to.headers = {{"Location", "/a"}};
    return to;
  });
  EXPECT_THAT(stores_.Open(server_.url("/a")).status().message(),
              HasSubstr("redirects more than 5 times"));
  EXPECT_EQ(server_.requests().size(), 6u);
}

TEST_F(HttpObjects, ReadsATextAsACorpus) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "word" + std::to_string(i) + "\n";
  server_.Put("/a.txt", text);
  const auto corpus = Corpus::Open({server_.url("/a.txt")}, context_.Make());
  ASSERT_TRUE(corpus.ok()) << corpus.status().message();
  EXPECT_EQ(corpus->stored_bytes(), text.size());
  std::string read;
  for (uint64_t i = 0; i < 3; ++i) {
    const Shard shard = corpus->MakeShard(i, 3).value();
    for (const Segment& segment : shard.segments) {
      auto stream = TextStream::Open(corpus->files()[segment.file]).value();
      ASSERT_TRUE(stream->SkipTo(segment.begin).ok());
      const uint64_t end = std::min<uint64_t>(segment.end, text.size());
      while (stream->position() < end) {
        char block[1000];
        const auto got = stream->Read(
            block, static_cast<size_t>(std::min<uint64_t>(1000, end - stream->position())));
        ASSERT_TRUE(got.ok()) << got.status().message();
        read.append(block, *got);
      }
    }
  }
  EXPECT_EQ(read, text);
}

TEST_F(HttpObjects, AChangedObjectHasAnotherFingerprint) {
  server_.Put("/a.txt", "some text\n", "\"1\"");
  const auto before = Corpus::Open({server_.url("/a.txt")}, context_.Make()).value();
  server_.Put("/a.txt", "same size\n", "\"2\"");
  const auto after = Corpus::Open({server_.url("/a.txt")}, context_.Make()).value();
  EXPECT_NE(before.fingerprint(), after.fingerprint());
}

TEST(ContentRange, IsReadStrictly) {
  EXPECT_EQ(LengthOfContentRange("bytes 0-9/1234").value(), 1234u);
  EXPECT_EQ(LengthOfContentRange("bytes */0").value(), 0u);
  for (const char* wrong : {"", "bytes 0-9/*", "bytes 0-9", "items 0-9/10", "bytes 0-9/-1",
                            "bytes 0-9/99999999999999999999", "bytes 0-9/10x"})
    EXPECT_EQ(LengthOfContentRange(wrong).status().code(), Code::kDataLoss) << wrong;
}

TEST(Redirects, AreResolvedAgainstTheRequest) {
  const auto at = [](const std::string& location) {
    auto to = ResolveRedirect("https://a.example:1", "/x/y?q", location);
    return to.ok() ? to->server + to->target : "error: " + to.status().message();
  };
  EXPECT_EQ(at("https://b.example/z"), "https://b.example:443/z");
  EXPECT_EQ(at("https://b.example?z"), "https://b.example:443/?z");
  EXPECT_EQ(at("//b.example/z#part"), "https://b.example:443/z");
  EXPECT_EQ(at("/z"), "https://a.example:1/z");
  EXPECT_EQ(at("z"), "https://a.example:1/x/z");
  EXPECT_EQ(at("?z"), "https://a.example:1/x/y?z");
  EXPECT_THAT(at("http://b.example/z"), HasSubstr("gives up TLS"));
  for (const char* wrong : {"", "file:///etc/passwd", "https://u:p@b/", "a b", "https://b:0x1/"})
    EXPECT_THAT(at(wrong), HasSubstr("error: ")) << wrong;
}

}  // namespace
}  // namespace shoal::data
