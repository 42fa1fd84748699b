#include "host/gpu/gpu_lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "base/json.h"
#include "base/private_files.h"
#include "host/process/process_usage.h"

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRecord = 64 << 10;
constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

// Contents of DIR/<uuid>.json.
struct Record {
  std::string holder;
  std::string visible;      // of the last lease; empty: there was none
  int64_t idle_bytes = -1;  // in use before it; -1: unknown
  std::string quarantine;   // reason
};

// Checks that NVML's text can be used as a file name.
bool IsPlainUuid(const std::string& uuid) {
  return !uuid.empty() && uuid.size() <= 96 &&
         std::all_of(uuid.begin(), uuid.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

// A damaged record counts as none: only the current state is used then.
Record ReadRecord(const fs::path& dir, const std::string& uuid) {
  Record record;
  const auto text = ReadFile(dir / (uuid + ".json"), kMaxRecord);
  if (!text.ok()) return record;
  const auto object = ParseJsonObject(*text);
  if (!object.ok()) return record;
  record.holder = GetStringOr(*object, "holder", "");
  record.visible = GetStringOr(*object, "visible", "");
  record.idle_bytes = GetIntOr(*object, "idle_bytes", -1);
  record.quarantine = GetStringOr(*object, "quarantine", "");
  return record;
}

Status WriteRecord(const fs::path& dir, const std::string& uuid, const Record& record) {
  const json::object object{{"holder", record.holder},
                            {"visible", record.visible},
                            {"idle_bytes", record.idle_bytes},
                            {"quarantine", record.quarantine}};
  return WriteFileAtomically(dir / (uuid + ".json"), shoal::ToText(object) + "\n", 0600, false);
}

std::string Mebibytes(int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Why the device must not be leased; empty: it is clean. The device is not locked by a lease.
std::string Unclean(const GpuState& gpu, const Record& record) {
  if (!gpu.trouble.empty())
    return "it does not answer (" + gpu.trouble + "); reset it or start the machine again";
  if (gpu.uncorrected_errors > 0)
    return "it has had " + std::to_string(gpu.uncorrected_errors) +
           " uncorrected memory errors; reset it, and replace it if they come again";
  if (!gpu.processes.empty()) {
    const int64_t pid = gpu.processes.front().pid;
    return "process " + std::to_string(pid) + " is on it" +
           (gpu.processes.size() > 1 ? " and " + std::to_string(gpu.processes.size() - 1) + " more"
                                     : "") +
           "; end it, or wait for its end";
  }
  if (!record.visible.empty()) {
    const std::vector<pid_t> left = ProcessesWithVariable(kVisible, record.visible);
    if (!left.empty())
      return "process " + std::to_string(left.front()) + " of its last lease (" + record.holder +
             ") still lives; shoal doctor --clean ends what dead jobs have left";
  }
  const int64_t idle = record.idle_bytes >= 0 ? record.idle_bytes + kMemorySlack : kDriverMemory;
  if (gpu.used_bytes > idle)
    return Mebibytes(gpu.used_bytes) +
           " of its memory are in use, though no process is to be seen; expected at most " +
           Mebibytes(idle);
  return {};
}

// Creates the directory if needed; checks that it belongs to this user.
Status CheckDir(const fs::path& dir) {
  TRY(MakeDirectories(dir, 0700));
  // The owner of /tmp/shoal-UID could replace the directory in it.
  if (const Status own = CheckOwnDirectory(dir.parent_path()); !own.ok())
    return PermissionDenied(own.message() + "; remove it, or set SHOAL_GPU_DIR");
  struct stat info {};
  if (::lstat(dir.c_str(), &info) != 0) return ErrnoStatus(errno, dir.string());
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return PermissionDenied(dir.string() +
                            " is not a directory of this user; remove it, or set SHOAL_GPU_DIR");
  return Status::Ok();
}

struct Candidate {
  const GpuState* gpu;
  Record record;
  UniqueFd lock;
};

// Leases one device, or returns the reason why not.
Result<Candidate> TryOne(const GpuState& gpu, const fs::path& dir) {
  if (!IsPlainUuid(gpu.uuid)) return Unavailable(Unclean(gpu, {}) + gpu.uuid);
  Candidate one{&gpu, {}, {}};
  TRY_ASSIGN(one.lock, OpenFile(dir / (gpu.uuid + ".lock"), O_RDWR | O_CREAT, 0600));
  const bool locked = ::flock(one.lock.get(), LOCK_EX | LOCK_NB) == 0;
  one.record = ReadRecord(dir, gpu.uuid);
  if (!locked) return Unavailable("it is leased to " + one.record.holder);
  const std::string unclean = Unclean(gpu, one.record);
  if (unclean != one.record.quarantine) {
    one.record.quarantine = unclean;
    TRY(WriteRecord(dir, gpu.uuid, one.record));
  }
  if (!unclean.empty()) return Unavailable("it is quarantined: " + unclean);
  return one;
}

}  // namespace

fs::path GpuLeaseDir() {
  const char* set = std::getenv("SHOAL_GPU_DIR");
  if (set != nullptr && *set == '/') return set;
  return "/tmp/shoal-" + std::to_string(::geteuid()) + "/gpus";
}

std::string GpuLease::visible() const {
  std::string list;
  for (const std::string& uuid : uuids) list += (list.empty() ? "" : ",") + uuid;
  return list;
}

Result<std::vector<GpuLeaseState>> ListGpuLeases(Nvml* nvml, const fs::path& dir) {
  TRY_ASSIGN(std::vector<GpuState> gpus, nvml->List());
  std::vector<GpuLeaseState> states;
  for (GpuState& gpu : gpus) {
    GpuLeaseState state;
    const Record record = IsPlainUuid(gpu.uuid) ? ReadRecord(dir, gpu.uuid) : Record();
    auto lock = OpenFile(dir / (gpu.uuid + ".lock"), O_RDWR);
    if (lock.ok() && ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0) {
      state.use = GpuUse::kLeased;
      state.holder = record.holder;
    } else if (std::string reason = Unclean(gpu, record); !reason.empty()) {
      state.use = GpuUse::kQuarantined;
      state.reason = std::move(reason);
    }
    state.gpu = std::move(gpu);
    states.push_back(std::move(state));
  }
  return states;
}

Result<GpuLease> AcquireGpus(Nvml* nvml, const fs::path& dir, int count,
                             const std::string& holder) {
  TRY(CheckDir(dir));
  // Serialized: two tasks that each need all devices would otherwise both get some and both
  // fail.
  TRY_ASSIGN(const UniqueFd turn, OpenFile(dir / "lock", O_RDWR | O_CREAT, 0600));
  while (::flock(turn.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoStatus(errno, "cannot lock " + dir.string());
  }
  TRY_ASSIGN(const std::vector<GpuState> gpus, nvml->List());
  std::vector<Candidate> taken;
  std::string others;
  for (const GpuState& gpu : gpus) {
    if (static_cast<int>(taken.size()) == count) break;
    auto one = TryOne(gpu, dir);
    if (one.ok()) {
      taken.push_back(std::move(*one));
    } else {
      others += "; GPU " + std::to_string(gpu.index) + ": " + one.status().message();
    }
  }
  if (static_cast<int>(taken.size()) < count)
    return ResourceExhausted(holder + " asks for " + std::to_string(count) + " GPU" +
                             (count == 1 ? "" : "s") + ", " + std::to_string(taken.size()) +
                             " of " + std::to_string(gpus.size()) + " can be had" + others);
  GpuLease lease;
  for (const Candidate& one : taken) lease.uuids.push_back(one.gpu->uuid);
  for (Candidate& one : taken) {
    // The minimum ever seen, so that small leaks do not raise the value that counts as
    // normal.
    const int64_t used = one.gpu->used_bytes;
    const int64_t idle = one.record.idle_bytes < 0 ? used : std::min(used, one.record.idle_bytes);
    one.record = {holder, lease.visible(), idle, ""};
    TRY(WriteRecord(dir, one.gpu->uuid, one.record));
    lease.locks.push_back(std::move(one.lock));
  }
  return lease;
}

}  // namespace shoal::host
