// The registries of the teams of a server: one directory each, STATE/models/TEAM, in the format of
// `shoal models` (docs/formats/model-registry.md).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "data/objects/object_stores.h"
#include "serving/registry/model_registry.h"

namespace shoal::api {

inline constexpr const char* kModelsFolder = "models";  // in the state directory

// Thread-safe.
class TeamModels {
 public:
  // `clock` outlives it.
  TeamModels(std::filesystem::path root, const Clock* clock)
      : root_(std::move(root)), clock_(clock) {}

  // The registry of a team that exists, whose name must have passed CheckName. Stays valid.
  Result<serving::ModelRegistry*> Of(const std::string& team);

 private:
  const std::filesystem::path root_;
  const Clock* const clock_;
  data::ObjectStores stores_;
  Mutex mu_;
  std::map<std::string, std::unique_ptr<serving::ModelRegistry>> teams_ GUARDED_BY(mu_);
};

}  // namespace shoal::api
