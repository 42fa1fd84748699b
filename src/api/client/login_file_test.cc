#include "api/client/login_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/file.h"

namespace shoal::api {
namespace {

TEST(LoginFileTest, RoundTripsAndIsPrivate) {
  const auto directory = TempDir::Create();
  ASSERT_TRUE(directory.ok());
  const auto file = directory->path() / "shoal" / "login.json";
  const auto none = ReadLogins(file);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->servers.empty());
  Logins logins;
  logins.default_url = "https://a:7117";
  logins.servers["https://a:7117"] = {"https://a:7117", "shoal_x", std::string(64, 'a'), "ada"};
  ASSERT_TRUE(WriteLogins(file, logins).ok());
  const auto read = ReadLogins(file);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->servers.at("https://a:7117").token, "shoal_x");
  EXPECT_EQ(read->servers.at("https://a:7117").fingerprint, std::string(64, 'a'));
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  EXPECT_EQ(ReadLogins(file).status().code(), Code::kPermissionDenied);
}

TEST(LoginFileTest, RefusesADamagedFile) {
  const auto directory = TempDir::Create();
  ASSERT_TRUE(directory.ok());
  const auto file = directory->path() / "login.json";
  for (const char* text : {"", "{", "[]", R"({"servers": {"a": 1}})"}) {
    ASSERT_TRUE(WriteFileAtomically(file, text, 0600).ok());
    EXPECT_EQ(ReadLogins(file).status().code(), Code::kInvalidArgument) << text;
  }
}

TEST(LoginFileTest, IsEmptyWhereThereCannotBeOne) {
  const auto directory = TempDir::Create();
  ASSERT_TRUE(directory.ok());
  const auto file = directory->path() / "config";
  ASSERT_TRUE(WriteFileAtomically(file, "a file where others have a directory", 0600).ok());
  for (const auto& at :
       {file / "shoal" / "login.json", directory->path() / "none" / "login.json"}) {
    const auto read = ReadLogins(at);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(read->servers.empty());
  }
}

TEST(UrlTest, IsNormalized) {
  EXPECT_EQ(NormalizeUrl("HTTPS://Host:7117/").value_or(""), "https://host:7117");
  EXPECT_EQ(NormalizeUrl("127.0.0.1:7117").value_or(""), "http://127.0.0.1:7117");
  EXPECT_EQ(NormalizeUrl("ml.example").value_or(""), "https://ml.example");
  EXPECT_EQ(NormalizeUrl("https://Host/Shoal/").value_or(""), "https://host/Shoal");
  EXPECT_FALSE(NormalizeUrl("ftp://host").ok());
  EXPECT_FALSE(NormalizeUrl("https://ada:secret@host").ok());
}

TEST(FingerprintTest, IsReadInItsUsualForms) {
  const std::string plain(64, 'a');
  std::string colons = "AA";
  for (int i = 1; i < 32; ++i) colons += ":AA";
  EXPECT_EQ(NormalizeFingerprint(plain).value_or(""), plain);
  EXPECT_EQ(NormalizeFingerprint(colons).value_or(""), plain);
  EXPECT_EQ(NormalizeFingerprint("sha256:" + plain).value_or(""), plain);
  EXPECT_FALSE(NormalizeFingerprint("aa").ok());
  EXPECT_FALSE(NormalizeFingerprint(std::string(64, 'g')).ok());
}

}  // namespace
}  // namespace shoal::api
