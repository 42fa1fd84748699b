// Replaces NVIDIA's library in tests: its devices are the lines of the file $FAKE_NVML,
// read again at each call,
//
//   UUID NAME TOTAL_MIB USED_MIB ERRORS TROUBLE PIDS…
//
// TROUBLE is NVML's error code for the device (0: none, 15: lost), ERRORS -1 where they are not
// counted.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Device {
  std::string uuid, name;
  unsigned long long total = 0, used = 0;
  long long errors = 0;
  int trouble = 0;
  std::vector<unsigned> pids;
};

std::vector<Device> Read() {
  std::vector<Device> devices;
  const char* path = std::getenv("FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Device device;
    words >> device.uuid >> device.name >> device.total >> device.used >> device.errors >>
        device.trouble;
    for (unsigned pid = 0; words >> pid;) device.pids.push_back(pid);
    devices.push_back(device);
  }
  return devices;
}

// A handle is the number plus one.
Device Of(void* handle) { return Read().at(reinterpret_cast<size_t>(handle) - 1); }

struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};

}  // namespace

extern "C" {
int nvmlInit_v2() { return std::getenv("FAKE_NVML") == nullptr ? 9 : 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int error) {
  return error == 15  ? "GPU is lost"
         : error == 9 ? "Driver Not Loaded"
         : error == 0 ? "Success"
                      : "Unknown Error";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(Read().size());
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return 0;
}
int nvmlDeviceGetUUID(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "%s", Of(handle).uuid.c_str());
  return 0;
}
int nvmlDeviceGetName(void* handle, char* text, unsigned size) {
  std::snprintf(text, size, "%s", Of(handle).name.c_str());
  return Of(handle).trouble;
}
int nvmlDeviceGetMemoryInfo(void* handle, unsigned long long* memory) {
  const Device device = Of(handle);
  memory[0] = device.total << 20;
  memory[2] = device.used << 20;
  memory[1] = memory[0] - memory[2];
  return 0;
}
int nvmlDeviceGetTotalEccErrors(void* handle, unsigned /*type*/, unsigned /*counter*/,
                                unsigned long long* errors) {
  const long long counted = Of(handle).errors;
  *errors = static_cast<unsigned long long>(counted);
  return counted < 0 ? 3 : 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, Process* processes) {
  const Device device = Of(handle);
  const bool fit = device.pids.size() <= *count;
  for (size_t i = 0; i < device.pids.size() && i < *count; ++i)
    processes[i] = {device.pids[i], 1 << 20, 0, 0};
  *count = static_cast<unsigned>(device.pids.size());
  return fit ? 0 : 7;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void* /*handle*/, unsigned* count,
                                             Process* /*processes*/) {
  *count = 0;
  return 3;
}
}
