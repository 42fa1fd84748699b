// Keeps a model server at the version that the registry says: the one promoted, or of another tag.
// `shoal publish` polls it from a thread of its own, since loading takes time.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/status.h"
#include "serving/endpoint/model_server.h"
#include "serving/registry/models.h"

namespace shoal::serving {

// Not thread-safe; all pointers outlive it.
class VersionFollower {
 public:
  // `reference` with a number stays at it; without a version it follows the tag promoted, and
  // before there is one the newest version. `scratch`: for copies of remote versions.
  VersionFollower(Models* registry, ModelReference reference, std::filesystem::path scratch)
      : registry_(*registry), reference_(std::move(reference)), scratch_(std::move(scratch)) {}

  const std::string& name() const { return reference_.name; }
  // Loads the version to be served now. Errors as Models and ServedModel::Load.
  Result<std::shared_ptr<const ServedModel>> Load();
  // Looks whether it is another one now, and then puts that in service; its number, or 0. After an
  // error the old version stays in service; the next call tries again.
  Result<uint64_t> Poll(ModelServer* server);

 private:
  bool is_pinned() const;
  Result<std::shared_ptr<const ServedModel>> LoadVersion(const ModelVersion& version);

  Models& registry_;
  const ModelReference reference_;
  const std::filesystem::path scratch_;
  ModelHistory history_;
  bool behind_ = true;  // the server may have another version than the history says
};

}  // namespace shoal::serving
