// What a job file's variables say of the cluster (job/spec/cluster_reference.h), filled in for one
// task. Used by RenderEnvironment, before anything that Shoal or the framework sets.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

// Replaces every reference in the values of `env`. Tasks that are not there (elastic roles) are
// left out of lists and counted. InvalidArgument names the variable: a role that is not in the
// cluster, addresses of a role without ports.
Status ExpandClusterReferences(const ClusterDescription& cluster, const TaskContext& task,
                               Environment* env);

}  // namespace shoal::framework
