#include "api/client/remote_secrets.h"

#include <utility>
#include <vector>

#include "api/people/people.h"
#include "api/rest/router.h"
#include "base/base64.h"
#include "net/http/http_session.h"

namespace shoal::api {
namespace {

using controller::SecretInfo;

class RemoteSecrets final : public controller::Secrets {
 public:
  RemoteSecrets(const ApiClient* client, const std::string& team)
      : client_(client), target_("/api/v1/teams/" + net::PercentEncode(team) + "/secrets") {}

  Result<std::vector<SecretInfo>> List() override {
    TRY_ASSIGN(const json::object reply, client_->Get(target_));
    const json::value* const items = reply.if_contains("items");
    if (items == nullptr || !items->is_array())
      return DataLoss("the server's answer has no list of items");
    std::vector<SecretInfo> secrets;
    for (const json::value& item : items->get_array()) {
      if (!item.is_object()) return DataLoss("the server's list has an item that is no object");
      TRY_ASSIGN(SecretInfo secret, ParseSecret(item.get_object()));
      secrets.push_back(std::move(secret));
    }
    return secrets;
  }

  Status Set(const std::string& name, std::string_view value) override {
    return client_->CallJson("PUT", TargetOf(name), {{"base64", EncodeBase64(value)}}).status();
  }

  Status Remove(const std::string& name) override {
    return client_->CallJson("DELETE", TargetOf(name)).status();
  }

 private:
  std::string TargetOf(const std::string& name) const {
    return target_ + "/" + net::PercentEncode(name);
  }

  static Result<SecretInfo> ParseSecret(const json::object& object) {
    SecretInfo secret;
    TRY_ASSIGN(secret.name, GetString(object, "name"));
    const auto changed = ParseTime(GetStringOr(object, "changed", ""));
    if (changed) secret.changed = WallTime(std::chrono::microseconds(*changed));
    secret.by = GetStringOr(object, "by", "");
    secret.bytes = GetIntOr(object, "bytes", 0);
    return secret;
  }

  const ApiClient* const client_;
  const std::string target_;
};

}  // namespace

Result<std::string> UsualTeam(const ApiClient& client) {
  TRY_ASSIGN(const json::object me, client.Get("/api/v1/me"));
  std::vector<std::string> teams;
  if (const json::value* roles = me.if_contains("teams"); roles != nullptr && roles->is_object())
    for (const auto& [team, role] : roles->get_object()) teams.emplace_back(team);
  if (teams.size() == 1) return teams[0];
  if (teams.empty()) return std::string(kFirstTeam);
  std::string names;
  for (const std::string& team : teams) names += (names.empty() ? "" : ", ") + team;
  return InvalidArgument("you are in the teams " + names + "; name one with --team");
}

Result<std::unique_ptr<controller::Secrets>> MakeRemoteSecrets(const ApiClient* client,
                                                               std::string team) {
  if (team.empty()) {
    TRY_ASSIGN(team, UsualTeam(*client));
  }
  return std::unique_ptr<controller::Secrets>(std::make_unique<RemoteSecrets>(client, team));
}

}  // namespace shoal::api
