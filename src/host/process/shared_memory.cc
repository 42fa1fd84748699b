#include "host/process/shared_memory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <sstream>
#include <string_view>

namespace shoal::host {
namespace {

namespace fs = std::filesystem;

std::string OwnPrefix() { return "shoal." + std::to_string(::geteuid()) + "."; }

bool IsOurDirectory(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

// False if its name is gone: its previous owner has removed it.
bool HasName(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

UniqueFd OpenDirectory(const fs::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Removes a directory with its files if no other process has it locked.
bool RemoveUnused(const fs::path& path, int64_t* bytes, bool remove) {
  const UniqueFd fd = OpenDirectory(path);
  if (!fd.valid() || !IsOurDirectory(fd.get())) return false;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !HasName(fd.get())) return false;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    if (it->is_regular_file(gone) && !it->is_symlink(gone))
      *bytes += static_cast<int64_t>(it->file_size(gone));
  }
  if (remove) fs::remove_all(path, error);
  return true;
}

}  // namespace

Result<JobSharedMemory> JobSharedMemory::Open(const std::string& job_id, const fs::path& root) {
  if (job_id.empty() || job_id.find('/') != std::string::npos)
    return InvalidArgument("shared memory: got the job id '" + job_id + "', expected a name");
  static std::atomic<bool> swept{false};
  if (!swept.exchange(true)) (void)FindOrphanedSharedMemory(true, root);
  JobSharedMemory memory;
  memory.path_ = root / (OwnPrefix() + job_id);
  // Another tree of the job, or a sweep, may remove it between the two calls.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    constexpr mode_t kAsTheMachines = 01777;  // programs may run as other users
    const bool made = ::mkdir(memory.path_.c_str(), 0700) == 0;
    if (!made && errno != EEXIST) return ErrnoStatus(errno, "cannot make " + memory.path_.string());
    memory.lock_ = OpenDirectory(memory.path_);
    if (!memory.lock_.valid() && errno == ENOENT) continue;
    if (!memory.lock_.valid() || !IsOurDirectory(memory.lock_.get())) {
      const std::string path = memory.path_;
      memory.path_.clear();
      return PermissionDenied(path + " is not a directory of this user");
    }
    if (made) ::fchmod(memory.lock_.get(), kAsTheMachines);
    if (::flock(memory.lock_.get(), LOCK_SH) == 0 && HasName(memory.lock_.get())) return memory;
  }
  const std::string path = memory.path_;
  memory.path_.clear();
  return Unavailable("cannot keep " + path + ": it keeps being removed");
}

JobSharedMemory& JobSharedMemory::operator=(JobSharedMemory&& other) noexcept {
  if (this == &other) return *this;
  Release();
  path_ = std::exchange(other.path_, fs::path());
  lock_ = std::move(other.lock_);
  return *this;
}

void JobSharedMemory::Release() {
  if (path_.empty()) return;
  lock_.Reset();
  int64_t bytes = 0;
  (void)RemoveUnused(path_, &bytes, true);
  path_.clear();
}

std::vector<OrphanedSharedMemory> FindOrphanedSharedMemory(bool remove, const fs::path& root) {
  std::vector<OrphanedSharedMemory> left;
  const std::string prefix = OwnPrefix();
  std::error_code error;
  for (fs::directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!name.starts_with(prefix)) continue;
    OrphanedSharedMemory one{name.substr(prefix.size()), it->path(), 0};
    if (RemoveUnused(one.path, &one.bytes, remove)) left.push_back(std::move(one));
  }
  std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.job < b.job; });
  return left;
}

bool NeedsHostSharedMemory(const std::vector<std::string>& argv,
                           const std::vector<std::string>& env, const std::string& work_dir) {
  const auto names = [](const std::string& text) {
    return text.find(kSharedMemoryRoot) != std::string::npos;
  };
  const bool cuda = std::any_of(env.begin(), env.end(), [](const std::string& entry) {
    return entry.starts_with("CUDA_MPS_PIPE_DIRECTORY=");
  });
  return cuda || ::access("/tmp/nvidia-mps", F_OK) == 0 || names(work_dir) ||
         std::any_of(argv.begin(), argv.end(), names) ||
         std::any_of(env.begin(), env.end(), [&](const std::string& entry) {
           return entry == kHostSharedMemorySetting || names(entry);
         });
}

SystemVMemory FindDetachedSystemVMemory() {
  constexpr size_t kMaxFile = 16 << 20;
  SystemVMemory found;
  std::istringstream lines(ReadFile("/proc/sysvipc/shm", kMaxFile).value_or(""));
  std::string line;
  std::getline(lines, line);  // the columns' names
  while (std::getline(lines, line)) {
    std::istringstream columns(line);
    int64_t key = 0, id = 0, mode = 0, bytes = 0, creator = 0, last = 0, attached = 0, owner = 0;
    columns >> key >> id >> mode >> bytes >> creator >> last >> attached >> owner;
    if (!columns || attached != 0 || owner != static_cast<int64_t>(::geteuid())) continue;
    ++found.segments;
    found.bytes += bytes;
  }
  return found;
}

int FirstProcessNumber() {
  constexpr size_t kMaxFile = 64;
  static const int most = [] {
    const std::string text = ReadFile("/proc/sys/kernel/pid_max", kMaxFile).value_or("");
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }();
  constexpr int kReserved = 300;  // pids that the kernel does not reuse
  if (most <= 2 * kReserved) return 0;
  // Multiples of the golden ratio have well-spread fractional parts.
  static std::atomic<uint64_t> trees{0};
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  const uint64_t tree = static_cast<uint64_t>(::getpid()) + (trees++ << 22);
  const uint64_t spread = (tree * kGolden) >> 32;
  return kReserved + static_cast<int>((spread * static_cast<uint64_t>(most - kReserved)) >> 32);
}

}  // namespace shoal::host
