// The operator of `shoal server --operator`: runs the ShoalJobs of a Kubernetes cluster as jobs of
// the server (docs/operator.md).
//
//     API server ── object_watch ─▶ reconciler ◀── supervisor's events
//                                  │ one thread: finalizer, submission, scale, stop, status
//                                  ▼
//                   server_jobs ─▶ supervisor         kube_objects ─▶ API server
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/server/call.h"
#include "base/status.h"
#include "controller/engines/engine_registry.h"

namespace shoal::api {

// `backend` must outlive the operator.
struct OperatorOptions {
  const Backend* backend = nullptr;
  controller::EngineInstance cluster;   // of the kind kubernetes: the one that is watched
  std::vector<std::string> team_words;  // NAMESPACE=TEAM
};

class Operator {
 public:
  // Finds the cluster, makes the service account, and starts the threads; the API server may be
  // away. InvalidArgument, NotFound and FailedPrecondition for what can never work.
  static Result<std::unique_ptr<Operator>> Start(const OperatorOptions& options);
  // Ends the threads and gives up the lease. Jobs go on.
  virtual ~Operator() = default;
};

}  // namespace shoal::api
