#include "api/catalog/catalog_services.h"

#include <string>
#include <utility>

namespace shoal::api {

CatalogServices::CatalogServices(const CatalogServicesOptions& options)
    : catalog_(&options.store->records(), options.server->clock),
      lineage_(&options.store->records(), options.server->clock) {}

Result<std::unique_ptr<CatalogServices>> CatalogServices::Start(
    const CatalogServicesOptions& options) {
  std::unique_ptr<CatalogServices> services(new CatalogServices(options));
  GatesOptions gates;
  gates.store = options.store;
  gates.records = &options.store->records();
  gates.vault = options.vault;
  gates.catalog = &services->catalog_;
  gates.lineage = &services->lineage_;
  gates.people = options.people;
  gates.clock = options.server->clock;
  gates.program = options.server->program;
  gates.address = options.server->gate_address;
  gates.scratch = options.server->state / "gates";
  TRY_ASSIGN(services->gates_, Gates::Start(std::move(gates)));
  return services;
}

void CatalogServices::Follow(controller::Supervisor* supervisor) {
  controller::JobsObserver observer;
  observer.on_state = [this](const std::string& id, job::JobState state, const std::string&) {
    if (state == job::JobState::kStarting || state == job::JobState::kRunning)
      gates_->OnState(id, true, false);
  };
  observer.on_end = [this](const std::string& id, const controller::JobRecord& record) {
    gates_->OnState(id, false, record.state != job::JobState::kSuspended);
  };
  observation_ = supervisor->Observe(std::move(observer));
  for (const std::string& id : supervisor->running()) gates_->OnJobFound(id);
}

}  // namespace shoal::api
