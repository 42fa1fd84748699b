// Commands in pods and streams to their ports, through the API server. Used by
// kubernetes_engine.cc.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/kubernetes/kube_client.h"

namespace shoal::engine::kubernetes {

// `pod`: the path of one, "/api/v1/namespaces/NS/pods/NAME". `argv`: EnterCommandArgv.
Result<std::unique_ptr<Execution>> ExecInPod(const KubeClient* client, const std::string& pod,
                                             const std::vector<std::string>& argv,
                                             const ExecSpec& spec);
// A socket; a thread of its own carries bytes until either side ends. Unavailable if nobody listens
// there.
Result<UniqueFd> DialPod(const KubeClient* client, const std::string& pod, uint16_t port);

// How a command ended, from the Status that is the last the server says of it.
Result<ExecEnd> DecodeExecStatus(std::string_view text);

}  // namespace shoal::engine::kubernetes
