// The entries of `kubernetes.volumes` of a job file as volumes of pods. Pure. Used by objects.cc.
#pragma once

#include <string>

#include "base/json.h"
#include "job/spec/kubernetes.h"

namespace shoal::engine::kubernetes {

// Where a task finds shared memory: ours, unless the job mounts something there.
inline constexpr const char* kSharedMemory = "/dev/shm";

// "pvc:CLAIM:/TARGET[:ro]", "host:/PATH:/TARGET[:ro]", "nfs:SERVER:/PATH:/TARGET[:ro]",
// "empty:[SIZE:]/TARGET", "memory:[SIZE:]/TARGET": the volume and where it is mounted.
struct PodVolume {
  json::object source;  // of the pod's volume
  std::string target;   // without "." and doubled '/', and none at its end
  bool read_only = false;
};
Result<PodVolume> ParsePodVolume(const std::string& text);

// What of a role's volumes no pod can have: two at one place, ours among them.
Status CheckPodVolumes(const job::PodSettings& ask);

}  // namespace shoal::engine::kubernetes
