// Against the examples of AWS's documentation ("Authenticating requests: examples of signature
// calculations in Signature Version 4", S3) and its test suite (get-vanilla).
#include "data/objects/s3/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal::data {
namespace {

using testing::HasSubstr;

const S3Credentials kExample = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                "", ""};
constexpr const char* kEmptyDigest =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kTime = "20130524T000000Z";

std::string Sign(const std::string& method, const std::string& target, SignedHeaders more,
                 const std::string& digest = kEmptyDigest) {
  more.emplace_back("host", "examplebucket.s3.amazonaws.com");
  more.emplace_back("x-amz-content-sha256", digest);
  more.emplace_back("x-amz-date", kTime);
  std::sort(more.begin(), more.end());
  return SignatureOf(kExample, {"us-east-1", "s3"}, kTime,
                     CanonicalRequest(method, target, more, digest));
}

TEST(S3Signature, MatchesTheDocumentedExamples) {
  EXPECT_EQ(Sign("GET", "/test.txt", {{"range", "bytes=0-9"}}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(Sign("PUT", "/test%24file.text",
                 {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                  {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                 "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(Sign("GET", "/?lifecycle", {}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(Sign("GET", "/?max-keys=2&prefix=J", {}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
  EXPECT_EQ(Sign("GET", "/?prefix=J&max-keys=2", {}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(S3Signature, MatchesTheTestSuite) {
  const S3Credentials credentials = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "",
                                     ""};
  const SignedHeaders headers = {{"host", "example.amazonaws.com"},
                                 {"x-amz-date", "20150830T123600Z"}};
  EXPECT_EQ(SignatureOf(credentials, {"us-east-1", "service"}, "20150830T123600Z",
                        CanonicalRequest("GET", "/", headers, kEmptyDigest)),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST(S3Signature, ARequestGetsItsHeaders) {
  net::HttpRequest request;
  request.target = "/test.txt";
  request.headers = {{"Range", "bytes=0-9"}};
  // 2013-05-24T00:00:00Z
  const WallTime now{std::chrono::seconds(1369353600)};
  SignRequest(kExample, {"us-east-1", "s3"}, "examplebucket.s3.amazonaws.com", now, &request);
  EXPECT_EQ(request.headers.back().first, "Authorization");
  EXPECT_THAT(request.headers.back().second,
              HasSubstr("Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
                        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature="
                        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"));
}

TEST(S3Signature, TemporaryCredentialsSendTheirTokenSigned) {
  S3Credentials credentials = kExample;
  credentials.session_token = "token";
  net::HttpRequest request;
  request.target = "/";
  SignRequest(credentials, {}, "h", WallTime{}, &request);
  EXPECT_THAT(request.headers, testing::Contains(testing::Pair("x-amz-security-token", "token")));
  EXPECT_THAT(request.headers.back().second, HasSubstr("x-amz-date;x-amz-security-token,"));
}

TEST(S3Signature, WithoutCredentialsNothingIsSigned) {
  net::HttpRequest request;
  SignRequest({}, {}, "h", WallTime{}, &request);
  EXPECT_TRUE(request.headers.empty());
}

TEST(S3Keys, AreEncodedByTheirBytes) {
  EXPECT_EQ(EncodeKey("a/b c+ü\n"), "a/b%20c%2B%C3%BC%0A");
  EXPECT_EQ(EncodeKey(""), "");
  EXPECT_EQ(EncodeKey("a//b/"), "a//b/");
}

}  // namespace
}  // namespace shoal::data
