// Exclusive leases of GPUs, shared by all controllers of a user on this machine.
//
//   DIR/<uuid>.lock    locked (flock) by the program that uses the device
//   DIR/<uuid>.json    the last lease: job, task, CUDA_VISIBLE_DEVICES, memory in use before it; or
//                      the reason why the device is quarantined
//
// Leases need no release: the kernel unlocks when the last process with the descriptor ends. An
// unlocked device is leased only if it is verified to be clean. Acquired in a task's own process
// (cli/internal/prepare.cc), listed by `shoal doctor`. docs/design/gpus.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "host/gpu/nvml.h"

namespace shoal::host {

// Memory above the use before a lease plus this amount belongs to a process.
inline constexpr int64_t kMemorySlack = int64_t{64} << 20;
// Memory that a driver may use on an idle device without an earlier lease.
inline constexpr int64_t kDriverMemory = int64_t{1} << 30;

// /tmp/shoal-<uid>/gpus, or $SHOAL_GPU_DIR. One directory for all state homes of a user, because
// devices are per machine.
std::filesystem::path GpuLeaseDir();

enum class GpuUse : uint8_t { kFree, kLeased, kQuarantined };

// State of one device for the report of `shoal doctor`.
struct GpuLeaseState {
  GpuState gpu;
  GpuUse use = GpuUse::kFree;
  std::string holder;  // leased: "job worker-0"
  std::string reason;  // quarantined: one sentence
};

// The leased devices of a task. Movable. The lease lasts until this object and all copies of its
// descriptors that survive exec are closed.
struct GpuLease {
  std::vector<std::string> uuids;
  std::vector<UniqueFd> locks;
  std::string visible() const;  // for CUDA_VISIBLE_DEVICES
};

// State of each device; changes nothing. One pass over /proc for each device that had a lease.
Result<std::vector<GpuLeaseState>> ListGpuLeases(Nvml* nvml, const std::filesystem::path& dir);

// Leases `count` devices, all or none. A device qualifies if it is unlocked and clean: it responds,
// has no uncorrected errors, no process uses it, no process of its last lease is alive, and its
// memory is free again. ResourceExhausted lists every other device with the reason. Unlocked
// devices that are not clean are recorded as quarantined until they are clean.
Result<GpuLease> AcquireGpus(Nvml* nvml, const std::filesystem::path& dir, int count,
                             const std::string& holder);

}  // namespace shoal::host
