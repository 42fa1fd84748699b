// ShoalJobs over the Kubernetes API: the requests behind ShoalJobApi and ObjectFeed.
#pragma once

#include <memory>
#include <string>

#include "api/operator/object_watch.h"
#include "api/operator/reconciler.h"
#include "base/clock.h"
#include "engine/kubernetes/kube_client.h"

namespace shoal::api {

// Both outlive the result. Calls end early after the client's Shutdown.
std::unique_ptr<ShoalJobApi> MakeKubeObjects(const engine::kubernetes::KubeClient* client,
                                             const Clock* clock);

// The objects of a namespace, or of the cluster if it is empty.
class KubeFeed : public ObjectFeed {
 public:
  // Ends List, Watch and Pause at once, and from then on. Any thread.
  virtual void End() = 0;
};
// `client` is the feed's own and outlives it.
std::unique_ptr<KubeFeed> MakeKubeFeed(engine::kubernetes::KubeClient* client,
                                       const std::string& name_space);

// What a merge patch (RFC 7386) must say to make `to` of `from`. Pure.
json::object MergeChange(const json::object& from, const json::object& to);

}  // namespace shoal::api
