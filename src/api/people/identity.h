// Records of people: users (service accounts are users), teams and tokens, as they are stored
// (controller/store/records.h) and as the API returns them.
//
// Plain data. ToJson is the stored form; ToPublicJson leaves out what only the server needs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/people/role.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"

namespace shoal::api {

inline constexpr size_t kMaxNameLength = 64;

// Checks the name of a user or a team: 1 to 64 of a-z, 0-9, '-', '_', '.', the first a letter or a
// digit. `what`: "user". InvalidArgument.
Status CheckName(std::string_view what, std::string_view name);

struct User {
  std::string name;
  bool administrator = false;
  bool service = false;  // a program, not a person
  bool disabled = false;
  std::map<std::string, Role> teams;  // team → role in it
  WallTime created{};
  // "ISSUER SUBJECT" of the provider that signs the user in; empty: it has tokens only.
  std::string subject;
};

struct Team {
  std::string name;
  WallTime created{};
};

struct Token {
  std::string id;      // 12 hex digits, not secret
  std::string user;    // whose rights it carries
  std::string name;    // given by the user, "laptop"
  std::string digest;  // SHA-256 of the secret, in hex
  ScopeSet scopes;
  WallTime created{};
  std::optional<WallTime> expires;
  std::optional<WallTime> last_used;  // to the minute
  bool sign_in = false;               // of a sign-in, or made by such a token
};

json::object ToJson(const User& user);
Result<User> ParseUser(const json::object& object);
json::object ToJson(const Team& team);
Result<Team> ParseTeam(const json::object& object);
json::object ToJson(const Token& token);
Result<Token> ParseToken(const json::object& object);
// Without the digest.
json::object ToPublicJson(const Token& token);

// The text that a client sends, "shoal_ID_SECRET", taken apart.
struct TokenText {
  std::string id;
  std::string secret;
};
// A new one: 48 random bits as the id, 256 as the secret.
TokenText NewTokenText();
std::string TextOf(const TokenText& token);
// nullopt for anything that is not of this form. O(1): longer texts are not read.
std::optional<TokenText> ParseTokenText(std::string_view text);

// The times of records: microseconds since the epoch.
int64_t MicrosOf(WallTime time);
WallTime WallOf(int64_t micros);

}  // namespace shoal::api
