#include "api/people/identity.h"

#include <algorithm>
#include <utility>

#include "base/id.h"

namespace shoal::api {
namespace {

constexpr size_t kIdBytes = 6;
constexpr size_t kSecretBytes = 32;
constexpr std::string_view kTokenPrefix = "shoal_";

bool IsLowerHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

void PutTime(std::string_view field, const std::optional<WallTime>& time, json::object* object) {
  if (time) (*object)[field] = MicrosOf(*time);
}

std::optional<WallTime> TimeOr(const json::object& object, std::string_view field) {
  const json::value* const value = object.if_contains(field);
  if (value == nullptr || !value->is_int64()) return std::nullopt;
  return WallOf(value->get_int64());
}

}  // namespace

int64_t MicrosOf(WallTime time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

WallTime WallOf(int64_t micros) {
  return WallTime(
      std::chrono::duration_cast<WallTime::duration>(std::chrono::microseconds(micros)));
}

Status CheckName(std::string_view what, std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  const bool good = !name.empty() && name.size() <= kMaxNameLength &&
                    std::ranges::all_of(name, plain) && name.front() != '-' &&
                    name.front() != '_' && name.front() != '.';
  if (good) return Status::Ok();
  return InvalidArgument("the name of a " + std::string(what) +
                         " has 1 to 64 characters of a-z, 0-9, '-', '_' and '.', and begins with a "
                         "letter or a digit");
}

json::object ToJson(const User& user) {
  json::object teams;
  for (const auto& [team, role] : user.teams) teams[team] = NameOf(role);
  json::object object{{"name", user.name},         {"administrator", user.administrator},
                      {"service", user.service},   {"disabled", user.disabled},
                      {"teams", std::move(teams)}, {"created", MicrosOf(user.created)}};
  if (!user.subject.empty()) object["subject"] = user.subject;
  return object;
}

Result<User> ParseUser(const json::object& object) {
  User user;
  TRY_ASSIGN(user.name, GetString(object, "name"));
  user.administrator = GetBoolOr(object, "administrator", false);
  user.service = GetBoolOr(object, "service", false);
  user.disabled = GetBoolOr(object, "disabled", false);
  user.created = WallOf(GetIntOr(object, "created", 0));
  user.subject = GetStringOr(object, "subject", "");
  const json::value* const teams = object.if_contains("teams");
  if (teams == nullptr || !teams->is_object()) return user;
  for (const auto& field : teams->get_object()) {
    const std::string_view name =
        field.value().is_string() ? std::string_view(field.value().get_string()) : "";
    const std::optional<Role> role = ParseTeamRole(name);
    if (!role)
      return InvalidArgument("teams." + std::string(field.key()) + ": got " + std::string(name) +
                             ", expected viewer, member or operator");
    user.teams[std::string(field.key())] = *role;
  }
  return user;
}

json::object ToJson(const Team& team) {
  return {{"name", team.name}, {"created", MicrosOf(team.created)}};
}

Result<Team> ParseTeam(const json::object& object) {
  Team team;
  TRY_ASSIGN(team.name, GetString(object, "name"));
  team.created = WallOf(GetIntOr(object, "created", 0));
  return team;
}

json::object ToPublicJson(const Token& token) {
  json::array scopes;
  for (const std::string& name : token.scopes.names()) scopes.emplace_back(name);
  json::object object{{"id", token.id},
                      {"user", token.user},
                      {"name", token.name},
                      {"scopes", std::move(scopes)},
                      {"created", MicrosOf(token.created)}};
  PutTime("expires", token.expires, &object);
  PutTime("last_used", token.last_used, &object);
  return object;
}

json::object ToJson(const Token& token) {
  json::object object = ToPublicJson(token);
  object["digest"] = token.digest;
  if (token.sign_in) object["sign_in"] = true;
  return object;
}

Result<Token> ParseToken(const json::object& object) {
  Token token;
  TRY_ASSIGN(token.id, GetString(object, "id"));
  TRY_ASSIGN(token.user, GetString(object, "user"));
  TRY_ASSIGN(token.digest, GetString(object, "digest"));
  token.name = GetStringOr(object, "name", "");
  token.created = WallOf(GetIntOr(object, "created", 0));
  token.expires = TimeOr(object, "expires");
  token.last_used = TimeOr(object, "last_used");
  token.sign_in = GetBoolOr(object, "sign_in", false);
  const json::value* const scopes = object.if_contains("scopes");
  if (scopes == nullptr || !scopes->is_array())
    return InvalidArgument("a token without scopes, expected a list");
  for (const json::value& one : scopes->get_array()) {
    const auto scope = one.is_string() ? ParseScope(one.get_string()) : std::nullopt;
    if (scope) token.scopes.Add(*scope);  // one of a later version gives nothing here
  }
  return token;
}

TokenText NewTokenText() { return {RandomHex(kIdBytes), RandomHex(kSecretBytes)}; }

std::string TextOf(const TokenText& token) {
  return std::string(kTokenPrefix) + token.id + "_" + token.secret;
}

std::optional<TokenText> ParseTokenText(std::string_view text) {
  constexpr size_t kLength = kTokenPrefix.size() + kIdBytes * 2 + 1 + kSecretBytes * 2;
  if (text.size() != kLength || !text.starts_with(kTokenPrefix)) return std::nullopt;
  const std::string_view id = text.substr(kTokenPrefix.size(), kIdBytes * 2);
  const std::string_view secret = text.substr(kLength - kSecretBytes * 2);
  const bool separated = text[kTokenPrefix.size() + kIdBytes * 2] == '_';
  if (!separated || !IsLowerHex(id) || !IsLowerHex(secret)) return std::nullopt;
  return TokenText{std::string(id), std::string(secret)};
}

}  // namespace shoal::api
