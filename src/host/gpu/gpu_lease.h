// Who has which GPU: exclusive leases by device, shared by all controllers of a user on this
// machine.
//
//   DIR/<uuid>.lock    locked (flock) by the program that has the device, and by nobody else
//   DIR/<uuid>.json    the last lease: job, task, the value of CUDA_VISIBLE_DEVICES, memory in use
//   before it; or why the
//                      device is not given to anybody
//
// Nothing has to be given back: the kernel unlocks with the last process that has the descriptor.
// That a device is free is not believed because it is unlocked, but because it is seen to be clean.
// Taken in a task's own process (cli/internal/prepare.cc), listed by `shoal doctor`.
// docs/design/gpus.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "host/gpu/nvml.h"

namespace shoal::host {

// More than this beside what was in use before a lease is somebody's memory.
inline constexpr int64_t kMemorySlack = int64_t{64} << 20;
// What a driver may hold of an idle device of which nothing else is known.
inline constexpr int64_t kDriverMemory = int64_t{1} << 30;

// /tmp/shoal-<uid>/gpus, or $SHOAL_GPU_DIR: one for all state homes of a user, for the devices are
// the machine's.
std::filesystem::path GpuLeaseDir();

enum class GpuUse : uint8_t { kFree, kLeased, kQuarantined };

struct GpuLeaseState {
  GpuState gpu;
  GpuUse use = GpuUse::kFree;
  std::string holder;  // leased: "job worker-0"
  std::string reason;  // quarantined: one sentence
};

// Devices of one task. Movable. As long as it, or a copy of a descriptor that exec left open, is
// open, nobody else gets them.
struct GpuLease {
  std::vector<std::string> uuids;
  std::vector<UniqueFd> locks;
  std::string visible() const;  // for CUDA_VISIBLE_DEVICES
};

// How each device stands, without changing anything. One pass over /proc for each device that had a
// lease.
Result<std::vector<GpuLeaseState>> ListGpuLeases(Nvml* nvml, const std::filesystem::path& dir);

// `count` devices that are unlocked and provably clean: they answer, have no uncorrected errors, no
// process is on them nor lives that had them in an earlier lease, and their memory is back. All or
// none. ResourceExhausted names each device that was not given and why; what is unlocked but not
// clean is written down as quarantined, until it is seen to be clean.
Result<GpuLease> AcquireGpus(Nvml* nvml, const std::filesystem::path& dir, int count,
                             const std::string& holder);

}  // namespace shoal::host
