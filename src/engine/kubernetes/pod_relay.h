// A listener on this machine's loopback that forwards connections to a pod: it sends each
// connection's WebSocket request through the API server's pod proxy and then copies bytes both
// ways.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/kubernetes/kube_client.h"

namespace shoal::engine::kubernetes {

// Runs until destroyed; the destructor closes its connections.
class PodRelay {
 public:
  // `target` returns the current path of the proxy, "/api/v1/…/pods/NAME:PORT/proxy"; it is called
  // for each connection. `client` outlives the relay.
  static Result<std::unique_ptr<PodRelay>> Start(const KubeClient* client,
                                                 std::function<Result<std::string>()> target);
  virtual ~PodRelay() = default;
  virtual Endpoint endpoint() const = 0;
};

// Rewrites the head of a WebSocket request ("GET PATH HTTP/1.1 … \r\n\r\n"): path under `prefix`,
// Host `host`, and `authorization` in place of any other. InvalidArgument if it is malformed.
Result<std::string> RewriteHead(std::string_view head, const std::string& prefix,
                                const std::string& host, const std::string& authorization);

}  // namespace shoal::engine::kubernetes
