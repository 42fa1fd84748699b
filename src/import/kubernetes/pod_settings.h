// Settings of pods that concern the cluster only. They are kept in the role's section `kubernetes`,
// which other engines ignore. Used by pod_template.cc.
#pragma once

#include <string>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

// Scheduling and identity of pods: nodeSelector, tolerations, serviceAccountName, imagePullSecrets,
// priorityClassName, runtimeClassName, hostNetwork, affinity, topologySpreadConstraints,
// securityContext.
void ReadPodSettings(FieldReader* spec, job::Role* role);

// The container's securityContext.
void ReadContainerSettings(FieldReader* container, job::Role* role);

// Labels and annotations of a role's pods, or of the job itself.
void ReadPodMetadata(FieldReader* metadata, job::PodSettings* ask);

// Adds a volume of the pod to the role's kubernetes.volumes: a claim, a host path, NFS, or an empty
// directory on disk or in memory. False for any other kind, or if another volume is mounted at
// `target`. Marks the fields of `volume` that it keeps as read.
bool AddVolumeFrom(FieldReader* volume, const std::string& target, bool read_only, job::Role* role,
                   JobBuilder* builder);

// Adds a persistent volume claim by name. False as above.
bool AddVolumeClaim(const std::string& claim, const std::string& target, job::Role* role);

}  // namespace shoal::importer
