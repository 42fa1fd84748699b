// The certificate and key of the HTTP server: from files, which may change while it runs, or
// self-signed. OpenSSL is behind it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/http/http_server.h"

namespace boost::asio::ssl {
class context;
}

namespace shoal::net {

// Thread-safe.
class ServerTls {
 public:
  // Loads the files, or makes the self-signed ones. InvalidArgument says which file is bad and why.
  static Result<std::unique_ptr<ServerTls>> Make(const TlsServerOptions& options);
  virtual ~ServerTls() = default;
  // Of the certificate that new connections are shown (SHA-256 of its DER form, 64 hex digits).
  virtual std::string fingerprint() const = 0;
  // Loads the files again if one of them has changed. Files that do not fit each other (yet) leave
  // what is in use; the log says so once.
  virtual void Refresh() = 0;
  // For server_transport.cc. For new connections; those that are open keep theirs.
  virtual std::shared_ptr<boost::asio::ssl::context> context() const = 0;
};

// Of a certificate in PEM: SHA-256 of its DER form, 64 lower-case hex digits. InvalidArgument.
Result<std::string> CertificateFingerprint(const std::string& pem);

}  // namespace shoal::net
