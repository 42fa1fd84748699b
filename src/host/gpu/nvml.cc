#include "host/gpu/nvml.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace shoal::host {
namespace {

// The used part of nvml.h (driver 450 and later).
using Device = void*;
constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;
constexpr unsigned kUncorrected = 1;
constexpr unsigned kVolatile = 0;
constexpr unsigned kMostProcesses = 1024;
constexpr unsigned kMostDevices = 1024;

struct Memory {
  unsigned long long total, free, used;
};
struct Process {  // _v2 and _v3
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
constexpr unsigned long long kUnknownBytes = ~0ULL;

// The functions that are looked up in the library.
struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error)(int) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;
  int (*errors)(Device, unsigned, unsigned, unsigned long long*) = nullptr;
  int (*computing)(Device, unsigned*, Process*) = nullptr;
  int (*drawing)(Device, unsigned*, Process*) = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  return *function != nullptr;
}

const char* FindAll(void* library, Functions* f) {
  if (!Find(library, "nvmlInit_v2", &f->init)) return "nvmlInit_v2";
  if (!Find(library, "nvmlShutdown", &f->shutdown)) return "nvmlShutdown";
  if (!Find(library, "nvmlErrorString", &f->error)) return "nvmlErrorString";
  if (!Find(library, "nvmlDeviceGetCount_v2", &f->count)) return "nvmlDeviceGetCount_v2";
  if (!Find(library, "nvmlDeviceGetHandleByIndex_v2", &f->device))
    return "nvmlDeviceGetHandleByIndex_v2";
  if (!Find(library, "nvmlDeviceGetUUID", &f->uuid)) return "nvmlDeviceGetUUID";
  if (!Find(library, "nvmlDeviceGetName", &f->name)) return "nvmlDeviceGetName";
  if (!Find(library, "nvmlDeviceGetMemoryInfo", &f->memory)) return "nvmlDeviceGetMemoryInfo";
  if (!Find(library, "nvmlDeviceGetTotalEccErrors", &f->errors))
    return "nvmlDeviceGetTotalEccErrors";
  if (!Find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &f->computing) &&
      !Find(library, "nvmlDeviceGetComputeRunningProcesses_v2", &f->computing))
    return "nvmlDeviceGetComputeRunningProcesses_v3";
  if (!Find(library, "nvmlDeviceGetGraphicsRunningProcesses_v3", &f->drawing) &&
      !Find(library, "nvmlDeviceGetGraphicsRunningProcesses_v2", &f->drawing))
    return "nvmlDeviceGetGraphicsRunningProcesses_v3";
  return nullptr;
}

// The library, loaded and initialized; the destructor unloads it.
class LoadedNvml final : public Nvml {
 public:
  LoadedNvml(void* library, Functions functions) : library_(library), f_(functions) {}
  ~LoadedNvml() override {
    f_.shutdown();
    ::dlclose(library_);
  }

  Result<std::vector<GpuState>> List() override {
    unsigned count = 0;
    if (const int error = f_.count(&count); error != kSuccess)
      return Unavailable("the GPUs cannot be counted: " + std::string(f_.error(error)));
    std::vector<GpuState> gpus;
    for (unsigned i = 0; i < count && i < kMostDevices; ++i) {
      GpuState gpu;
      gpu.index = static_cast<int>(i);
      if (const int error = Read(i, &gpu); error != kSuccess) gpu.trouble = f_.error(error);
      gpus.push_back(std::move(gpu));
    }
    return gpus;
  }

 private:
  int Read(unsigned index, GpuState* gpu) {
    Device device = nullptr;
    char text[128] = "";
    if (const int error = f_.device(index, &device); error != kSuccess) return error;
    if (const int error = f_.uuid(device, text, sizeof text); error != kSuccess) return error;
    text[sizeof text - 1] = '\0';
    gpu->uuid = text;
    if (const int error = f_.name(device, text, sizeof text); error != kSuccess) return error;
    text[sizeof text - 1] = '\0';
    gpu->name = text;
    Memory memory{};
    if (const int error = f_.memory(device, &memory); error != kSuccess) return error;
    gpu->total_bytes = static_cast<int64_t>(memory.total);
    gpu->used_bytes = static_cast<int64_t>(memory.used);
    unsigned long long errors = 0;
    const int counted = f_.errors(device, kUncorrected, kVolatile, &errors);
    if (counted == kSuccess) gpu->uncorrected_errors = static_cast<int64_t>(errors);
    if (counted != kSuccess && counted != kNotSupported) return counted;
    if (const int error = ReadProcesses(f_.computing, device, gpu); error != kSuccess) return error;
    return ReadProcesses(f_.drawing, device, gpu);
  }

  static int ReadProcesses(int (*list)(Device, unsigned*, Process*), Device device, GpuState* gpu) {
    unsigned count = kMostProcesses;
    std::vector<Process> processes(count);
    const int error = list(device, &count, processes.data());
    if (error == kNotSupported) return kSuccess;
    if (error != kSuccess && error != kInsufficientSize) return error;
    if (error == kInsufficientSize)
      count = kMostProcesses;  // more processes than fit: these suffice to see that it is used
    for (unsigned i = 0; i < count && i < kMostProcesses; ++i) {
      const bool known = processes[i].used != kUnknownBytes;
      gpu->processes.push_back(
          {processes[i].pid, known ? static_cast<int64_t>(processes[i].used) : 0});
    }
    return kSuccess;
  }

  void* const library_;
  const Functions f_;
};

}  // namespace

Result<std::unique_ptr<Nvml>> Nvml::Load(const std::string& path) {
  const char* set = std::getenv("SHOAL_NVML");
  const std::string file = !path.empty()                    ? path
                           : set != nullptr && *set != '\0' ? set
                                                            : "libnvidia-ml.so.1";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return NotFound("there is no NVIDIA driver on this machine (" + file + " cannot be loaded)");
  Functions functions;
  if (const char* missing = FindAll(library, &functions); missing != nullptr) {
    ::dlclose(library);
    return Unavailable(file + " has no " + missing +
                       "; a driver of version 450 or later is needed");
  }
  if (const int error = functions.init(); error != kSuccess) {
    const std::string text = functions.error(error);
    ::dlclose(library);
    return Unavailable("the NVIDIA driver does not answer: " + text + "; see nvidia-smi");
  }
  return std::unique_ptr<Nvml>(std::make_unique<LoadedNvml>(library, functions));
}

int CountGpus() {
  int count = 0;
  if (const auto nvml = Nvml::Load(); nvml.ok()) {
    const auto gpus = (*nvml)->List();
    for (const GpuState& gpu : gpus.value_or({})) count += gpu.trouble.empty() ? 1 : 0;
    return count;
  }
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator it("/proc/driver/nvidia/gpus", error);
       !error && it != end; it.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace shoal::host
