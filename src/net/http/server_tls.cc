#include "net/http/server_tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <boost/asio/ssl/context.hpp>
#include <climits>
#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "net/http/self_signed.h"

namespace shoal::net {
namespace {

namespace ssl = boost::asio::ssl;

constexpr size_t kMaxPem = 1 << 20;

template <typename T, void (*kFree)(T*)>
struct Freed {
  void operator()(T* one) const { kFree(one); }
};
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;

Bio Reader(const std::string& text) {
  return Bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(std::min<size_t>(text.size(), INT_MAX))));
}

Certificate NextCertificate(BIO* bio) {
  Certificate one(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
  ERR_clear_error();
  return one;
}

// What tells that a file is another one: replaced or written.
struct FileStamp {
  ino_t inode = 0;
  off_t size = -1;
  timespec written{};
  bool operator==(const FileStamp& other) const {
    return inode == other.inode && size == other.size && written.tv_sec == other.written.tv_sec &&
           written.tv_nsec == other.written.tv_nsec;
  }
};

FileStamp StampOf(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return {};
  return {file.st_ino, file.st_size, file.st_mtim};
}

// Answers ALPN with http/1.1; a client that does not offer it gets it anyway.
int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned offered_size, void*) {
  // OpenSSL keeps a pointer into it.
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kOurs, sizeof kOurs - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Status UseCertificate(SSL_CTX* context, const std::string& pem) {
  const Bio reader = Reader(pem);
  const Certificate own = NextCertificate(reader.get());
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1)
    return InvalidArgument("expected a certificate in PEM (-----BEGIN CERTIFICATE-----)");
  for (Certificate next = NextCertificate(reader.get()); next != nullptr;
       next = NextCertificate(reader.get()))
    SSL_CTX_add1_chain_cert(context, next.get());
  return Status::Ok();
}

Status UseKey(SSL_CTX* context, const std::string& pem) {
  const Bio reader = Reader(pem);
  // No passphrase: OpenSSL must not ask for one on the terminal.
  const Key key(PEM_read_bio_PrivateKey(
      reader.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
  ERR_clear_error();
  if (key == nullptr) return InvalidArgument("expected a private key in PEM without a passphrase");
  const bool fits =
      SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1;
  ERR_clear_error();
  if (!fits) return InvalidArgument("the key is not the certificate's");
  return Status::Ok();
}

Result<std::shared_ptr<ssl::context>> LoadContext(const std::string& certificate_file,
                                                  const std::string& key_file,
                                                  std::string* fingerprint) {
  TRY_ASSIGN(const std::string certificate, ReadFile(certificate_file, kMaxPem));
  TRY_ASSIGN(const std::string key, ReadFile(key_file, kMaxPem));
  std::shared_ptr<ssl::context> context;
  try {
    context = std::make_shared<ssl::context>(ssl::context::tls_server);
  } catch (const boost::system::system_error& failed) {
    return Internal(std::string("no TLS: ") + failed.what());
  }
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(
      native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_alpn_select_cb(native, ChooseProtocol, nullptr);
  const Status certificate_used = UseCertificate(native, certificate);
  if (!certificate_used.ok()) return certificate_used.With(certificate_file);
  const Status key_used = UseKey(native, key);
  if (!key_used.ok()) return key_used.With(key_file);
  TRY_ASSIGN(*fingerprint, CertificateFingerprint(certificate));
  return context;
}

class FileTls final : public ServerTls {
 public:
  FileTls(std::string certificate_file, std::string key_file)
      : certificate_file_(std::move(certificate_file)), key_file_(std::move(key_file)) {}

  Status Load() {
    const FileStamp certificate_stamp = StampOf(certificate_file_);
    const FileStamp key_stamp = StampOf(key_file_);
    std::string fingerprint;
    auto context = LoadContext(certificate_file_, key_file_, &fingerprint);
    const MutexLock lock(mu_);
    certificate_stamp_ = certificate_stamp;
    key_stamp_ = key_stamp;
    TRY(context.status());
    context_ = *context;
    fingerprint_ = fingerprint;
    return Status::Ok();
  }

  std::string fingerprint() const override {
    const MutexLock lock(mu_);
    return fingerprint_;
  }

  std::shared_ptr<ssl::context> context() const override {
    const MutexLock lock(mu_);
    return context_;
  }

  void Refresh() override {
    const FileStamp certificate_stamp = StampOf(certificate_file_);
    const FileStamp key_stamp = StampOf(key_file_);
    {
      const MutexLock lock(mu_);
      if (certificate_stamp == certificate_stamp_ && key_stamp == key_stamp_) return;
    }
    const Status loaded = Load();
    if (loaded.ok()) {
      LogInfo("the certificate {} was loaded again", certificate_file_);
    } else {
      LogWarning("the changed certificate is not used, the one before stays: {}", loaded.message());
    }
  }

 private:
  const std::string certificate_file_;
  const std::string key_file_;
  mutable Mutex mu_;
  std::shared_ptr<ssl::context> context_;
  std::string fingerprint_;
  FileStamp certificate_stamp_;
  FileStamp key_stamp_;
};

// Makes server.key and server.crt unless both are there.
Status MakeFiles(const TlsServerOptions& options, const std::filesystem::path& certificate,
                 const std::filesystem::path& key) {
  std::error_code ignored;
  if (std::filesystem::exists(certificate, ignored) && std::filesystem::exists(key, ignored))
    return Status::Ok();
  std::vector<std::string> names = {"localhost", "127.0.0.1", "::1"};
  names.insert(names.end(), options.names.begin(), options.names.end());
  TRY_ASSIGN(const SelfSigned made, MakeSelfSigned(names, RealClock::Get()->Wall()));
  TRY(MakeDirectories(options.self_signed_directory, 0700));
  TRY(WriteFileAtomically(key, made.key, 0600));
  return WriteFileAtomically(certificate, made.certificate, 0644);
}

}  // namespace

Result<std::unique_ptr<ServerTls>> ServerTls::Make(const TlsServerOptions& options) {
  std::string certificate = options.certificate_file;
  std::string key = options.key_file;
  if (certificate.empty() != key.empty())
    return InvalidArgument("a certificate needs its key and a key its certificate; one is missing");
  if (certificate.empty()) {
    const std::filesystem::path directory(options.self_signed_directory);
    certificate = directory / "server.crt";
    key = directory / "server.key";
    TRY(MakeFiles(options, certificate, key));
  }
  auto tls = std::make_unique<FileTls>(certificate, key);
  TRY(tls->Load());
  return std::unique_ptr<ServerTls>(std::move(tls));
}

Result<std::string> CertificateFingerprint(const std::string& pem) {
  const Bio reader = Reader(pem);
  const Certificate certificate = NextCertificate(reader.get());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (certificate == nullptr || X509_digest(certificate.get(), EVP_sha256(), digest, &size) != 1)
    return InvalidArgument("expected a certificate in PEM (-----BEGIN CERTIFICATE-----)");
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += {kHex[digest[i] >> 4], kHex[digest[i] & 15]};
  return text;
}

}  // namespace shoal::net
