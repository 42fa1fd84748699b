// The requests about the models of teams.

#include <algorithm>
#include <filesystem>
#include <utility>

#include "api/models/team_models.h"
#include "api/server/file_reply.h"
#include "api/server/handlers.h"
#include "api/server/readiness.h"
#include "api/server/uploads.h"
#include "base/utf8.h"
#include "serving/registry/history_json.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;
using serving::ModelHistory;
using serving::ModelReference;
using serving::ModelRegistry;
using serving::ModelVersion;

constexpr int kOk = 200;
constexpr int kCreated = 201;
constexpr int kNoContent = 204;

// Calls `act` with the registry of the request's team; its error is the answer.
template <typename Act>
void WithModels(const Backend& backend, const CallPtr& call, const Act& act) {
  const auto models = backend.tables.models->Of(call->team);
  const Status done = models.ok() ? act(*models) : models.status();
  if (!done.ok()) call->answer(Problem(done));
}

// The model of the path, which is what an entry of the audit log names.
std::string NameOf(Call* call) {
  std::string name = call->arguments.PathText("model");
  call->target = name;
  return name;
}

struct Found {
  ModelHistory history;
  ModelVersion version;
};

Result<Found> FindVersion(ModelRegistry* models, Call* call, const std::string& version) {
  const std::string name = NameOf(call);
  Found found;
  TRY_ASSIGN(found.history, models->Read(name));
  if (version.empty()) return InvalidArgument("version: expected a number or a tag");
  TRY_ASSIGN(found.version, serving::FindIn(found.history, {name, version}));
  call->target = name + "@" + std::to_string(found.version.number);
  return found;
}

json::object TagJson(const std::string& name, const std::string& tag, uint64_t version) {
  return {{"model", name}, {"tag", tag}, {"version", version}};
}

json::object SummaryJson(const std::string& name, const ModelHistory& history) {
  size_t versions = 0;
  uint64_t bytes = 0;
  const ModelVersion* newest = nullptr;
  for (const ModelVersion& version : history.versions()) {
    if (version.deleted) continue;
    ++versions;
    bytes += version.bytes();
    newest = &version;
  }
  json::object object{{"name", name},
                      {"versions", versions},
                      {"bytes", bytes},
                      {"newest", newest == nullptr ? 0 : newest->number},
                      {"promoted", history.Tagged(serving::kPromoted).value_or(0)}};
  if (newest != nullptr) object["changed"] = newest->created;
  return object;
}

}  // namespace

void ListModels(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    TRY_ASSIGN(const std::vector<std::string> names, models->Names());
    json::array items;
    for (const std::string& name : names) {
      TRY_ASSIGN(const ModelHistory history, models->Read(name));
      items.push_back(SummaryJson(name, history));
    }
    call->answer(JsonReply(kOk, json::object{{"items", std::move(items)}}));
    return Status::Ok();
  });
}

void GetModel(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    const std::string name = NameOf(call.get());
    TRY_ASSIGN(const ModelHistory history, models->Read(name));
    const bool whole = call->arguments.Boolean("whole", false);
    call->answer(JsonReply(
        kOk, serving::HistoryJson(name, history,
                                  whole ? serving::Detail::kWhole : serving::Detail::kBrief)));
    return Status::Ok();
  });
}

void GetModelVersion(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    const std::string name = NameOf(call.get());
    TRY_ASSIGN(const Found found,
               FindVersion(models, call.get(), call->arguments.PathText("version")));
    call->answer(JsonReply(kOk, serving::VersionJson(name, found.version, found.history)));
    return Status::Ok();
  });
}

void ReadModelFile(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    const std::string name = NameOf(call.get());
    const std::string path = call->arguments.Text("path");
    call->details = {{"path", path}};
    TRY_ASSIGN(const Found found,
               FindVersion(models, call.get(), call->arguments.PathText("version")));
    const auto& files = found.version.files;
    if (std::ranges::find(files, path, &serving::VersionFile::name) == files.end())
      return NotFound(call->target + " has no file " + EscapedUtf8(path.substr(0, 200)));
    TRY_ASSIGN(const fs::path directory, models->DirectoryOf(name, found.version));
    TRY_ASSIGN(UniqueFd file, OpenBelow(directory, path));
    SendFile(backend, call, std::move(file), call->arguments.Integer("offset", 0),
             call->arguments.Integer("limit", INT64_MAX));
    return Status::Ok();
  });
}

void CompareModels(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    ModelVersion versions[2];
    std::string names[2];
    const char* const fields[2] = {"first", "second"};
    for (size_t i = 0; i < 2; ++i) {
      TRY_ASSIGN(const ModelReference reference,
                 serving::ParseModelReference(call->arguments.Text(fields[i])));
      TRY_ASSIGN(versions[i], models->Find(reference));
      names[i] = reference.name + "@" + std::to_string(versions[i].number);
    }
    call->answer(JsonReply(
        kOk,
        serving::DifferencesJson(names[0], names[1], serving::Compare(versions[0], versions[1]))));
    return Status::Ok();
  });
}

void AddModelVersion(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    const std::string name = NameOf(call.get());
    TRY(serving::CheckModelName(name));
    TRY(backend.readiness->CheckDisk());
    TRY_ASSIGN(const host::Manifest manifest,
               host::ParseManifest(call->arguments.Text("manifest")));
    TRY_ASSIGN(const fs::path tree, backend.uploads->MakeTree(call->team, manifest));
    serving::Provenance from;
    from.by = call->principal.user;
    from.source = call->arguments.Text("source");
    const auto added = models->Add(name, tree.string(), from, {.follow_links = false});
    std::error_code ignored;
    fs::remove_all(tree, ignored);
    TRY(added.status());
    call->target = name + "@" + std::to_string(added->number);
    call->answer(JsonReply(kCreated, serving::VersionJson(name, *added, ModelHistory())));
    return Status::Ok();
  });
}

void SetModelTag(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    const std::string name = NameOf(call.get());
    const std::string tag = call->arguments.PathText("tag");
    call->details = {{"tag", tag}};
    TRY_ASSIGN(const Found found, FindVersion(models, call.get(), call->arguments.Text("version")));
    TRY(models->Tag(name, tag, found.version.number, call->principal.user));
    call->answer(JsonReply(kOk, TagJson(name, tag, found.version.number)));
    return Status::Ok();
  });
}

void RemoveModelTag(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    const std::string name = NameOf(call.get());
    const std::string tag = call->arguments.PathText("tag");
    call->details = {{"tag", tag}};
    TRY(models->Read(name).status());
    TRY(models->Tag(name, tag, 0, call->principal.user));
    call->answer({kNoContent, {}, ""});
    return Status::Ok();
  });
}

void RollbackModel(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    const std::string name = NameOf(call.get());
    TRY(models->Read(name).status());
    TRY_ASSIGN(const uint64_t version, models->Rollback(name, call->principal.user));
    call->target = name + "@" + std::to_string(version);
    json::object reply = TagJson(name, std::string(serving::kPromoted), version);
    reply["promoted"] = version;
    call->answer(JsonReply(kOk, reply));
    return Status::Ok();
  });
}

void RemoveModelVersion(const Backend& backend, const CallPtr& call) {
  WithModels(backend, call, [&](ModelRegistry* models) -> Status {
    const std::string name = NameOf(call.get());
    TRY_ASSIGN(const Found found,
               FindVersion(models, call.get(), call->arguments.PathText("version")));
    const bool own = found.version.by == call->principal.user;
    if (!own && call->principal.RoleIn(call->team) < Role::kOperator)
      return PermissionDenied(call->target + " is one of " + found.version.by +
                              "; the role operator in the team " + call->team + " may delete it");
    TRY(models->Delete(name, found.version.number, call->principal.user));
    call->answer({kNoContent, {}, ""});
    return Status::Ok();
  });
}

}  // namespace shoal::api
