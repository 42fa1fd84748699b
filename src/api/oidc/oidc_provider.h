// Requests to an OpenID Connect provider, and the checks of what it answers: discovery (OpenID
// Connect Discovery 1.0), device authorization (RFC 8628), authorization code with PKCE (RFC 7636),
// ID tokens (OpenID Connect Core 1.0, section 3.1.3.7).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/oidc/oidc_config.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/jwt/jwt.h"
#include "base/mutex.h"
#include "base/status.h"

namespace shoal::api {

// The answer to a device authorization request.
struct DeviceGrant {
  std::string device_code;
  std::string user_code;
  std::string verification_uri;
  std::string complete_uri;  // with the code; may be empty
  Duration expires{};
  Duration interval{};
};

// What an ID token must prove besides its signature.
struct IdTokenRules {
  std::string issuer;
  std::string client_id;
  std::optional<std::string> nonce;  // none: the flow has none
};

// Unauthenticated with the claim that is wrong. Clocks may differ by a minute.
Status CheckIdToken(const json::object& claims, const IdTokenRules& rules, WallTime now);

// Thread-safe; blocks, at most 10 s in one request. Remembers the provider's configuration and keys
// for an hour, and asks for the keys again, at most once a minute, when a token names another.
class OidcProvider {
 public:
  // `clock` must outlive it.
  OidcProvider(OidcConfig config, const Clock* clock) : config_(std::move(config)), clock_(clock) {}

  const OidcConfig& config() const { return config_; }

  // Unimplemented if the provider has no such endpoint.
  Result<DeviceGrant> BeginDevice();
  // The checked claims once the user has agreed. FailedPrecondition while it has not,
  // ResourceExhausted if it is asked too often, PermissionDenied if the user refused,
  // DeadlineExceeded when the code has expired.
  Result<json::object> FinishDevice(const std::string& device_code);

  // Where the user's browser goes.
  Result<std::string> AuthorizationUrl(const std::string& redirect_uri, const std::string& state,
                                       const std::string& nonce, const std::string& challenge);
  // The checked claims for the code with which the browser came back.
  Result<json::object> FinishCode(const std::string& code, const std::string& redirect_uri,
                                  const std::string& verifier, const std::string& nonce);

 private:
  struct Metadata {
    std::string authorization;
    std::string token;
    std::string device;
    std::string keys;
  };
  using Form = std::vector<std::pair<std::string, std::string>>;

  Result<json::object> Call(const std::string& url, const Form* form, int* status) const;
  Result<Metadata> Discover();
  Result<JwkSet> Keys(bool again);
  Result<json::object> AskForToken(Form form, const std::optional<std::string>& nonce);
  Result<json::object> CheckToken(const json::object& reply,
                                  const std::optional<std::string>& nonce);

  const OidcConfig config_;
  const Clock* const clock_;
  Mutex mu_;
  std::optional<Metadata> metadata_ GUARDED_BY(mu_);  // as are the rest
  TimePoint discovered_{};
  std::optional<JwkSet> keys_;
  TimePoint fetched_{};
};

}  // namespace shoal::api
