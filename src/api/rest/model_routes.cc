#include "api/rest/model_routes.h"

#include <utility>

namespace shoal::api {
namespace {

constexpr size_t kSmallBody = size_t{64} << 10;
constexpr size_t kManifestBody = size_t{64} << 20;
constexpr int64_t kMaxManifest = int64_t{48} << 20;
constexpr int64_t kMaxPath = 4096;
constexpr int64_t kMaxBytes = int64_t{1} << 50;
constexpr int64_t kMaxReference = 130;

Route Read(Route route) {
  route.access = Access::kTeam;
  route.role = Role::kViewer;
  route.scope = route.scope.value_or(Scope::kJobsRead);
  return route;
}

Route Change(Route route) {
  route.access = Access::kTeam;
  route.role = Role::kMember;
  route.scope = Scope::kJobsWrite;
  route.audited = Audited::kChange;
  if (route.schema.empty()) {
    route.status = 204;
    route.reply = Reply::kNothing;
  }
  return route;
}

// clang-format off
std::vector<Route> Reads() {
  return {
      Read({.operation = Operation::kListModels, .path = "/api/v1/teams/{team}/models",
            .name = "listModels", .doc = "The models of a team by name (docs/serving.md)",
            .schema = "Models"}),
      Read({.operation = Operation::kGetModel, .path = "/api/v1/teams/{team}/models/{model}",
            .name = "getModel", .doc = "A model with its versions and tags",
            .query = {{.name = "whole", .kind = Kind::kBoolean,
                       .doc = "With files and metadata, and with deleted versions"}},
            .schema = "Model"}),
      Read({.operation = Operation::kGetModelVersion,
            .path = "/api/v1/teams/{team}/models/{model}/versions/{version}",
            .name = "getModelVersion",
            .doc = "A version, by its number or a tag, with files and metadata",
            .schema = "ModelVersion"}),
      Read({.operation = Operation::kReadModelFile,
            .path = "/api/v1/teams/{team}/models/{model}/versions/{version}/files",
            .name = "readModelFile", .doc = "A file of a version", .scope = Scope::kDataRead,
            .audited = Audited::kRead,
            .query = {{.name = "path", .required = true, .least = 1, .most = kMaxPath,
                       .doc = "Its `name` in the version"},
                      {.name = "offset", .kind = Kind::kInteger, .most = kMaxBytes,
                       .doc = "First byte [0]"},
                      {.name = "limit", .kind = Kind::kInteger, .least = 1, .most = kMaxBytes,
                       .doc = "At most this many bytes [all]"}},
            .reply = Reply::kBytes}),
      Read({.operation = Operation::kCompareModels,
            .path = "/api/v1/teams/{team}/model-differences", .name = "compareModels",
            .doc = "The fields in which two versions differ",
            .query = {{.name = "first", .required = true, .least = 1, .most = kMaxReference,
                       .doc = "NAME@VERSION"},
                      {.name = "second", .required = true, .least = 1, .most = kMaxReference,
                       .doc = "NAME@VERSION"}},
            .schema = "ModelDifferences"}),
  };
}

std::vector<Route> Changes() {
  return {
      Change({.operation = Operation::kAddModelVersion, .method = Method::kPost,
              .path = "/api/v1/teams/{team}/models/{model}/versions", .name = "addModelVersion",
              .doc = "Adds a version of files that were uploaded before",
              .body = Body::kJson,
              .fields = {{.name = "manifest", .required = true, .least = 1, .most = kMaxManifest,
                          .doc = "The list of its files (docs/formats/files.md)"},
                         {.name = "source", .most = kMaxPath, .doc = "Where they come from"}},
              .max_body = kManifestBody, .status = 201, .schema = "ModelVersion"}),
      Change({.operation = Operation::kSetModelTag, .method = Method::kPut,
              .path = "/api/v1/teams/{team}/models/{model}/tags/{tag}", .name = "setModelTag",
              .doc = "Gives a version a tag, which no other version has any more; `promoted` is the "
                     "version that is served",
              .body = Body::kJson,
              .fields = {{.name = "version", .required = true, .least = 1, .most = 64,
                          .doc = "Its number or another tag of it"}},
              .max_body = kSmallBody, .schema = "ModelTag"}),
      Change({.operation = Operation::kRemoveModelTag, .method = Method::kDelete,
              .path = "/api/v1/teams/{team}/models/{model}/tags/{tag}", .name = "removeModelTag",
              .doc = "Removes a tag"}),
      Change({.operation = Operation::kRollbackModel, .method = Method::kPost,
              .path = "/api/v1/teams/{team}/models/{model}/rollback", .name = "rollbackModel",
              .doc = "Promotes the version that was promoted before", .body = Body::kJson,
              .max_body = kSmallBody, .schema = "ModelTag"}),
      Change({.operation = Operation::kRemoveModelVersion, .method = Method::kDelete,
              .path = "/api/v1/teams/{team}/models/{model}/versions/{version}",
              .name = "removeModelVersion",
              .doc = "Deletes a version that has no tag. A member may delete its own, an operator all"}),
  };
}
// clang-format on

}  // namespace

std::vector<Route> ModelRoutes() {
  std::vector<Route> all = Reads();
  for (Route& route : Changes()) all.push_back(std::move(route));
  return all;
}

}  // namespace shoal::api
