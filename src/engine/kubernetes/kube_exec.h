// Commands in pods and connections to their ports, through the API server. Used by
// kubernetes_engine.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/kubernetes/kube_client.h"

namespace shoal::engine::kubernetes {

// `pod`: path "/api/v1/namespaces/NS/pods/NAME". `argv`: result of EnterCommandArgv. `client`
// outlives the result.
Result<std::unique_ptr<Execution>> ExecInPod(const KubeClient* client, const std::string& pod,
                                             const std::vector<std::string>& argv,
                                             const ExecSpec& spec);
// Returns a socket; a detached thread copies bytes until either side ends. Unavailable if no
// process listens on the port.
Result<UniqueFd> DialPod(const KubeClient* client, const std::string& pod, uint16_t port);

// How a command ended, from the Status object that the server sends last.
Result<ExecEnd> DecodeExecStatus(std::string_view text);

}  // namespace shoal::engine::kubernetes
