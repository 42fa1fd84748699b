// TLS over a connected socket, as a client: certificates are checked against given authorities, a
// certificate of our own is shown where there is one. OpenSSL is behind it.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "net/byte_channel.h"

namespace shoal::net {

struct TlsOptions {
  std::string authorities;  // PEM; empty: those of the machine
  std::string certificate;  // PEM, ours, with its chain; empty: none
  std::string key;          // PEM, of `certificate`
  std::string server_name;  // that the other side must prove; empty: the host that is dialled
  bool verify = true;       // false: any certificate is accepted
  // SHA-256 of the server's certificate (DER), 64 hex digits: it alone is accepted, whatever its
  // name, its issuer and its dates are. Empty: the three above count.
  std::string pinned_sha256;
};

// Thread-safe, reusable; one for many connections.
class TlsContext {
 public:
  // InvalidArgument says which of the PEM texts is none.
  static Result<std::shared_ptr<const TlsContext>> Make(const TlsOptions& options);
  virtual ~TlsContext() = default;
  // Shakes hands. Unauthenticated with the reason if the other side's certificate is not good
  // (not of the authorities, another name, not valid now); else Unavailable, DeadlineExceeded.
  virtual Result<std::unique_ptr<ByteChannel>> Connect(UniqueFd socket, const std::string& host,
                                                       Deadline deadline) const = 0;
};

}  // namespace shoal::net
