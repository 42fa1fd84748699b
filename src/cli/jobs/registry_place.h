// The registry of models that a command uses.
#pragma once

#include <memory>
#include <string>

#include "api/client/api_client.h"
#include "base/status.h"
#include "cli/command.h"
#include "controller/store/job_record.h"
#include "data/objects/object_stores.h"
#include "job/spec/job.h"
#include "serving/registry/model_registry.h"

namespace CLI {
class App;
}

namespace shoal::cli {

struct OpenedRegistry {
  std::unique_ptr<data::ObjectStores> stores;
  std::unique_ptr<api::ApiClient> client;  // of a server
  std::unique_ptr<serving::Models> models;
};

// What the options of a command name.
struct RegistryOptions {
  std::string place;  // --registry
  std::string team;   // --team, of a server
};

// --registry, else the models of a team of the server that --server names, else $SHOAL_REGISTRY,
// else those of the server that the login names, else the directory models of the state home.
Result<OpenedRegistry> OpenModels(const Context& context, const RegistryOptions& options);
// Without a server. `place`: --registry; empty: $SHOAL_REGISTRY, else the directory models of the
// state home.
Result<OpenedRegistry> OpenRegistry(const std::string& place);
// Adds --registry and --team.
void AddRegistryOptions(CLI::App* sub, RegistryOptions* options);
// Who changes the registry: the name of this process's user.
std::string RegistryUser();

// At the end of a job of this machine that succeeded: makes a version of the model that
// outputs.model names, unless $SHOAL_REGISTRY is "none", another machine has the files, or it is
// the model of one fold of a cross-validation. Returns its name, "ages@3"; empty without one.
// Prints a note if that fails, since the job did not.
std::string RegisterModel(const job::Job& job, const controller::JobRecord& record);

}  // namespace shoal::cli
