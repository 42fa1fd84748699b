// The HTTP client over real loopback sockets, with and without TLS, hostile servers included.
#include "net/http_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "base/file.h"

namespace shoal::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kLong{20'000};

// A certificate that signs itself, for 127.0.0.1, and its key.
struct Own {
  EVP_PKEY* key = EVP_RSA_gen(2048);
  X509* certificate = X509_new();
  std::string pem;
  std::string key_pem;

  explicit Own(long from = 0, const char* address = "IP:127.0.0.1") {  // NOLINT: OpenSSL's type
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), from);
    X509_gmtime_adj(X509_getm_notAfter(certificate), from + 3600);
    X509_set_version(certificate, 2);
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_EXTENSION* extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, address);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(certificate, key, EVP_sha256());
    pem = Text([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
    key_pem = Text([&](BIO* bio) {
      PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
  }
  ~Own() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  static std::string Text(const std::function<void(BIO*)>& write) {
    BIO* bio = BIO_new(BIO_s_mem());
    write(bio);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);  // NOLINT: OpenSSL's type
    std::string text(data, static_cast<size_t>(size));
    BIO_free(bio);
    return text;
  }
};

// Answers each connection with `reply`, once it has read a request's head.
class Server {
 public:
  explicit Server(std::string reply, const Own* own = nullptr, bool ask_certificate = false)
      : reply_(std::move(reply)) {
    if (own != nullptr) {
      context_ = SSL_CTX_new(TLS_server_method());
      SSL_CTX_use_certificate(context_, own->certificate);
      SSL_CTX_use_PrivateKey(context_, own->key);
      if (ask_certificate) {
        SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                           [](int, X509_STORE_CTX*) { return 1; });
      }
    }
    listener_.Reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    SSL_CTX_free(context_);
  }
  std::string url() const {
    return (context_ == nullptr ? "http://127.0.0.1:" : "https://127.0.0.1:") +
           std::to_string(port_);
  }
  uint16_t port() const { return port_; }
  const std::string& asked() const { return asked_; }

 private:
  void Serve() {
    for (;;) {
      UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
      if (!fd.valid()) return;
      SSL* ssl = context_ == nullptr ? nullptr : SSL_new(context_);
      if (ssl != nullptr) SSL_set_fd(ssl, fd.get());
      if (ssl == nullptr || SSL_accept(ssl) == 1) Answer(fd.get(), ssl);
      if (ssl != nullptr) SSL_shutdown(ssl);
      SSL_free(ssl);
    }
  }
  void Answer(int fd, SSL* ssl) {
    asked_.clear();
    while (asked_.find("\r\n\r\n") == std::string::npos) {
      char block[4096];
      const ssize_t got =
          ssl == nullptr ? ::recv(fd, block, sizeof block, 0) : SSL_read(ssl, block, sizeof block);
      if (got <= 0) return;
      asked_.append(block, static_cast<size_t>(got));
    }
    if (ssl == nullptr) {
      (void)!::send(fd, reply_.data(), reply_.size(), MSG_NOSIGNAL);
    } else {
      SSL_write(ssl, reply_.data(), static_cast<int>(reply_.size()));
    }
  }

  const std::string reply_;
  SSL_CTX* context_ = nullptr;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::string asked_;
  std::thread thread_;
};

constexpr const char* kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-One: 1\r\n\r\nhello";

Result<HttpReply> Get(const std::string& url, const TlsOptions& tls = {},
                      const std::string& proxy = "", size_t most = kMaxHttpBody) {
  TRY_ASSIGN(const auto client, HttpClient::Make(url, tls, proxy));
  HttpRequest request;
  request.target = "/x";
  return client->Call(request, kLong, most);
}

TEST(HttpClient, OverTcp) {
  Server server(kHello);
  const auto reply = Get(server.url());
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "hello");
  EXPECT_EQ(reply->Header("x-one"), "1");
  EXPECT_THAT(server.asked(), HasSubstr("GET /x HTTP/1.1\r\nHost: 127.0.0.1:"));
}

TEST(HttpClient, OverTlsWithTheRightAuthority) {
  const Own own;
  Server server(kHello, &own);
  TlsOptions tls;
  tls.authorities = own.pem;
  const auto reply = Get(server.url(), tls);
  ASSERT_TRUE(reply.ok()) << reply.status().message();
  EXPECT_EQ(reply->body, "hello");
}

TEST(HttpClient, ACertificateThatIsNotGoodIsRefusedWithTheReason) {
  const Own own;
  const Own other;
  Server server(kHello, &own);
  TlsOptions tls;
  tls.authorities = other.pem;
  auto reply = Get(server.url(), tls);
  EXPECT_EQ(reply.status().code(), Code::kUnauthenticated) << reply.status().message();
  tls.authorities = own.pem;
  tls.server_name = "another.example";
  reply = Get(server.url(), tls);
  EXPECT_EQ(reply.status().code(), Code::kUnauthenticated) << reply.status().message();
  EXPECT_THAT(reply.status().message(), HasSubstr("another.example"));
  tls.verify = false;
  EXPECT_TRUE(Get(server.url(), tls).ok());
  const Own early(3000);
  Server ahead(kHello, &early);
  TlsOptions trusts;
  trusts.authorities = early.pem;
  EXPECT_THAT(Get(ahead.url(), trusts).status().message(), HasSubstr("clock"));
}

TEST(HttpClient, ShowsItsOwnCertificate) {
  const Own own;
  Server server(kHello, &own, true);
  TlsOptions tls;
  tls.authorities = own.pem;
  EXPECT_FALSE(Get(server.url(), tls).ok());
  tls.certificate = own.pem;
  tls.key = own.key_pem;
  EXPECT_TRUE(Get(server.url(), tls).ok());
  tls.key = "nonsense";
  EXPECT_EQ(Get(server.url(), tls).status().code(), Code::kInvalidArgument);
}

TEST(HttpClient, HostileServers) {
  Server garbage("garbage\r\n\r\n\r\n");
  EXPECT_EQ(Get(garbage.url()).status().code(), Code::kDataLoss);
  Server cut("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello");
  EXPECT_EQ(Get(cut.url()).status().code(), Code::kUnavailable);
  Server silent("");
  EXPECT_EQ(Get(silent.url()).status().code(), Code::kUnavailable);
  Server big("HTTP/1.1 200 OK\r\n\r\n" + std::string(1 << 20, 'x'));
  EXPECT_EQ(Get(big.url(), {}, "", 1000).status().code(), Code::kResourceExhausted);
  // It waits for the end of a head that never comes.
  Server plain(kHello);
  const auto client = HttpClient::Make("https://127.0.0.1:" + std::to_string(plain.port()), {});
  ASSERT_TRUE(client.ok());
  EXPECT_FALSE((*client)->Call({}, milliseconds(200)).ok());
}

TEST(HttpClient, NobodyThere) {
  uint16_t port = 0;
  { port = Server("").port(); }
  const auto reply = Get("http://127.0.0.1:" + std::to_string(port));
  EXPECT_EQ(reply.status().code(), Code::kUnavailable);
  EXPECT_THAT(reply.status().message(), HasSubstr("no server listens"));
}

TEST(HttpClient, ByAProxyThatRefuses) {
  Server proxy("HTTP/1.1 403 Forbidden\r\n\r\n");
  const auto reply = Get("https://far.invalid:6443", {}, proxy.url());
  EXPECT_THAT(reply.status().message(), HasSubstr("the proxy refuses: HTTP/1.1 403"));
  EXPECT_THAT(proxy.asked(), HasSubstr("CONNECT far.invalid:6443 HTTP/1.1"));
}

TEST(HttpClient, Urls) {
  const auto url = ParseUrl("https://u:p@[::1]:6443/k8s/clusters/c-1/");
  ASSERT_TRUE(url.ok());
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 6443);
  EXPECT_EQ(url->prefix, "/k8s/clusters/c-1");
  EXPECT_EQ(url->user_info, "u:p");
  EXPECT_EQ(ParseUrl("https://h")->port, 443);
  for (const char* wrong : {"", "h:1", "ftp://h", "https://", "https://h:x", "https://h/a b"})
    EXPECT_FALSE(ParseUrl(wrong).ok()) << wrong;
}

TEST(HttpClient, UpgradeGivesTheConnection) {
  Server server("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nearly");
  const auto client = HttpClient::Make(server.url(), {});
  ASSERT_TRUE(client.ok());
  HttpReply refusal;
  auto upgraded = (*client)->Upgrade({}, "websocket", kLong, &refusal);
  ASSERT_TRUE(upgraded.ok()) << upgraded.status().message();
  std::string said = upgraded->early;
  while (said.size() < 5) {
    char block[16];
    const auto got = ReadSome(upgraded->channel.get(), block, sizeof block,
                              std::chrono::steady_clock::now() + kLong);
    ASSERT_TRUE(got.ok() && *got > 0);
    said.append(block, *got);
  }
  EXPECT_EQ(said, "early");
}

}  // namespace
}  // namespace shoal::net
