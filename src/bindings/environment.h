// The environment of a task of a Shoal job (SHOAL_…) as the bindings need it: the task's identity
// and the addresses of the servers.
//
// Used by ps.cc (FromEnvironment) and ps_lite/node_config.cc. Tests pass a map instead of the real
// environment.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "framework/cluster.h"

namespace shoal::bindings {

using Environment = std::map<std::string, std::string>;

// This process's variables whose names begin with SHOAL_ or DMLC_.
Environment ProcessEnvironment();
// "" if there is none.
std::string EnvironmentVariable(const Environment& env, const std::string& name);

// The identity of this task in its job.
struct TaskIdentity {
  std::string role;
  int index = 0;
  uint16_t port = 0;  // 0: its role has none
  std::string host;   // of this task, as others reach it
  std::string token;
  framework::ClusterDescription cluster;
};

// The secret in a file (SHOAL_TOKEN_FILE), without line ends. InvalidArgument if there is none.
Result<std::string> ReadToken(const std::string& file);

// FailedPrecondition outside a job; InvalidArgument names the variable that is malformed.
Result<TaskIdentity> ReadTaskIdentity(const Environment& env);

// The addresses of a role's first ports, index 0 first. FailedPrecondition names the roles there
// are, or says that this one has no port.
Result<std::vector<std::string>> AddressesOf(const framework::ClusterDescription& cluster,
                                             std::string_view role);
// The number of tasks of a role; 0 if there is no such role.
int TaskCount(const framework::ClusterDescription& cluster, std::string_view role);

// The addresses of a role over the life of the job: SHOAL_CLUSTER_FILE is read again when it has
// changed. Thread-safe.
class RoleAddresses {
 public:
  RoleAddresses(const Environment& env, std::string role, std::vector<std::string> first);
  ~RoleAddresses();
  std::vector<std::string> Current();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shoal::bindings
