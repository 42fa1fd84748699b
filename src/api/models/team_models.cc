#include "api/models/team_models.h"

namespace shoal::api {

Result<serving::ModelRegistry*> TeamModels::Of(const std::string& team) {
  MutexLock lock(mu_);
  auto& registry = teams_[team];
  if (registry == nullptr) {
    TRY_ASSIGN(registry, serving::ModelRegistry::Open(&stores_, (root_ / team).string(), clock_));
  }
  return registry.get();
}

}  // namespace shoal::api
