// Which node of a ps-lite job this process is: from DMLC_…, or from a Shoal job's environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "bindings/environment.h"

namespace shoal::bindings {

enum class NodeRole : uint8_t { kScheduler, kServer, kWorker };

struct NodeConfig {
  NodeRole role = NodeRole::kWorker;
  int workers = 0;
  int servers = 0;
  std::string root;     // the scheduler's "host:port"
  std::string host;     // to listen on, and to be reached at
  uint16_t port = 0;    // likewise; 0: any
  int wanted_rank = 0;  // in a Shoal job the task's index
  std::string token;
  // So long a request waits for its receiver to be made (SHOAL_PS_LITE_APP_TIMEOUT).
  std::chrono::seconds app_timeout{30};
  // No SHOAL_TOKEN_FILE: the token is made of the user, the session and the job's variables.
  bool token_of_session = false;
};

// InvalidArgument names the variable that is missing or malformed. FailedPrecondition: without a
// token nodes meet on the loopback interface only.
Result<NodeConfig> ReadNodeConfig(const Environment& env);

}  // namespace shoal::bindings
