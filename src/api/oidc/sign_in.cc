#include "api/oidc/sign_in.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/base64.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mutex.h"

namespace shoal::api {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr Duration kCodeTime = std::chrono::minutes(10);
constexpr Duration kSlower = std::chrono::seconds(5);  // RFC 8628, section 3.5
constexpr const char* kTokenName = "sign-in";
constexpr size_t kMostGroups = 10'000;

// The PKCE challenge of a verifier (RFC 7636, section 4.2): base64url of its SHA-256.
std::string ChallengeOf(const std::string& verifier) {
  const std::string hex = Sha256Hex(verifier);
  std::string bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1])));
  std::string text = EncodeBase64(bytes, Base64::kUrl);
  while (text.ends_with('=')) text.pop_back();
  return text;
}

// The groups of the claim, which is a list of texts or one text.
std::set<std::string> GroupsOf(const json::object& claims, const std::string& claim) {
  std::set<std::string> groups = {"*"};
  const json::value* const value = claims.if_contains(claim);
  if (value == nullptr) return groups;
  if (value->is_string()) groups.emplace(value->get_string());
  if (!value->is_array()) return groups;
  for (const json::value& one : value->get_array()) {
    if (one.is_string() && groups.size() < kMostGroups) groups.emplace(one.get_string());
  }
  return groups;
}

Result<std::string> NameOfClaims(const OidcConfig& config, const json::object& claims) {
  std::string name = GetStringOr(claims, config.user_claim, "");
  if (name.empty())
    return PermissionDenied("the provider's token has no claim " + config.user_claim +
                            ", which names the user");
  if (config.user_claim == "email" && !GetBoolOr(claims, "email_verified", false))
    return PermissionDenied("the provider has not verified the address " + name.substr(0, 100));
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (const size_t at = name.find('@'); at != std::string::npos) {
    if (config.domain.empty() || name.substr(at + 1) != config.domain)
      return PermissionDenied("the user " + name.substr(0, 100) +
                              " is not of this server's domain" +
                              (config.domain.empty() ? "" : " " + config.domain));
    name.resize(at);
  }
  if (const Status good = CheckName("user", name); !good.ok())
    return PermissionDenied("the provider calls the user " + name.substr(0, 100) + "; " +
                            good.message());
  return name;
}

}  // namespace

Result<ExternalUser> UserOfClaims(const OidcConfig& config, const json::object& claims) {
  ExternalUser user;
  TRY_ASSIGN(user.name, NameOfClaims(config, claims));
  user.subject = config.issuer + " " + GetStringOr(claims, "sub", "");
  const std::set<std::string> groups = GroupsOf(claims, config.groups_claim);
  for (const auto& [group, grants] : config.teams) {
    for (const TeamGrant& grant : grants) {
      const Role given = groups.contains(group) ? grant.role : Role::kNone;
      Role& role = user.teams.try_emplace(grant.team, Role::kNone).first->second;
      role = std::max(role, given);
    }
  }
  if (!config.administrators.empty())
    user.administrator = std::ranges::any_of(
        config.administrators, [&](const std::string& group) { return groups.contains(group); });
  return user;
}

// A request to the provider. So many threads wait for it at most; others are told to come again.
class SignIn::Turn {
 public:
  static Result<Turn> Take(SignIn* owner) {
    const MutexLock lock(owner->mu_);
    if (owner->calls_ >= kMostCalls)
      return Unavailable("other sign-ins wait for the provider; try again");
    ++owner->calls_;
    return Turn(owner);
  }
  Turn(Turn&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (owner_ == nullptr) return;
    const MutexLock lock(owner_->mu_);
    --owner_->calls_;
  }

 private:
  explicit Turn(SignIn* owner) : owner_(owner) {}
  SignIn* owner_;
};

Status SignIn::Add(const std::string& key, Pending pending) {
  const TimePoint now = clock_->Now();
  const MutexLock lock(mu_);
  std::erase_if(pending_, [&](const auto& entry) { return entry.second.expires <= now; });
  const auto same = std::ranges::count_if(
      pending_, [&](const auto& entry) { return entry.second.peer == pending.peer; });
  if (pending_.size() >= kMost || static_cast<size_t>(same) >= kMostOfPeer)
    return ResourceExhausted("too many sign-ins are under way; try again in some minutes");
  pending_[Sha256Hex(key)] = std::move(pending);
  return Status::Ok();
}

Result<NewToken> SignIn::Grant(const json::object& claims) {
  TRY_ASSIGN(const ExternalUser user, UserOfClaims(config(), claims));
  TRY_ASSIGN(const User signed_in, people_->SignInExternal(user));
  return people_->CreateToken(
      {signed_in.name, kTokenName, ScopeSet::All(), provider_.config().lifetime, true});
}

Result<StartedDevice> SignIn::BeginDevice(const std::string& peer) {
  TRY_ASSIGN(const Turn turn, Turn::Take(this));
  StartedDevice started;
  started.handle = RandomHex(kSecretBytes);
  Pending pending;
  pending.peer = peer;
  pending.device = true;
  pending.expires = clock_->Now() + kCodeTime;
  TRY(Add(started.handle, pending));  // before the provider is asked: a peer has only so many
  Result<DeviceGrant> grant = provider_.BeginDevice();
  const MutexLock lock(mu_);
  const auto found = pending_.find(Sha256Hex(started.handle));
  if (found == pending_.end()) return Unavailable("the provider was too slow; try again");
  if (!grant.ok()) {
    pending_.erase(found);
    return grant.status();
  }
  found->second.device_code = grant->device_code;
  found->second.interval = grant->interval;
  found->second.next_try = clock_->Now() + grant->interval;
  found->second.expires = clock_->Now() + grant->expires;
  started.grant = std::move(*grant);
  return started;
}

Result<NewToken> SignIn::FinishDevice(const std::string& handle, Duration* interval) {
  const Status unknown =
      NotFound("there is no such sign-in; it has expired or is finished: sign in again");
  const std::string key = Sha256Hex(handle);
  std::string code;
  {
    const MutexLock lock(mu_);
    const auto found = pending_.find(key);
    const TimePoint now = clock_->Now();
    if (found == pending_.end() || !found->second.device || found->second.expires <= now)
      return unknown;
    *interval = found->second.interval;
    if (found->second.asking || now < found->second.next_try || found->second.device_code.empty())
      return FailedPrecondition("the user has not agreed yet");
    found->second.asking = true;
    code = found->second.device_code;
  }
  Result<json::object> claims = Unavailable("not asked");
  {
    auto turn = Turn::Take(this);
    claims = turn.ok() ? provider_.FinishDevice(code) : Result<json::object>(turn.status());
  }
  {
    const MutexLock lock(mu_);
    const auto found = pending_.find(key);
    if (found == pending_.end()) return unknown;
    const Code outcome = claims.status().code();
    if (outcome == Code::kResourceExhausted) found->second.interval += kSlower;
    *interval = found->second.interval;
    found->second.asking = false;
    found->second.next_try = clock_->Now() + found->second.interval;
    const bool again = outcome == Code::kFailedPrecondition ||
                       outcome == Code::kResourceExhausted || outcome == Code::kUnavailable;
    if (!again) pending_.erase(found);
    if (again && outcome != Code::kUnavailable)
      return FailedPrecondition("the user has not agreed yet");
  }
  if (!claims.ok()) return claims.status();
  return Grant(*claims);
}

Result<StartedCode> SignIn::BeginCode(const std::string& peer, const std::string& redirect_uri) {
  if (std::ranges::find(config().redirect_uris, redirect_uri) == config().redirect_uris.end())
    return PermissionDenied("redirect_uri: got " + redirect_uri.substr(0, 200) +
                            ", which the server's configuration does not have");
  TRY_ASSIGN(const Turn turn, Turn::Take(this));
  StartedCode started;
  started.state = RandomHex(kSecretBytes);
  started.binding = RandomHex(kSecretBytes);
  Pending pending;
  pending.peer = peer;
  pending.expires = clock_->Now() + kCodeTime;
  pending.redirect_uri = redirect_uri;
  pending.verifier = RandomHex(kSecretBytes);
  pending.nonce = RandomHex(kSecretBytes);
  pending.binding = started.binding;
  TRY_ASSIGN(started.url, provider_.AuthorizationUrl(redirect_uri, started.state, pending.nonce,
                                                     ChallengeOf(pending.verifier)));
  TRY(Add(started.state, std::move(pending)));
  return started;
}

Result<NewToken> SignIn::FinishCode(const std::string& state, const std::string& binding,
                                    const std::string& code) {
  TRY_ASSIGN(const Turn turn, Turn::Take(this));
  Pending pending;
  {
    const MutexLock lock(mu_);
    const auto found = pending_.find(Sha256Hex(state));
    if (found == pending_.end() || found->second.device || found->second.expires <= clock_->Now())
      return NotFound("there is no such sign-in; it has expired or is finished: sign in again");
    pending = std::move(found->second);
    pending_.erase(found);
  }
  if (!EqualInConstantTime(pending.binding, binding))
    return PermissionDenied("the sign-in was begun by another page; sign in again");
  TRY_ASSIGN(const json::object claims,
             provider_.FinishCode(code, pending.redirect_uri, pending.verifier, pending.nonce));
  return Grant(claims);
}

}  // namespace shoal::api
