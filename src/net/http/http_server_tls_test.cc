#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "net/http/self_signed.h"
#include "net/http/server_tls.h"
#include "net/http/test_http_server.h"
#include "net/http_client.h"

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kLong{20'000};

HttpServerOptions SelfSignedIn(const std::filesystem::path& directory) {
  HttpServerOptions options;
  options.tls.self_signed_directory = directory;
  options.tls.names = {"shoal.example", "10.1.2.3"};
  return options;
}

std::string Text(const std::filesystem::path& path) { return ReadFile(path, 1 << 20).value_or(""); }

Result<HttpReply> Get(const std::string& url, const TlsOptions& tls) {
  auto client = HttpClient::Make(url, tls);
  EXPECT_TRUE(client.ok());
  HttpRequest request;
  request.target = "/x";
  return (*client)->Call(request, kLong);
}

TEST(HttpServerTls, MakesACertificateOnce) {
  auto directory = TempDir::Create();
  ASSERT_TRUE(directory.ok());
  std::string fingerprint;
  {
    TestHttpServer test(SelfSignedIn(directory->path() / "tls"));
    ASSERT_NE(test.server, nullptr);
    fingerprint = test.server->fingerprint();
    EXPECT_EQ(fingerprint.size(), 64u);
    EXPECT_THAT(test.server->url(), testing::StartsWith("https://127.0.0.1:"));
    struct stat key {};
    ASSERT_EQ(::stat((directory->path() / "tls" / "server.key").c_str(), &key), 0);
    EXPECT_EQ(key.st_mode & 0777, 0600u);
    TlsOptions tls;
    tls.authorities = Text(directory->path() / "tls" / "server.crt");
    const auto reply = Get(test.server->url(), tls);
    ASSERT_TRUE(reply.ok()) << reply.status().message();
    EXPECT_EQ(reply->body, "GET /x ");
    for (const char* name : {"shoal.example", "10.1.2.3", "localhost"}) {
      tls.server_name = name;
      EXPECT_TRUE(Get(test.server->url(), tls).ok()) << name;
    }
    tls.server_name = "other.example";
    EXPECT_EQ(Get(test.server->url(), tls).status().code(), Code::kUnauthenticated);
  }
  TestHttpServer again(SelfSignedIn(directory->path() / "tls"));
  EXPECT_EQ(again.server->fingerprint(), fingerprint);
}

TEST(HttpServerTls, SendsAndReadsMuch) {
  auto directory = TempDir::Create();
  TestHttpServer test(SelfSignedIn(directory->path()));
  TlsOptions tls;
  tls.verify = false;
  auto client = HttpClient::Make(test.server->url(), tls);
  HttpRequest request;
  request.method = "POST";
  request.target = "/x";
  request.body = std::string(1 << 20, 'b');
  const auto reply = (*client)->Call(request, kLong);
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply->body, "POST /x " + request.body);
}

TEST(HttpServerTls, LoadsChangedFiles) {
  auto directory = TempDir::Create();
  const auto write = [&](const SelfSigned& made) {
    EXPECT_TRUE(WriteFileAtomically(directory->path() / "key", made.key, 0600).ok());
    EXPECT_TRUE(WriteFileAtomically(directory->path() / "crt", made.certificate).ok());
  };
  const auto first = MakeSelfSigned({"127.0.0.1"}, RealClock::Get()->Wall());
  const auto second = MakeSelfSigned({"127.0.0.1"}, RealClock::Get()->Wall());
  ASSERT_TRUE(first.ok() && second.ok());
  write(*first);
  TlsServerOptions options;
  options.certificate_file = directory->path() / "crt";
  options.key_file = directory->path() / "key";
  auto tls = ServerTls::Make(options);
  ASSERT_TRUE(tls.ok()) << tls.status().message();
  const auto before = (*tls)->context();
  EXPECT_EQ((*tls)->fingerprint(), *CertificateFingerprint(first->certificate));
  (*tls)->Refresh();
  EXPECT_EQ((*tls)->context(), before) << "nothing has changed";
  // A certificate whose key has not come yet.
  ASSERT_TRUE(WriteFileAtomically(directory->path() / "crt", second->certificate).ok());
  (*tls)->Refresh();
  EXPECT_EQ((*tls)->context(), before);
  write(*second);
  (*tls)->Refresh();
  EXPECT_NE((*tls)->context(), before);
  EXPECT_EQ((*tls)->fingerprint(), *CertificateFingerprint(second->certificate));
}

TEST(HttpServerTls, NamesTheFileThatIsBad) {
  auto directory = TempDir::Create();
  const auto made = MakeSelfSigned({}, RealClock::Get()->Wall());
  ASSERT_TRUE(made.ok());
  const auto file = [&](const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(directory->path() / name, text).ok());
    return (directory->path() / name).string();
  };
  const std::string crt = file("crt", made->certificate);
  const std::string key = file("key", made->key);
  const auto other = MakeSelfSigned({}, RealClock::Get()->Wall());
  const auto message = [](const std::string& certificate, const std::string& key_file) {
    TlsServerOptions options;
    options.certificate_file = certificate;
    options.key_file = key_file;
    return ServerTls::Make(options).status().message();
  };
  EXPECT_THAT(message(crt, directory->path() / "none"), HasSubstr("none"));
  EXPECT_THAT(message(file("bad", "x"), key), HasSubstr("bad: expected a certificate"));
  EXPECT_THAT(message(crt, file("bad", "x")), HasSubstr("bad: expected a private key"));
  EXPECT_THAT(message(crt, file("other", other->key)), HasSubstr("other: the key is not"));
  EXPECT_THAT(message(crt, ""), HasSubstr("needs its key"));
  EXPECT_FALSE(MakeSelfSigned({"a b"}, RealClock::Get()->Wall()).ok());
}

TEST(HttpServerTls, EndsPeersThatDoNotShakeHands) {
  auto directory = TempDir::Create();
  TestHttpServer test(SelfSignedIn(directory->path()));
  RawPeer silent(test.server->port());
  RawPeer plain(test.server->port());
  plain.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  plain.ReadToEnd();
  EXPECT_TRUE(plain.ended());
  ASSERT_TRUE(Eventually([&] { return test.server->stats().connections == 1; }));
  test.clock.Advance(std::chrono::seconds(11));
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_TRUE(silent.ended());
}

}  // namespace
}  // namespace shoal::net
