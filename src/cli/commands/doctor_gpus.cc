#include "cli/commands/doctor_gpus.h"

#include <fmt/format.h>

#include "host/gpu/gpu_lease.h"
#include "host/gpu/nvml.h"

namespace shoal::cli {
namespace {

std::string Describe(const host::GpuLeaseState& state) {
  const host::GpuState& gpu = state.gpu;
  std::string text = fmt::format("{} {}", gpu.index, gpu.name.empty() ? "(unknown)" : gpu.name);
  if (gpu.total_bytes > 0)
    text += fmt::format(", {} of {} MiB used", gpu.used_bytes >> 20, gpu.total_bytes >> 20);
  if (state.use == host::GpuUse::kLeased) text += ", leased to " + state.holder;
  if (state.use == host::GpuUse::kQuarantined) text += ", not given to tasks: " + state.reason;
  return text;
}

json::object ToJson(const host::GpuLeaseState& state) {
  static constexpr const char* kUses[] = {"free", "leased", "quarantined"};
  json::array pids;
  for (const host::GpuProcess& process : state.gpu.processes) pids.emplace_back(process.pid);
  return {{"index", state.gpu.index},
          {"uuid", state.gpu.uuid},
          {"name", state.gpu.name},
          {"total_bytes", state.gpu.total_bytes},
          {"used_bytes", state.gpu.used_bytes},
          {"uncorrected_errors", state.gpu.uncorrected_errors},
          {"pids", std::move(pids)},
          {"use", kUses[static_cast<size_t>(state.use)]},
          {"holder", state.holder},
          {"reason", state.reason}};
}

}  // namespace

// Lists each device with its use: free, leased, or quarantined with the reason.
GpuFinding FindGpus() {
  GpuFinding finding;
  const auto nvml = host::Nvml::Load();
  if (!nvml.ok()) {
    finding.usable = nvml.status().code() == Code::kNotFound;
    finding.meaning = finding.usable ? "none: " + nvml.status().message() : nvml.status().message();
    if (!finding.usable)
      finding.remedy = "install the driver that fits the kernel (nvidia-smi must answer)";
    finding.data["devices"] = json::array();
    return finding;
  }
  const auto states = host::ListGpuLeases(nvml->get(), host::GpuLeaseDir());
  if (!states.ok()) return {false, states.status().message(), "see nvidia-smi", {}};
  json::array devices;
  for (const host::GpuLeaseState& state : *states) {
    finding.meaning += (finding.meaning.empty() ? "" : "; ") + Describe(state);
    finding.usable = finding.usable && state.use != host::GpuUse::kQuarantined;
    devices.push_back(ToJson(state));
  }
  if (states->empty()) finding.meaning = "none: the NVIDIA driver lists no device";
  if (!finding.usable)
    finding.remedy = "see the reason; a device is given again as soon as it is seen to be clean";
  finding.data["devices"] = std::move(devices);
  return finding;
}

}  // namespace shoal::cli
