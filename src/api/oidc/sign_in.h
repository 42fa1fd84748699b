// Sign-in by an OpenID Connect provider: what is under way, and what it gives in the end, a token
// of this server. The device flow is for commands, the code flow for pages.
//
// Nothing is stored: a sign-in that a restart of the server interrupts begins again.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/oidc/oidc_provider.h"
#include "api/people/people.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace shoal::api {

struct StartedDevice {
  std::string handle;  // secret, of the one who asked
  DeviceGrant grant;
};

struct StartedCode {
  std::string url;      // where the browser goes
  std::string state;    // comes back with the browser
  std::string binding;  // secret of the page, needed to finish the sign-in
};

// The user that the claims of an ID token mean, by the configuration. PermissionDenied, with what
// is missing, if they mean none.
Result<ExternalUser> UserOfClaims(const OidcConfig& config, const json::object& claims);

// Thread-safe; blocks while the provider answers.
class SignIn {
 public:
  // At most: sign-ins under way, of all and of one address; requests to the provider at a time.
  static constexpr size_t kMost = 1000;
  static constexpr size_t kMostOfPeer = 20;
  static constexpr int kMostCalls = 2;

  // All pointers must outlive it.
  SignIn(OidcConfig config, People* people, const Clock* clock)
      : provider_(std::move(config), clock), people_(people), clock_(clock) {}

  const OidcConfig& config() const { return provider_.config(); }

  // ResourceExhausted if too many are under way; other errors are the provider's.
  Result<StartedDevice> BeginDevice(const std::string& peer);
  // FailedPrecondition while the user has not agreed, and when it is asked more often than
  // `interval` allows; NotFound for an unknown handle, which a finished or expired sign-in has,
  // too.
  Result<NewToken> FinishDevice(const std::string& handle, Duration* interval);

  // PermissionDenied for a redirect URI that the configuration does not have.
  Result<StartedCode> BeginCode(const std::string& peer, const std::string& redirect_uri);
  // Once: a second call with the state is NotFound, whatever the first gave.
  Result<NewToken> FinishCode(const std::string& state, const std::string& binding,
                              const std::string& code);

 private:
  struct Pending {
    std::string peer;
    TimePoint expires{};
    bool device = false;
    // Of the device flow.
    std::string device_code;
    Duration interval{};
    TimePoint next_try{};
    bool asking = false;
    // Of the code flow.
    std::string redirect_uri;
    std::string verifier;
    std::string nonce;
    std::string binding;
  };
  class Turn;

  Status Add(const std::string& key, Pending pending);
  Result<NewToken> Grant(const json::object& claims);

  OidcProvider provider_;
  People* const people_;
  const Clock* const clock_;
  Mutex mu_;
  std::map<std::string, Pending> pending_ GUARDED_BY(mu_);  // by a digest of handle or state
  int calls_ GUARDED_BY(mu_) = 0;
};

}  // namespace shoal::api
