// A door on this machine's loopback through which the controller reaches a pod: each connection's
// WebSocket request goes on through the API server's pod proxy, then bytes are carried both ways.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/kubernetes/kube_client.h"

namespace shoal::engine::kubernetes {

// Runs until destroyed; its connections end then.
class PodRelay {
 public:
  // `target`: the path of the proxy now, "/api/v1/…/pods/NAME:PORT/proxy", asked for each
  // connection. `client` outlives the relay.
  static Result<std::unique_ptr<PodRelay>> Start(const KubeClient* client,
                                                 std::function<Result<std::string>()> target);
  virtual ~PodRelay() = default;
  virtual Endpoint endpoint() const = 0;
};

// The head of a WebSocket request ("GET PATH HTTP/1.1 … \r\n\r\n") as it is sent on: under
// `prefix`, to `host`, with our own authorization in place of any other. InvalidArgument if it is
// none.
Result<std::string> RewriteHead(std::string_view head, const std::string& prefix,
                                const std::string& host, const std::string& authorization);

}  // namespace shoal::engine::kubernetes
