// What pods of a foreign file ask of the cluster itself: kept in the job file's section
// `kubernetes`, which other engines ignore. Used by kubernetes.cc.
#pragma once

#include <string>

#include "dialect/import/importer.h"

namespace shoal::dialect {

// Where pods may run and as whom: nodeSelector, tolerations, serviceAccountName, imagePullSecrets,
// priorityClassName, hostNetwork, affinity, topologySpreadConstraints, securityContext. A job has
// one of each for all its tasks: what roles say differently is a loss.
void KeepPodWishes(Section* spec, JobBuilder* builder);

// The container's own securityContext, likewise.
void KeepContainerWishes(Section* container, JobBuilder* builder);

// The labels and annotations of a pod, or of the job itself.
void KeepPodMetadata(Section* metadata, JobBuilder* builder);

// A volume of the pod's as an entry of kubernetes.volumes, for all tasks of the job: a claim, a
// path of the host, NFS, or an empty directory of a size. False if it is none of these, or another
// volume is at that path. `volume`: of the pod; reads the fields that it keeps.
bool KeepVolume(Section* volume, const std::string& target, bool read_only, JobBuilder* builder);

}  // namespace shoal::dialect
