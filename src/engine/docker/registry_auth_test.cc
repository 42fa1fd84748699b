#include "engine/docker/registry_auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/base64.h"
#include "base/json.h"

namespace shoal::engine::docker {
namespace {

using testing::HasSubstr;

Result<std::string> NoHelper(const std::string& helper, const std::string& /*server*/) {
  return Internal("the helper " + helper + " was asked");
}

std::string Config(const std::string& auths) { return R"({"auths":{)" + auths + "}}"; }

TEST(RegistryAuth, AnImagesNameSaysItsRegistry) {
  EXPECT_EQ(RegistryOf("busybox"), "https://index.docker.io/v1/");
  EXPECT_EQ(RegistryOf("acme/train:7"), "https://index.docker.io/v1/");
  EXPECT_EQ(RegistryOf("docker.io/acme/train"), "https://index.docker.io/v1/");
  EXPECT_EQ(RegistryOf("ghcr.io/acme/train@sha256:ab"), "ghcr.io");
  EXPECT_EQ(RegistryOf("localhost:5000/x"), "localhost:5000");
  EXPECT_EQ(RegistryOf("localhost/x"), "localhost");
}

TEST(RegistryAuth, WhatDockerLoginStoredIsFound) {
  const std::string whole =
      Config(R"("https://ghcr.io/v2/":{"auth":")" + EncodeBase64("ann:s:cret") +
             R"("},"https://index.docker.io/v1/":{"auth":")" + EncodeBase64("bob:pw") +
             R"("},"token.io":{"auth":"","identitytoken":"T"},"empty.io":{})");
  const auto ghcr = FindLogin(whole, "ghcr.io/acme/train", NoHelper);
  ASSERT_TRUE(ghcr.ok() && *ghcr) << ghcr.status().message();
  EXPECT_EQ((*ghcr)->user, "ann");
  EXPECT_EQ((*ghcr)->password, "s:cret");
  EXPECT_EQ((*FindLogin(whole, "busybox", NoHelper))->user, "bob");
  EXPECT_EQ((*FindLogin(whole, "token.io/x", NoHelper))->identity_token, "T");
  for (const char* none : {"empty.io/x", "other.io/x"})
    EXPECT_FALSE(FindLogin(whole, none, NoHelper)->has_value()) << none;
  EXPECT_FALSE(FindLogin("{}", "busybox", NoHelper)->has_value());
}

TEST(RegistryAuth, AHelperIsAskedFirst) {
  const std::string config =
      R"({"credsStore":"pass","credHelpers":{"ghcr.io":"gh"},"auths":{"a.io":{"auth":")" +
      EncodeBase64("ann:pw") + R"("}}})";
  std::string asked;
  const AskHelper ask = [&](const std::string& helper, const std::string& server) {
    asked += helper + " " + server + ";";
    if (helper == "pass") return Result<std::string>(NotFound("credentials not found"));
    return Result<std::string>(R"({"ServerURL":"x","Username":"<token>","Secret":"S"})");
  };
  EXPECT_EQ((*FindLogin(config, "ghcr.io/x", ask))->identity_token, "S");
  EXPECT_EQ((*FindLogin(config, "a.io/x", ask))->user, "ann");
  EXPECT_EQ(asked, "gh ghcr.io;pass a.io;");
}

TEST(RegistryAuth, DamagedConfigurationsSayWhere) {
  EXPECT_THAT(FindLogin(Config(R"("a.io":{"auth":"?"})"), "a.io/x", NoHelper).status().message(),
              HasSubstr("auths.a.io.auth: it is not base64"));
  EXPECT_FALSE(FindLogin("[", "a.io/x", NoHelper).ok());
  EXPECT_THAT(FindLogin(R"({"credsStore":"../x"})", "a.io/x", NoHelper).status().message(),
              HasSubstr("expected a helper's name"));
}

TEST(RegistryAuth, TheHeaderIsJsonInTheAlphabetOfUrls) {
  const std::string header = EncodeLogin({"a.io", "ann", "pw?>", ""});
  EXPECT_EQ(header.find_first_of("+/"), std::string::npos);
  std::string standard = header;
  std::replace(standard.begin(), standard.end(), '-', '+');
  std::replace(standard.begin(), standard.end(), '_', '/');
  const auto object = ParseJsonObject(*DecodeBase64(standard));
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(GetStringOr(*object, "password", ""), "pw?>");
  EXPECT_EQ(GetStringOr(*object, "serveraddress", ""), "a.io");
  EXPECT_EQ(EncodeLogin({"a.io", "", "", "T"}).find("password"), std::string::npos);
}

}  // namespace
}  // namespace shoal::engine::docker
