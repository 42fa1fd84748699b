// Adds a version of its model to the registry of its team for each job of the server that succeeds
// and has outputs.model. Reads the store's log of events from a stored position, so that a job
// whose end another server or an earlier start has seen is not left out, and none is added twice.
#pragma once

#include <memory>
#include <string>

#include "api/models/team_models.h"
#include "base/status.h"
#include "controller/engines/engine_registry.h"
#include "controller/files/state_home.h"
#include "controller/store/store.h"

namespace shoal::api {

// All pointers must outlive it.
struct ModelRegistrarOptions {
  controller::Store* store = nullptr;
  controller::EngineRegistry* engines = nullptr;
  TeamModels* models = nullptr;
  const Clock* clock = nullptr;
  controller::StateHome home{std::filesystem::path()};
};

class ModelRegistrar {
 public:
  // Begins with the next event where no position is stored.
  static Result<std::unique_ptr<ModelRegistrar>> Start(ModelRegistrarOptions options);
  // Waits for the version that is being added.
  virtual ~ModelRegistrar() = default;
};

}  // namespace shoal::api
