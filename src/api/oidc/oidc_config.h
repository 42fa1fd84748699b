// The OpenID Connect provider that signs in the people of a server, from its configuration file
// (docs/oidc.md).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "api/people/role.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"

namespace shoal::api {

// What the members of one of the provider's groups are in a team.
struct TeamGrant {
  std::string team;
  Role role = Role::kMember;
};

// Plain value.
struct OidcConfig {
  std::string issuer;     // as in its tokens: "https://id.example/realms/ml"
  std::string client_id;  // of this server at the provider
  std::string client_secret;
  std::string authorities;  // PEM of the provider's TLS certificate; empty: the machine's
  std::vector<std::string> scopes = {"openid", "profile", "email"};
  std::string user_claim = "preferred_username";
  std::string domain;  // cut from names that end in "@DOMAIN"; empty: such names are refused
  std::string groups_claim = "groups";
  std::map<std::string, std::vector<TeamGrant>> teams;  // by group; "*": everybody
  std::vector<std::string> administrators;              // groups
  std::vector<std::string> redirect_uris;      // of pages that may ask for a sign-in by code
  Duration lifetime = std::chrono::hours(12);  // of the tokens that a sign-in gives
};

// InvalidArgument names the field. `client_secret_file` and `authorities_file` are read, relative
// to the file's directory.
Result<OidcConfig> ReadOidcConfig(const std::filesystem::path& file);

// "https://HOST[:PORT]" and "/PATH?QUERY" of a URL. InvalidArgument for one that is not https,
// unless its host is a numeric address of the loopback.
struct SplitUrl {
  std::string origin;
  std::string target;
};
Result<SplitUrl> SplitProviderUrl(const std::string& url);

}  // namespace shoal::api
