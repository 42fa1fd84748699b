// A self-signed certificate for a server that was given none. OpenSSL is behind it.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace shoal::net {

struct SelfSigned {
  std::string certificate;  // PEM
  std::string key;          // PEM, without a passphrase
};

// EC P-256, valid for ten years from a day before `now`, for these host names and numeric
// addresses. InvalidArgument for a name that cannot be in a certificate. Takes some milliseconds.
Result<SelfSigned> MakeSelfSigned(const std::vector<std::string>& names, WallTime now);

}  // namespace shoal::net
