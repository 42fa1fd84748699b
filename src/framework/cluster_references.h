// Expands references to the cluster ("${worker.addresses}" and others,
// job/spec/cluster_reference.h) in a job file's environment variables for one task.
//
// Called by RenderEnvironment before Shoal's and the framework's own variables are added.
#pragma once

#include "framework/framework_environment.h"

namespace shoal::framework {

// Replaces every reference in the values of `env`. Absent tasks of elastic roles are left out of
// lists, but included in counts. InvalidArgument names the variable that refers to a role outside
// the cluster, or to addresses of a role without ports. On an error `env` may be partly expanded.
Status ExpandClusterReferences(const ClusterDescription& cluster, const TaskContext& task,
                               Environment* env);

}  // namespace shoal::framework
