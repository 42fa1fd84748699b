// The catalogue of a leading server with the gates of its jobs, and what connects them with the
// supervisor.
#pragma once

#include <memory>

#include "api/catalog/catalog.h"
#include "api/catalog/gates.h"
#include "api/catalog/lineage.h"
#include "api/process/server.h"
#include "base/status.h"
#include "controller/supervisor/supervisor.h"

namespace shoal::api {

// All pointers must outlive the services.
struct CatalogServicesOptions {
  const ServerOptions* server = nullptr;
  controller::Store* store = nullptr;
  controller::SecretVault* vault = nullptr;
  People* people = nullptr;
};

class CatalogServices {
 public:
  static Result<std::unique_ptr<CatalogServices>> Start(const CatalogServicesOptions& options);

  // Starts and ends gates with the jobs of the supervisor, also those that it has taken over.
  void Follow(controller::Supervisor* supervisor);
  // To be called before the supervisor is destroyed.
  void Unfollow() { observation_.reset(); }

  Catalog* catalog() { return &catalog_; }
  Lineage* lineage() { return &lineage_; }
  Gates* gates() { return gates_.get(); }

 private:
  explicit CatalogServices(const CatalogServicesOptions& options);

  Catalog catalog_;
  Lineage lineage_;
  std::unique_ptr<Gates> gates_;
  std::unique_ptr<controller::Supervisor::Observation> observation_;
};

}  // namespace shoal::api
