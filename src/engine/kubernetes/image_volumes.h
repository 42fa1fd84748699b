// Detects whether a cluster can mount an image as a volume. Pods of other images then get the
// launcher without a copy. Used by kubernetes_engine.cc.
#pragma once

#include <string>

#include "base/json.h"
#include "engine/kubernetes/kube_client.h"

namespace shoal::engine::kubernetes {

// Decides by the versions of server and nodes: every node needs containerd 2.1 or later and a
// kubelet with the feature enabled, which is the default from 1.35 on and optional in 1.33
// and 1.34. `version`: response of /version; `nodes`: a NodeList, not empty.
bool NodesMountImages(const json::object& version, const json::object& nodes);

// Asks the server, including a dry run of a Job with such a volume in `name_space`. Also false if
// the nodes cannot be listed.
bool MountsImages(const KubeClient& client, const std::string& name_space);

}  // namespace shoal::engine::kubernetes
