// What NVIDIA's management library says of this machine's GPUs. Loaded when it is asked for, so
// that Shoal needs neither driver nor headers; tests load a fake one. Used by gpu_lease.cc, the
// local engine and `shoal doctor`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::host {

struct GpuProcess {
  int64_t pid = 0;  // as the machine's first PID namespace numbers it
  int64_t bytes = 0;
};

struct GpuState {
  int index = 0;
  std::string uuid;  // "GPU-…"; empty if the device does not answer even that
  std::string name;
  int64_t total_bytes = 0;
  int64_t used_bytes = 0;             // what the driver itself holds included
  std::vector<GpuProcess> processes;  // that compute or draw on it
  int64_t uncorrected_errors =
      -1;               // of its memory since the driver was loaded; -1: it does not count them
  std::string trouble;  // why it cannot be used ("GPU is lost"); empty: it answers
};

// Thread-compatible.
class Nvml {
 public:
  // `path`: of the library; empty: $SHOAL_NVML, else libnvidia-ml.so.1. NotFound if there is none,
  // Unavailable if there is, but no driver behind it. About 20 ms with a driver.
  static Result<std::unique_ptr<Nvml>> Load(const std::string& path = "");
  virtual ~Nvml() = default;

  // Every device, in NVML's order. A device that does not answer is listed with its trouble, never
  // left out.
  virtual Result<std::vector<GpuState>> List() = 0;
};

// Devices of this machine that answer; without the management library, what the driver lists.
int CountGpus();

}  // namespace shoal::host
