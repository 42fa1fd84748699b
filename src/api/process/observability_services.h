// What tells of the jobs of a server that leads, and keeps their logs: webhooks, the log keeper and
// the log forwarders. Used by active_server.cc.
#pragma once

#include <memory>

#include "api/people/policy.h"
#include "api/process/server.h"
#include "api/server/call.h"
#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/secrets/secret_vault.h"
#include "controller/store/store.h"
#include "controller/supervisor/supervisor.h"

namespace shoal::api {

// All pointers must outlive the services.
struct ObservabilityOptions {
  const ServerOptions* server = nullptr;
  controller::Store* store = nullptr;
  controller::Supervisor* supervisor = nullptr;
  controller::SecretVault* secrets = nullptr;
  Policies* policies = nullptr;
  controller::StateHome home{std::filesystem::path()};
};

class ObservabilityServices {
 public:
  // InvalidArgument for wrong options, or a wrong file of receivers.
  static Result<std::unique_ptr<ObservabilityServices>> Start(const ObservabilityOptions& options);
  // Ends their threads; what was not sent is sent by the next server.
  virtual ~ObservabilityServices() = default;
  // Valid as long as the services.
  virtual Observability handles() = 0;
};

}  // namespace shoal::api
