// GPUs of this machine by NVIDIA's management library. The library is loaded at run time, so Shoal
// needs neither driver nor headers; tests load a fake one. Used by gpu_lease.cc, the local engine
// and `shoal doctor`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::host {

// A process that uses a device.
struct GpuProcess {
  int64_t pid = 0;  // in the machine's initial PID namespace
  int64_t bytes = 0;
};

// State of one device.
struct GpuState {
  int index = 0;
  std::string uuid;  // "GPU-…"; empty if the device does not respond
  std::string name;
  int64_t total_bytes = 0;
  int64_t used_bytes = 0;             // includes the driver's own use
  std::vector<GpuProcess> processes;  // with a compute or graphics context
  int64_t uncorrected_errors = -1;    // memory errors since the driver was loaded; -1: not counted
  std::string trouble;                // why it cannot be used ("GPU is lost"); empty: it works
};

// Thread-compatible.
class Nvml {
 public:
  // `path` of the library; empty: $SHOAL_NVML, else libnvidia-ml.so.1. NotFound if it does not
  // exist, Unavailable if it exists but the driver does not run. About 20 ms with a driver.
  static Result<std::unique_ptr<Nvml>> Load(const std::string& path = "");
  virtual ~Nvml() = default;

  // All devices in NVML's order. A device that does not respond is included, with `trouble` set.
  virtual Result<std::vector<GpuState>> List() = 0;
};

// Number of working devices of this machine; without the management library, of the driver's list.
int CountGpus();

}  // namespace shoal::host
