// Parses the entries of a job file's `kubernetes.volumes`. Pure. Used by objects.cc.
#pragma once

#include <string>

#include "base/json.h"
#include "job/spec/kubernetes.h"

namespace shoal::engine::kubernetes {

// Mount point of shared memory, unless the job mounts a volume there.
inline constexpr const char* kSharedMemory = "/dev/shm";

// "pvc:CLAIM:/TARGET[:ro]", "host:/PATH:/TARGET[:ro]", "nfs:SERVER:/PATH:/TARGET[:ro]",
// "empty:[SIZE:]/TARGET", "memory:[SIZE:]/TARGET": the volume and where it is mounted.
struct PodVolume {
  json::object source;  // source fields of the pod's volume
  std::string target;   // normalized: no ".", no doubled or trailing '/'
  bool read_only = false;
};
Result<PodVolume> ParsePodVolume(const std::string& text);

// InvalidArgument if two volumes of a role, or one of them and Shoal's own, have the same target.
Status CheckPodVolumes(const job::PodSettings& ask);

}  // namespace shoal::engine::kubernetes
