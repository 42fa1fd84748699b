#include "api/client/remote_groups.h"

#include <utility>

#include "api/client/upload.h"
#include "api/rest/router.h"
#include "base/clock.h"
#include "controller/files/stage_files.h"
#include "controller/files/state_home.h"
#include "net/http.h"

namespace shoal::api {

Result<json::object> FileRequest(const ApiClient& client, const controller::NewFile& file,
                                 const std::string& team,
                                 const std::function<void(const std::string&)>& on_note) {
  json::object body{{"file", file.text}, {"directory", file.work_dir}};
  json::array set;
  for (const std::string& one : file.set) set.emplace_back(one);
  if (!set.empty()) body["set"] = std::move(set);
  if (!team.empty()) body["team"] = team;
  if (!file.engine.empty()) body["engine"] = file.engine;
  json::array manifests;
  bool any = false;
  for (const std::string& directory : file.files) {
    std::string manifest;
    if (!directory.empty()) {
      TRY_ASSIGN(const std::filesystem::path root, controller::FindStateHome());
      UploadOptions upload;
      upload.directory = directory;
      upload.cache = controller::FileCachePath(controller::StateHome(root));
      upload.team = team;
      upload.on_note = on_note;
      TRY_ASSIGN(manifest, UploadFiles(client, upload));
      any = true;
    }
    manifests.emplace_back(manifest);
  }
  if (any) body["manifests"] = std::move(manifests);
  return body;
}

Result<std::vector<controller::SubmittedItem>> ParseSubmission(const json::object& reply) {
  const json::value* const items = reply.if_contains("items");
  if (items == nullptr || !items->is_array())
    return Internal("the server's reply has no list of what was submitted");
  std::vector<controller::SubmittedItem> submitted;
  for (const json::value& item : items->get_array()) {
    if (!item.is_object()) return Internal("the server's reply has an item that is no object");
    controller::SubmittedItem& one = submitted.emplace_back();
    TRY_ASSIGN(one.id, GetString(item.get_object(), "id"));
    TRY_ASSIGN(one.name, GetString(item.get_object(), "name"));
    one.group = GetStringOr(item.get_object(), "kind", "") == "group";
    const Result<int64_t> members = GetInt(item.get_object(), "members");
    if (members.ok()) one.members = static_cast<size_t>(*members);
  }
  return submitted;
}

Result<std::vector<json::object>> FindGroups(const ApiClient& client, const std::string& prefix) {
  std::vector<json::object> groups;
  std::string after;
  do {
    TRY_ASSIGN(const json::object page,
               client.Get("/api/v1/groups" +
                          QueryText({{"id", prefix}, {"limit", "1000"}, {"after", after}})));
    const json::value* const items = page.if_contains("items");
    if (items == nullptr || !items->is_array())
      return Internal("the server's reply has no list of groups");
    for (const json::value& item : items->get_array())
      if (item.is_object()) groups.push_back(item.get_object());
    after = GetStringOr(page, "next", "");
  } while (!after.empty());
  return groups;
}

Result<std::vector<std::string>> PruneGroups(const ApiClient& client, Duration age) {
  TRY_ASSIGN(const std::vector<json::object> groups, FindGroups(client, ""));
  const WallTime now = RealClock::Get()->Wall();
  std::vector<std::string> removed;
  for (const json::object& group : groups) {
    const auto ended = ParseTime(GetStringOr(group, "ended", ""));
    if (!ended || Duration(now - WallTime(std::chrono::microseconds(*ended))) < age) continue;
    const std::string id = GetStringOr(group, "id", "");
    TRY(client.CallJson("DELETE", GroupTarget(GetStringOr(group, "team", ""), id)).status());
    removed.push_back(id);
  }
  return removed;
}

std::string GroupTarget(const std::string& team, const std::string& id) {
  return "/api/v1/teams/" + net::PercentEncode(team) + "/groups/" + net::PercentEncode(id);
}

}  // namespace shoal::api
