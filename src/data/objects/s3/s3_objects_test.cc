#include "data/objects/s3/s3_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "data/objects/copy_object.h"
#include "data/objects/object_stores.h"
#include "data/objects/test_object_server.h"

namespace shoal::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

net::HttpServerReply Xml(int status, const std::string& body) {
  net::HttpServerReply reply;
  reply.status = status;
  reply.body = "<?xml version=\"1.0\"?>" + body;
  return reply;
}

class S3Objects : public testing::Test {
 protected:
  S3Objects() {
    context_.env = {{"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"},
                    {"AWS_SECRET_ACCESS_KEY", "topsecret"},
                    {"AWS_SESSION_TOKEN", "token"},
                    {"AWS_ENDPOINT_URL_S3", "http://" + server_.host()}};
  }
  TestObjectServer server_;
  TestContext context_;
};

TEST_F(S3Objects, ReadsSignedRangesWithTheVersionPinned) {
  server_.Put("/bucket/a%20b.txt", "0123456789");
  ObjectStores stores(context_.Make());
  const auto object = stores.Open("s3://bucket/a b.txt");
  ASSERT_TRUE(object.ok()) << object.status().message();
  EXPECT_EQ((*object)->info().bytes, 10u);
  char some[4] = {};
  EXPECT_EQ((*object)->ReadAt(2, some, 4).value(), 4u);
  EXPECT_EQ(std::string(some, 4), "2345");
  const auto last = server_.requests().back();
  EXPECT_EQ(last.target, "/bucket/a%20b.txt");
  EXPECT_EQ(last.Header("if-match"), "\"1\"");
  EXPECT_EQ(last.Header("x-amz-security-token"), "token");
  EXPECT_THAT(std::string(last.Header("authorization")), HasSubstr("Credential=AKIDEXAMPLE/"));
  server_.Put("/bucket/a%20b.txt", "9876543210", "\"2\"");
  const Status changed = (*object)->ReadAt(0, some, 4).status();
  EXPECT_EQ(changed.code(), Code::kDataLoss);
  EXPECT_THAT(changed.message(), HasSubstr("s3://bucket/a b.txt has changed"));
}

TEST_F(S3Objects, AnObjectThatVanishesIsNamed) {
  server_.Put("/bucket/a", "0123456789");
  ObjectStores stores(context_.Make());
  const auto object = stores.Open("s3://bucket/a").value();
  server_.Fail({Xml(404, "<Error><Code>NoSuchKey</Code></Error>")});
  char some[4] = {};
  const Status gone = object->ReadAt(0, some, 4).status();
  EXPECT_EQ(gone.code(), Code::kDataLoss);
  EXPECT_THAT(gone.message(), HasSubstr("s3://bucket/a was there when it was opened"));
}

TEST_F(S3Objects, AnEmptyObjectIsRead) {
  server_.Put("/bucket/empty", "");
  ObjectStores stores(context_.Make());
  EXPECT_EQ(stores.Open("s3://bucket/empty").value()->info().bytes, 0u);
}

TEST_F(S3Objects, ErrorsSayWhatToDoAndKeepSecrets) {
  ObjectStores stores(context_.Make());
  const auto error = [&](int status, const std::string& code) {
    server_.Fail({Xml(status, "<Error><Code>" + code +
                                  "</Code><Message>It is so.</Message>"
                                  "</Error>")});
    const Status failed = stores.Open("s3://bucket/a").status();
    EXPECT_THAT(failed.message(), Not(HasSubstr("topsecret")));
    return failed;
  };
  EXPECT_THAT(error(403, "AccessDenied").message(),
              HasSubstr("answers 403 AccessDenied (It is so); ask for the permission for the "
                        "access key AKIDEXAMPLE of the environment"));
  EXPECT_EQ(error(403, "AccessDenied").code(), Code::kPermissionDenied);
  EXPECT_THAT(error(400, "ExpiredToken").message(), HasSubstr("get new temporary credentials"));
  EXPECT_THAT(error(403, "SignatureDoesNotMatch").message(), HasSubstr("check the access key"));
  EXPECT_THAT(error(404, "NoSuchBucket").message(), HasSubstr("check the bucket's name"));
  EXPECT_EQ(error(404, "NoSuchKey").message(), "s3://bucket/a: there is no such object");
  auto moved = Xml(301, "<Error><Code>PermanentRedirect</Code></Error>");
  moved.headers = {{"x-amz-bucket-region", "eu-west-1"}, {"Location", "http://127.0.0.1:1/"}};
  server_.Fail({moved});
  EXPECT_THAT(stores.Open("s3://bucket/a").status().message(), HasSubstr("AWS_REGION=eu-west-1"));
}

TEST_F(S3Objects, ListsByPages) {
  ObjectStores stores(context_.Make());
  server_.Use([](const net::HttpServerRequest& request) {
    EXPECT_EQ(request.Query("prefix"), "logs/");
    EXPECT_EQ(request.Query("list-type"), "2");
    if (!request.Query("continuation-token"))
      return Xml(200,
                 "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true"
                 "</IsTruncated><NextContinuationToken>a+/=</NextContinuationToken><Contents>"
                 "<Key>logs/part-2.txt</Key><Size>7</Size><ETag>&quot;x&quot;</ETag></Contents>"
                 "<Contents><Key>logs/_SUCCESS</Key><Size>0</Size></Contents></ListBucketResult>");
    EXPECT_EQ(request.Query("continuation-token"), "a+/=");
    return Xml(200,
               "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false"
               "</IsTruncated><Contents><Key>logs/part-1%0A%2B+.txt</Key><Size>5</Size></Contents>"
               "<Contents><Key>logs/old/part-3.txt</Key><Size>5</Size></Contents>"
               "</ListBucketResult>");
  });
  EXPECT_THAT(stores.Expand("s3://bucket/logs/").value(),
              ElementsAre("s3://bucket/logs/old/part-3.txt", "s3://bucket/logs/part-1\n+ .txt",
                          "s3://bucket/logs/part-2.txt"));
}

TEST_F(S3Objects, APatternMatchesWithinOneFolder) {
  ObjectStores stores(context_.Make());
  server_.Use([](const net::HttpServerRequest& request) {
    EXPECT_EQ(request.Query("prefix"), "logs/part-");
    return Xml(200,
               "<ListBucketResult><Contents><Key>logs/part-2.txt</Key><Size>7</Size></Contents>"
               "<Contents><Key>logs/part-10.csv</Key><Size>7</Size></Contents>"
               "<Contents><Key>logs/part-x/1.txt</Key><Size>7</Size></Contents>"
               "<Contents><Key>logs/part-1.txt</Key><Size>7</Size></Contents></ListBucketResult>");
  });
  EXPECT_THAT(stores.Expand("s3://bucket/logs/part-*.txt").value(),
              ElementsAre("s3://bucket/logs/part-1.txt", "s3://bucket/logs/part-2.txt"));
  EXPECT_THAT(stores.Expand("s3://bucket/logs/part-?.gz").status().message(),
              HasSubstr("matches no object"));
}

TEST_F(S3Objects, ListingsThatLieAreErrors) {
  ObjectStores stores(context_.Make());
  const auto list = [&](const std::string& body) {
    server_.Fail({Xml(200, body), Xml(200, body), Xml(200, body)});
    TestContext fresh = context_;
    ObjectStores own(fresh.Make());
    return own.Expand("s3://bucket/").status().code();
  };
  EXPECT_EQ(list("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
            Code::kDataLoss);
  EXPECT_EQ(list("<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents>"
                 "</ListBucketResult>"),
            Code::kDataLoss);
  EXPECT_EQ(list("<ListBucketResult>"), Code::kDataLoss);
}

TEST_F(S3Objects, AShortObjectIsOneRequest) {
  ObjectStores stores(context_.Make());
  server_.Use([](const net::HttpServerRequest& request) {
    EXPECT_EQ(request.method, "PUT");
    EXPECT_EQ(request.body, "hello");
    net::HttpServerReply reply;
    reply.headers = {{"ETag", "\"e\""}};
    return reply;
  });
  auto writer = stores.Create("s3://bucket/a").value();
  ASSERT_TRUE(writer->Append("hel").ok());
  ASSERT_TRUE(writer->Append("lo").ok());
  EXPECT_EQ(writer->Finish().value().version, "\"e\"");
}

// A store of one multipart upload.
class MultipartStore {
 public:
  net::HttpServerReply Answer(const net::HttpServerRequest& request) {
    if (request.method == "POST" && request.Query("uploads"))
      return Xml(200,
                 "<InitiateMultipartUploadResult><UploadId>u/1</UploadId>"
                 "</InitiateMultipartUploadResult>");
    EXPECT_EQ(request.Query("uploadId"), "u/1");
    if (request.method == "PUT") {
      const std::string number(*request.Query("partNumber"));
      parts[number] = request.body;
      net::HttpServerReply reply;
      reply.headers = {{"ETag", "\"p" + number + "\""}};
      return reply;
    }
    if (request.method == "DELETE") {
      aborted = true;
      net::HttpServerReply reply;
      reply.status = 204;
      return reply;
    }
    completed = request.body;
    return Xml(200, fails ? "<Error><Code>InternalError</Code></Error>"
                          : "<CompleteMultipartUploadResult><ETag>\"all\"</ETag>"
                            "</CompleteMultipartUploadResult>");
  }
  std::map<std::string, std::string> parts;
  std::string completed;
  bool aborted = false;
  bool fails = false;
};

std::unique_ptr<ObjectStore> StoreOfSmallParts(TestContext* context) {
  const ObjectContext made = context->Make();
  return MakeS3Store(ReadS3Settings(made.env).value(), std::make_shared<HttpTransport>(made, ""),
                     {.first_part = 10, .parts_of_one_size = 2});
}

TEST_F(S3Objects, ALongObjectIsAMultipartUpload) {
  MultipartStore multipart;
  server_.Use([&](const net::HttpServerRequest& request) { return multipart.Answer(request); });
  const auto store = StoreOfSmallParts(&context_);
  auto writer = store->Create({ObjectScheme::kS3, "bucket", "a"}).value();
  ASSERT_TRUE(writer->Append("0123456789abcdefghijABCDEFGHIJ01234567").ok());
  const auto info = writer->Finish();
  ASSERT_TRUE(info.ok()) << info.status().message();
  EXPECT_EQ(info->version, "\"all\"");
  EXPECT_EQ(info->bytes, 38u);
  writer.reset();
  EXPECT_THAT(multipart.parts, ElementsAre(Pair("1", "0123456789"), Pair("2", "abcdefghij"),
                                           Pair("3", "ABCDEFGHIJ01234567")));
  EXPECT_THAT(multipart.completed,
              HasSubstr("<Part><PartNumber>3</PartNumber><ETag>\"p3\"</ETag></Part>"));
  EXPECT_FALSE(multipart.aborted);
}

TEST_F(S3Objects, AnUploadThatIsNotFinishedIsAborted) {
  MultipartStore multipart;
  server_.Use([&](const net::HttpServerRequest& request) { return multipart.Answer(request); });
  const auto store = StoreOfSmallParts(&context_);
  {
    auto writer = store->Create({ObjectScheme::kS3, "bucket", "a"}).value();
    ASSERT_TRUE(writer->Append("0123456789abc").ok());
  }
  EXPECT_TRUE(multipart.aborted);
  EXPECT_EQ(multipart.completed, "");
  multipart.aborted = false;
  multipart.fails = true;
  {
    auto writer = store->Create({ObjectScheme::kS3, "bucket", "a"}).value();
    ASSERT_TRUE(writer->Append("0123456789abc").ok());
    EXPECT_THAT(writer->Finish().status().message(), HasSubstr("InternalError"));
  }
  EXPECT_TRUE(multipart.aborted);
}

TEST_F(S3Objects, CopiesBothWays) {
  const auto dir = TempDir::Create().value();
  ObjectStores stores(context_.Make());
  server_.Put("/bucket/a", std::string(3'000'000, 'x') + "end");
  uint64_t told = 0;
  const auto copied = CopyObject(&stores, "s3://bucket/a", (dir.path() / "new" / "a").string(),
                                 [&](uint64_t bytes) { told += bytes; });
  ASSERT_TRUE(copied.ok()) << copied.status().message();
  EXPECT_EQ(told, 3'000'003u);
  const std::string read = ReadFile(dir.path() / "new" / "a", 4'000'000).value();
  EXPECT_EQ(read.size(), 3'000'003u);
  EXPECT_TRUE(read.ends_with("xend"));
}

TEST_F(S3Objects, KeysThatNoFileCanHaveAreNotCopiedToFolders) {
  ObjectStores stores(context_.Make());
  server_.Use([](const net::HttpServerRequest&) {
    return Xml(200,
               "<ListBucketResult><Contents><Key>news/a//b</Key><Size>7</Size></Contents>"
               "</ListBucketResult>");
  });
  const auto plan = PlanCopies(&stores, {"s3://bucket/news/"}, "out/");
  EXPECT_THAT(plan.status().message(), HasSubstr("its name has the part ''"));
}

TEST(S3Settings, TheEnvironmentComesFirst) {
  const auto dir = TempDir::Create().value();
  ASSERT_TRUE(WriteFileAtomically(dir.path() / "credentials",
                                  "[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
                                  "[work]\naws_access_key_id=C\naws_secret_access_key = D=E\n")
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(dir.path() / "config",
                                  "# mine\n[profile work]\nregion = eu-central-1\n"
                                  "endpoint_url = https://s3.example/\ns3 =\n"
                                  "    addressing_style = virtual\n    other = 1\noutput = json\n")
                  .ok());
  TestContext context;
  context.env = {{"AWS_SHARED_CREDENTIALS_FILE", dir.path() / "credentials"},
                 {"AWS_CONFIG_FILE", dir.path() / "config"}};
  const auto read = [&] { return ReadS3Settings(context.Make().env); };
  EXPECT_EQ(read()->credentials.access_key, "A");
  EXPECT_EQ(read()->region, "us-east-1");
  EXPECT_EQ(read()->PlaceOf("b"),
            std::pair(std::string("https://b.s3.us-east-1.amazonaws.com"), std::string()));
  EXPECT_EQ(read()->PlaceOf("a.b"),
            std::pair(std::string("https://s3.us-east-1.amazonaws.com"), std::string("/a.b")));
  context.env["AWS_PROFILE"] = "work";
  EXPECT_EQ(read()->credentials.secret_key, "D=E");
  EXPECT_EQ(read()->region, "eu-central-1");
  EXPECT_EQ(read()->PlaceOf("b"), std::pair(std::string("https://b.s3.example"), std::string()));
  context.env["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:9000";
  EXPECT_EQ(read()->endpoint, "http://127.0.0.1:9000");
  context.env["AWS_ACCESS_KEY_ID"] = "X";
  EXPECT_THAT(read().status().message(), HasSubstr("got one of them"));
  context.env["AWS_SECRET_ACCESS_KEY"] = "Y";
  EXPECT_EQ(read()->credentials.access_key, "X");
  context.env["AWS_PROFILE"] = "none";
  EXPECT_THAT(read().status().message(), HasSubstr("AWS_PROFILE: got none"));
}

TEST(S3Settings, WrongFilesAreNamedWithTheirLine) {
  EXPECT_THAT(ParseProfiles("a = b\n", "f").status().message(), HasSubstr("f:1: expected"));
  EXPECT_THAT(ParseProfiles("[x]\n\n[y\n", "f").status().message(), HasSubstr("f:3: expected ']'"));
  EXPECT_TRUE(ParseProfiles("", "f").value().empty());
}

}  // namespace
}  // namespace shoal::data
