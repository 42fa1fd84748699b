// Whether a cluster mounts an image as a volume, by which pods of other images get the launcher
// without a copy. Used by kubernetes_engine.cc.
#pragma once

#include <string>

#include "base/json.h"
#include "engine/kubernetes/kube_client.h"

namespace shoal::engine::kubernetes {

// By what the nodes say of themselves and the server's version: each node's runtime is containerd
// 2.1 or later, and its kubelet has the feature on: by default from 1.35 on, else if the server has
// been given it (1.33, 1.34). `version`: of /version; `nodes`: a NodeList, not empty.
bool NodesMountImages(const json::object& version, const json::object& nodes);

// Asks the server; one of the requests is a dry run of a Job with such a volume in `name_space`.
// False as well if it cannot be known: not allowed to see nodes, no answer.
bool MountsImages(const KubeClient& client, const std::string& name_space);

}  // namespace shoal::engine::kubernetes
