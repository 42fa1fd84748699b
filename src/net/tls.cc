#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstring>

namespace shoal::net {
namespace {

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* one) const { kFree(one); }
};
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX, SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL, SSL_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

// The last error of OpenSSL on this thread; empties its queue.
std::string LastWords() {
  const unsigned long code = ERR_peek_last_error();  // NOLINT: OpenSSL's type
  ERR_clear_error();
  if (code == 0) return "no reason was given";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

Bio Reader(const std::string& text) {
  return Bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(std::min<size_t>(text.size(), INT_MAX))));
}

class TlsChannel final : public ByteChannel {
 public:
  TlsChannel(UniqueFd socket, Session session)
      : socket_(std::move(socket)), session_(std::move(session)) {}
  int fd() const override { return socket_.get(); }
  SSL* session() { return session_.get(); }

  Step Read(char* to, size_t size) override {
    ERR_clear_error();
    size_t got = 0;
    const int done = SSL_read_ex(session_.get(), to, size, &got);
    return done == 1 ? Step{.bytes = got} : After(done);
  }
  Step Write(std::string_view bytes) override {
    ERR_clear_error();
    size_t sent = 0;
    const int done = SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &sent);
    return done == 1 ? Step{.bytes = sent} : After(done);
  }
  bool HasPending() const override { return SSL_has_pending(session_.get()) == 1; }
  void EndWriting() override { SSL_shutdown(session_.get()); }
  void Cancel() override { ::shutdown(fd(), SHUT_RDWR); }

  Step After(int done) {
    const int error = errno;
    switch (SSL_get_error(session_.get(), done)) {
      case SSL_ERROR_WANT_READ:
        return {.wait_for = POLLIN};
      case SSL_ERROR_WANT_WRITE:
        return {.wait_for = POLLOUT};
      case SSL_ERROR_ZERO_RETURN:
        return {.end = true};
      case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        if (error == EPIPE || error == ECONNRESET || error == 0) return {.end = true};
        return {.error = Unavailable(std::string("the connection broke: ") + std::strerror(error))};
      default:
        return {.error = Unavailable("the connection broke: " + LastWords())};
    }
  }

 private:
  UniqueFd socket_;
  Session session_;
};

class OpenSslContext final : public TlsContext {
 public:
  explicit OpenSslContext(TlsOptions options)
      : options_(std::move(options)), context_(SSL_CTX_new(TLS_client_method())) {}

  Status Prepare() {
    if (context_ == nullptr) return Internal("no TLS: " + LastWords());
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_mode(context_.get(),
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context_.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
    const bool verify = options_.verify && options_.pinned_sha256.empty();
    SSL_CTX_set_verify(context_.get(), verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    for (char& c : options_.pinned_sha256)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!options_.pinned_sha256.empty() &&
        (options_.pinned_sha256.size() != 64 ||
         options_.pinned_sha256.find_first_not_of("0123456789abcdef") != std::string::npos))
      return InvalidArgument("the fingerprint of a certificate has 64 hexadecimal digits");
    if (options_.authorities.empty()) {
      SSL_CTX_set_default_verify_paths(context_.get());
    } else {
      TRY(TakeAuthorities());
    }
    return options_.certificate.empty() ? Status::Ok() : TakeOwn();
  }

  Result<std::unique_ptr<ByteChannel>> Connect(UniqueFd socket, const std::string& host,
                                               Deadline deadline) const override {
    Session session(SSL_new(context_.get()));
    if (session == nullptr) return Internal("no TLS: " + LastWords());
    const std::string& name = options_.server_name.empty() ? host : options_.server_name;
    TRY(Expect(session.get(), name));
    SSL_set_fd(session.get(), socket.get());
    auto channel = std::make_unique<TlsChannel>(std::move(socket), std::move(session));
    for (;;) {
      ERR_clear_error();
      const int done = SSL_connect(channel->session());
      if (done == 1) {
        TRY(CheckPin(channel->session(), name));
        return std::unique_ptr<ByteChannel>(std::move(channel));
      }
      TRY(Explain(channel->session(), name));
      const ByteChannel::Step step = channel->After(done);
      TRY(step.error);
      if (step.end) return Unavailable("the connection was closed before it was encrypted");
      TRY(AwaitFd(channel->fd(), step.wait_for, deadline));
    }
  }

 private:
  Status TakeAuthorities() {
    X509_STORE* const store = SSL_CTX_get_cert_store(context_.get());
    const Bio reader = Reader(options_.authorities);
    int taken = 0;
    for (;;) {
      const Certificate one(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
      if (one == nullptr) break;
      taken += X509_STORE_add_cert(store, one.get()) == 1 ? 1 : 0;
    }
    ERR_clear_error();  // the end of the text
    if (taken == 0) return InvalidArgument("the authorities' certificates are no PEM");
    return Status::Ok();
  }

  Status TakeOwn() {
    const Bio certificates = Reader(options_.certificate);
    const Certificate own(PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr));
    if (own == nullptr || SSL_CTX_use_certificate(context_.get(), own.get()) != 1)
      return InvalidArgument("the client's certificate is no PEM: " + LastWords());
    for (;;) {
      const Certificate next(PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr));
      if (next == nullptr) break;
      SSL_CTX_add1_chain_cert(context_.get(), next.get());
    }
    const Bio keys = Reader(options_.key);
    // No passphrase: OpenSSL must not ask for one on the terminal.
    const Key key(PEM_read_bio_PrivateKey(
        keys.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
    if (key == nullptr || SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1)
      return InvalidArgument(
          "the client's key is no PEM without a passphrase, or of another "
          "certificate: " +
          LastWords());
    ERR_clear_error();
    return Status::Ok();
  }

  Status Expect(SSL* session, const std::string& name) const {
    in6_addr number{};
    const bool numeric = ::inet_pton(AF_INET, name.c_str(), &number) == 1 ||
                         ::inet_pton(AF_INET6, name.c_str(), &number) == 1;
    X509_VERIFY_PARAM* const verify = SSL_get0_param(session);
    const bool fine = numeric ? X509_VERIFY_PARAM_set1_ip_asc(verify, name.c_str()) == 1
                              : SSL_set_tlsext_host_name(session, name.c_str()) == 1 &&
                                    X509_VERIFY_PARAM_set1_host(verify, name.c_str(), 0) == 1;
    if (!fine) return InvalidArgument("\"" + name + "\" cannot be the name of a server");
    return Status::Ok();
  }

  Status CheckPin(SSL* session, const std::string& name) const {
    if (options_.pinned_sha256.empty()) return Status::Ok();
    const Certificate shown(SSL_get1_peer_certificate(session));
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (shown == nullptr || X509_digest(shown.get(), EVP_sha256(), digest, &size) != 1)
      return Unauthenticated(name + " shows no certificate");
    constexpr char kHex[] = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < size; ++i) text += {kHex[digest[i] >> 4], kHex[digest[i] & 15]};
    if (text == options_.pinned_sha256) return Status::Ok();
    return Unauthenticated("the certificate of " + name + " has the fingerprint " + text +
                           ", expected " + options_.pinned_sha256 +
                           "; if the server was given another certificate, log in again");
  }

  Status Explain(SSL* session, const std::string& name) const {
    const long result = SSL_get_verify_result(session);  // NOLINT: OpenSSL's type
    if (result == X509_V_OK || !options_.verify || !options_.pinned_sha256.empty())
      return Status::Ok();
    std::string text =
        "the certificate of " + name + " is not accepted: " + X509_verify_cert_error_string(result);
    if (result == X509_V_ERR_CERT_NOT_YET_VALID || result == X509_V_ERR_CERT_HAS_EXPIRED)
      text += "; is this machine's clock right?";
    return Unauthenticated(text);
  }

  TlsOptions options_;
  Context context_;
};

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::Make(const TlsOptions& options) {
  auto context = std::make_shared<OpenSslContext>(options);
  TRY(context->Prepare());
  return std::shared_ptr<const TlsContext>(std::move(context));
}

}  // namespace shoal::net
