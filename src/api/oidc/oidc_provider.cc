#include "api/oidc/oidc_provider.h"

#include <algorithm>

#include "base/mutex.h"
#include "net/http.h"
#include "net/http_client.h"

namespace shoal::api {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout{10'000};
constexpr size_t kMaxReply = size_t{1} << 20;
constexpr Duration kRemembered = std::chrono::hours(1);
constexpr Duration kKeysAgain = std::chrono::minutes(1);
constexpr int64_t kLeeway = 60;    // seconds between the clocks
constexpr int64_t kOldest = 3600;  // of an ID token that was just issued, generously
constexpr int kOk = 200;
constexpr int64_t kLongestCode = 3600;
constexpr const char* kDeviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

std::string FormText(const std::vector<std::pair<std::string, std::string>>& form) {
  std::string text;
  for (const auto& [name, value] : form)
    text += (text.empty() ? "" : "&") + net::PercentEncode(name) + "=" + net::PercentEncode(value);
  return text;
}

// `aud` is a text or a list (RFC 7519, section 4.1.3).
Status CheckAudience(const json::object& claims, const std::string& client) {
  const json::value* const audience = claims.if_contains("aud");
  const auto is = [&](const json::value& one) {
    return one.is_string() && std::string_view(one.get_string()) == client;
  };
  const bool list = audience != nullptr && audience->is_array();
  const bool found = audience != nullptr &&
                     (list ? std::ranges::any_of(audience->get_array(), is) : is(*audience));
  if (!found) return Unauthenticated("the token is for another audience (aud)");
  const bool several = list && audience->get_array().size() > 1;
  const std::string party = GetStringOr(claims, "azp", "");
  if ((several || claims.contains("azp")) && party != client)
    return Unauthenticated("the token was issued to another client (azp)");
  return Status::Ok();
}

// Times may have fractions (NumericDate, RFC 7519, section 2).
std::optional<double> SecondsOf(const json::object& claims, std::string_view claim) {
  const json::value* const value = claims.if_contains(claim);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

Status TokenError(const json::object& reply, int status) {
  const std::string error = GetStringOr(reply, "error", "");
  if (error == "authorization_pending") return FailedPrecondition("the user has not agreed yet");
  if (error == "slow_down") return ResourceExhausted("the provider is asked too often");
  if (error == "access_denied") return PermissionDenied("the sign-in was refused at the provider");
  if (error == "expired_token") return DeadlineExceeded("the code has expired; sign in again");
  const std::string why = GetStringOr(reply, "error_description", error).substr(0, 200);
  return Unauthenticated("the provider refused the sign-in (status " + std::to_string(status) +
                         (why.empty() ? "" : "): " + why) + (why.empty() ? ")" : ""));
}

}  // namespace

Status CheckIdToken(const json::object& claims, const IdTokenRules& rules, WallTime now) {
  if (GetStringOr(claims, "iss", "") != rules.issuer)
    return Unauthenticated("the token is of another issuer (iss)");
  TRY(CheckAudience(claims, rules.client_id));
  const auto seconds = static_cast<double>(
      std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  const auto expires = SecondsOf(claims, "exp");
  if (!expires) return Unauthenticated("the token does not say when it expires (exp)");
  if (seconds >= *expires + kLeeway) return Unauthenticated("the token has expired (exp)");
  const auto issued = SecondsOf(claims, "iat");
  if (!issued) return Unauthenticated("the token does not say when it was issued (iat)");
  if (*issued > seconds + kLeeway || *issued < seconds - kOldest)
    return Unauthenticated("the token was not issued just now (iat)");
  const bool dated = claims.contains("nbf");
  const auto begins = SecondsOf(claims, "nbf");
  if (dated && (!begins || *begins > seconds + kLeeway))
    return Unauthenticated("the token is not valid yet (nbf)");
  if (rules.nonce && GetStringOr(claims, "nonce", "") != *rules.nonce)
    return Unauthenticated("the token belongs to another sign-in (nonce)");
  const std::string subject = GetStringOr(claims, "sub", "");
  if (subject.empty() || subject.size() > 255)
    return Unauthenticated("the token names no user (sub)");
  return Status::Ok();
}

Result<json::object> OidcProvider::Call(const std::string& url, const Form* form,
                                        int* status) const {
  TRY_ASSIGN(const SplitUrl parts, SplitProviderUrl(url));
  net::TlsOptions tls;
  tls.authorities = config_.authorities;
  TRY_ASSIGN(const auto client, net::HttpClient::Make(parts.origin, tls));
  net::HttpRequest request;
  request.target = parts.target;
  request.headers = {{"Accept", "application/json"}};
  if (form != nullptr) {
    request.method = "POST";
    request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
    request.body = FormText(*form);
  }
  const Result<net::HttpReply> reply = client->Call(request, kTimeout, kMaxReply);
  if (!reply.ok())
    return Unavailable("the provider " + parts.origin +
                       " cannot be asked: " + reply.status().message());
  *status = reply->status;
  auto object = ParseJsonObject(reply->body);
  if (!object.ok())
    return Unavailable("the provider answered " + parts.target + " with status " +
                       std::to_string(reply->status) + " and no JSON object");
  return object;
}

Result<OidcProvider::Metadata> OidcProvider::Discover() {
  const TimePoint now = clock_->Now();
  {
    const MutexLock lock(mu_);
    if (metadata_ && now - discovered_ < kRemembered) return *metadata_;
  }
  std::string base = config_.issuer;
  while (base.ends_with('/')) base.pop_back();
  int status = 0;
  TRY_ASSIGN(const json::object reply,
             Call(base + "/.well-known/openid-configuration", nullptr, &status));
  if (status != kOk)
    return Unavailable("the provider's configuration answers " + std::to_string(status));
  if (GetStringOr(reply, "issuer", "") != config_.issuer)
    return FailedPrecondition(
        "the provider is " + GetStringOr(reply, "issuer", "nameless").substr(0, 200) +
        ", and the server's configuration expects the issuer " + config_.issuer);
  Metadata found;
  found.authorization = GetStringOr(reply, "authorization_endpoint", "");
  found.token = GetStringOr(reply, "token_endpoint", "");
  found.device = GetStringOr(reply, "device_authorization_endpoint", "");
  found.keys = GetStringOr(reply, "jwks_uri", "");
  for (const std::string& url : {found.token, found.keys})
    TRY(SplitProviderUrl(url).status().With("the provider's configuration"));
  const MutexLock lock(mu_);
  metadata_ = found;
  discovered_ = now;
  return found;
}

Result<JwkSet> OidcProvider::Keys(bool again) {
  TRY_ASSIGN(const Metadata metadata, Discover());
  const TimePoint now = clock_->Now();
  {
    const MutexLock lock(mu_);
    if (keys_ && now - fetched_ < (again ? kKeysAgain : kRemembered)) return *keys_;
  }
  int status = 0;
  TRY_ASSIGN(const json::object reply, Call(metadata.keys, nullptr, &status));
  if (status != kOk) return Unavailable("the provider's keys answer " + std::to_string(status));
  TRY_ASSIGN(JwkSet keys, JwkSet::Parse(ToText(reply)));
  const MutexLock lock(mu_);
  keys_ = keys;
  fetched_ = now;
  return keys;
}

Result<json::object> OidcProvider::CheckToken(const json::object& reply,
                                              const std::optional<std::string>& nonce) {
  const std::string token = GetStringOr(reply, "id_token", "");
  if (token.empty())
    return Unauthenticated("the provider gave no ID token; the scopes must have openid");
  TRY_ASSIGN(const JwkSet keys, Keys(false));
  auto claims = VerifyJwt(keys, token);
  if (claims.status().code() == Code::kNotFound) {  // it has changed its keys
    TRY_ASSIGN(const JwkSet fresh, Keys(true));
    claims = VerifyJwt(fresh, token);
  }
  if (!claims.ok()) return Unauthenticated(claims.status().message());
  TRY(CheckIdToken(*claims, {config_.issuer, config_.client_id, nonce}, clock_->Wall()));
  return claims;
}

Result<json::object> OidcProvider::AskForToken(Form form, const std::optional<std::string>& nonce) {
  TRY_ASSIGN(const Metadata metadata, Discover());
  form.emplace_back("client_id", config_.client_id);
  if (!config_.client_secret.empty()) form.emplace_back("client_secret", config_.client_secret);
  int status = 0;
  TRY_ASSIGN(const json::object reply, Call(metadata.token, &form, &status));
  if (status != kOk) return TokenError(reply, status);
  return CheckToken(reply, nonce);
}

Result<DeviceGrant> OidcProvider::BeginDevice() {
  TRY_ASSIGN(const Metadata metadata, Discover());
  if (metadata.device.empty())
    return Unimplemented(
        "the provider has no device flow; use a token (`shoal login --token-file`)");
  std::string scopes;
  for (const std::string& scope : config_.scopes) scopes += (scopes.empty() ? "" : " ") + scope;
  Form form{{"client_id", config_.client_id}, {"scope", scopes}};
  if (!config_.client_secret.empty()) form.emplace_back("client_secret", config_.client_secret);
  int status = 0;
  TRY_ASSIGN(const json::object reply, Call(metadata.device, &form, &status));
  if (status != kOk) return TokenError(reply, status);
  DeviceGrant grant;
  TRY_ASSIGN(grant.device_code, GetString(reply, "device_code"));
  TRY_ASSIGN(grant.user_code, GetString(reply, "user_code"));
  TRY_ASSIGN(grant.verification_uri, GetString(reply, "verification_uri"));
  grant.complete_uri = GetStringOr(reply, "verification_uri_complete", "");
  grant.expires = std::chrono::seconds(
      std::clamp<int64_t>(GetIntOr(reply, "expires_in", 600), 1, kLongestCode));
  grant.interval = std::chrono::seconds(std::clamp<int64_t>(GetIntOr(reply, "interval", 5), 1, 60));
  return grant;
}

Result<json::object> OidcProvider::FinishDevice(const std::string& device_code) {
  return AskForToken({{"grant_type", kDeviceGrant}, {"device_code", device_code}}, std::nullopt);
}

Result<std::string> OidcProvider::AuthorizationUrl(const std::string& redirect_uri,
                                                   const std::string& state,
                                                   const std::string& nonce,
                                                   const std::string& challenge) {
  TRY_ASSIGN(const Metadata metadata, Discover());
  TRY(SplitProviderUrl(metadata.authorization).status().With("the provider's configuration"));
  std::string scopes;
  for (const std::string& scope : config_.scopes) scopes += (scopes.empty() ? "" : " ") + scope;
  const Form form{{"response_type", "code"},
                  {"client_id", config_.client_id},
                  {"redirect_uri", redirect_uri},
                  {"scope", scopes},
                  {"state", state},
                  {"nonce", nonce},
                  {"code_challenge", challenge},
                  {"code_challenge_method", "S256"}};
  const bool query = metadata.authorization.find('?') != std::string::npos;
  return metadata.authorization + (query ? "&" : "?") + FormText(form);
}

Result<json::object> OidcProvider::FinishCode(const std::string& code,
                                              const std::string& redirect_uri,
                                              const std::string& verifier,
                                              const std::string& nonce) {
  return AskForToken({{"grant_type", "authorization_code"},
                      {"code", code},
                      {"redirect_uri", redirect_uri},
                      {"code_verifier", verifier}},
                     nonce);
}

}  // namespace shoal::api
