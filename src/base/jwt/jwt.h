// JSON Web Tokens of a foreign issuer (RFC 7519, 7515), signed with RS256 or ES256 (RFC 7518)
// and the public keys of a JWK set (RFC 7517). Only checks signatures: what the claims mean is the
// caller's business.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal {

inline constexpr size_t kMaxJwtBytes = size_t{64} << 10;

// The public keys of an issuer. Copyable; thread-safe.
class JwkSet {
 public:
  JwkSet() = default;
  // RSA keys of at least 2048 bits and EC keys on P-256, for signatures; others, at most 100, are
  // passed over. InvalidArgument for a text that is not a JWK set, or without a usable key.
  static Result<JwkSet> Parse(std::string_view text);

  size_t size() const { return keys_.size(); }

 private:
  friend Result<json::object> VerifyJwt(const JwkSet& keys, std::string_view token);
  struct Key;
  std::vector<std::shared_ptr<const Key>> keys_;
};

// The claims of a token that one of the keys has signed: that of its `kid`, or the only one of its
// algorithm if it has none. The algorithm is the key's own: a token cannot choose another, nor
// "none". NotFound if no key has the `kid` (the issuer may have a new one), Unauthenticated, with
// the reason, for everything else.
Result<json::object> VerifyJwt(const JwkSet& keys, std::string_view token);

}  // namespace shoal
