// What pods of a foreign file ask of the cluster itself: kept in the section `kubernetes` of the
// role, which other engines ignore. Used by kubernetes.cc.
#pragma once

#include <string>

#include "import/conversion/importer.h"

namespace shoal::importer {

// Where pods may run and as whom: nodeSelector, tolerations, serviceAccountName, imagePullSecrets,
// priorityClassName, runtimeClassName, hostNetwork, affinity, topologySpreadConstraints,
// securityContext.
void ReadPodSettings(FieldReader* spec, job::Role* role);

// The container's own securityContext, likewise.
void ReadContainerSettings(FieldReader* container, job::Role* role);

// The labels and annotations of a role's pods, or of the job itself.
void ReadPodMetadata(FieldReader* metadata, job::PodSettings* ask);

// A volume of the pod's as an entry of the role's kubernetes.volumes: a claim, a path of the host,
// NFS, or an empty directory, in memory or not. False if it is none of these, or another volume is
// at that path. `volume`: of the pod; reads the fields that it keeps.
bool AddVolumeFrom(FieldReader* volume, const std::string& target, bool read_only, job::Role* role,
                   JobBuilder* builder);

// The same for a claim by its name.
bool AddVolumeClaim(const std::string& claim, const std::string& target, job::Role* role);

// What all roles ask alike becomes what the job asks, as far as its coordinator may have it too:
// where pods run and what they are called, but no account, no volume and no network of the nodes.
void HoistCommonSettings(job::Job* job);

}  // namespace shoal::importer
