#include "api/oidc/oidc_config.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "api/people/identity.h"
#include "base/file.h"
#include "net/address.h"
#include "net/http_client.h"

namespace shoal::api {
namespace {

constexpr size_t kMaxFile = size_t{1} << 20;
constexpr int64_t kLongestLifetime = int64_t{90} * 86400;
constexpr std::string_view kFields[] = {"issuer",           "client_id",     "client_secret_file",
                                        "authorities_file", "scopes",        "user_claim",
                                        "domain",           "groups_claim",  "teams",
                                        "administrators",   "redirect_uris", "lifetime"};

Result<std::vector<std::string>> TextsOf(const json::object& object, std::string_view field,
                                         std::vector<std::string> other) {
  const json::value* const value = object.if_contains(field);
  if (value == nullptr) return other;
  const Status wrong = InvalidArgument(std::string(field) + ": expected a list of texts");
  if (!value->is_array()) return wrong;
  std::vector<std::string> texts;
  for (const json::value& one : value->get_array()) {
    if (!one.is_string() || one.get_string().empty()) return wrong;
    texts.emplace_back(one.get_string());
  }
  return texts;
}

Result<std::string> TextOf(const json::object& object, std::string_view field, std::string other) {
  if (!object.contains(field)) return other;
  TRY_ASSIGN(std::string text, GetString(object, field));
  if (text.empty()) return InvalidArgument(std::string(field) + ": expected a text");
  return text;
}

Result<TeamGrant> GrantOf(const std::string& group, const json::value& value) {
  TeamGrant grant;
  const std::string where = "teams." + group;
  if (!value.is_object())
    return InvalidArgument(where + R"(: expected {"team": NAME, "role": ROLE} or a list of them)");
  for (const auto& [name, field] : value.get_object()) {
    if (name != "team" && name != "role")
      return InvalidArgument(where + "." + std::string(name) + ": expected team and role");
  }
  grant.team = GetStringOr(value.get_object(), "team", "");
  TRY(CheckName("team", grant.team).With(where));
  const std::string role = GetStringOr(value.get_object(), "role", NameOf(Role::kMember));
  const auto parsed = ParseTeamRole(role);
  if (!parsed)
    return InvalidArgument(where + ".role: got " + role + ", expected viewer, member or operator");
  grant.role = *parsed;
  return grant;
}

Status ReadTeams(const json::object& object, OidcConfig* config) {
  const json::value* const teams = object.if_contains("teams");
  if (teams == nullptr) return Status::Ok();
  if (!teams->is_object()) return InvalidArgument("teams: expected an object, group → team");
  for (const auto& [group, value] : teams->get_object()) {
    const std::string name(group);
    if (value.is_array()) {
      for (const json::value& one : value.get_array()) {
        TRY_ASSIGN(TeamGrant grant, GrantOf(name, one));
        config->teams[name].push_back(std::move(grant));
      }
      continue;
    }
    TRY_ASSIGN(TeamGrant grant, GrantOf(name, value));
    config->teams[name].push_back(std::move(grant));
  }
  return Status::Ok();
}

Result<std::string> FileOf(const json::object& object, std::string_view field,
                           const std::filesystem::path& directory) {
  TRY_ASSIGN(const std::string name, TextOf(object, field, ""));
  if (name.empty()) return name;
  auto text = ReadFile(directory / name, kMaxFile);
  if (!text.ok()) return text.status().With(std::string(field));
  return text;
}

Result<OidcConfig> Parse(const json::object& object, const std::filesystem::path& directory) {
  for (const auto& [key, value] : object) {
    if (std::ranges::find(kFields, std::string_view(key)) == std::end(kFields))
      return InvalidArgument(std::string(key) + " is no field of this file (docs/oidc.md)");
  }
  OidcConfig config;
  TRY_ASSIGN(config.issuer, GetString(object, "issuer"));
  TRY(SplitProviderUrl(config.issuer).status().With("issuer"));
  TRY_ASSIGN(config.client_id, GetString(object, "client_id"));
  if (config.client_id.empty()) return InvalidArgument("client_id: expected a text");
  TRY_ASSIGN(config.client_secret, FileOf(object, "client_secret_file", directory));
  while (config.client_secret.ends_with('\n')) config.client_secret.pop_back();
  TRY_ASSIGN(config.authorities, FileOf(object, "authorities_file", directory));
  TRY_ASSIGN(config.scopes, TextsOf(object, "scopes", config.scopes));
  if (std::ranges::find(config.scopes, "openid") == config.scopes.end())
    return InvalidArgument("scopes: expected openid among them");
  TRY_ASSIGN(config.user_claim, TextOf(object, "user_claim", config.user_claim));
  TRY_ASSIGN(config.domain, TextOf(object, "domain", ""));
  TRY_ASSIGN(config.groups_claim, TextOf(object, "groups_claim", config.groups_claim));
  TRY(ReadTeams(object, &config));
  TRY_ASSIGN(config.administrators, TextsOf(object, "administrators", {}));
  TRY_ASSIGN(config.redirect_uris, TextsOf(object, "redirect_uris", {}));
  if (!object.contains("lifetime")) return config;
  TRY_ASSIGN(const int64_t seconds, GetInt(object, "lifetime"));
  if (seconds < 60 || seconds > kLongestLifetime)
    return InvalidArgument("lifetime: got " + std::to_string(seconds) +
                           ", expected 60 to 7776000 seconds");
  config.lifetime = std::chrono::seconds(seconds);
  return config;
}

}  // namespace

Result<SplitUrl> SplitProviderUrl(const std::string& url) {
  TRY_ASSIGN(const net::Url parsed, net::ParseUrl(url.substr(0, url.find('?'))));
  if (!parsed.tls && !net::IsLoopback(parsed.host))
    return InvalidArgument("got " + url.substr(0, 200) +
                           ", expected https:// (http:// only for 127.0.0.1 and ::1)");
  if (!parsed.user_info.empty() || url.find('#') != std::string::npos)
    return InvalidArgument("got a URL with a user or a fragment, expected neither");
  const size_t path = url.find('/', url.find("://") + 3);
  if (path == std::string::npos) return SplitUrl{url, "/"};
  return SplitUrl{url.substr(0, path), url.substr(path)};
}

Result<OidcConfig> ReadOidcConfig(const std::filesystem::path& file) {
  TRY_ASSIGN(const std::string text, ReadFile(file, kMaxFile));
  const auto object = ParseJsonObject(text);
  if (!object.ok()) return object.status().With(file.string());
  auto config = Parse(*object, file.parent_path());
  if (!config.ok()) return config.status().With(file.string());
  return config;
}

}  // namespace shoal::api
