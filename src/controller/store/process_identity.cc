#include "controller/store/process_identity.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>

#include "base/file.h"

namespace shoal::controller {
namespace {

constexpr std::string_view kNamespaceMark = ".pid-";

struct Stat {
  char state = 0;
  int64_t start_ticks = 0;
};

// The name in parentheses may contain anything (proc(5)), so fields are counted from the last
// parenthesis.
Result<Stat> ReadStat(const std::string& process) {
  TRY_ASSIGN(const std::string text, ReadFile("/proc/" + process + "/stat", 4096));
  size_t at = text.rfind(')');
  if (at == std::string::npos || at + 2 >= text.size())
    return DataLoss("/proc/" + process + "/stat: not understood");
  Stat stat;
  stat.state = text[at + 2];  // field 3
  at += 2;
  for (int field = 3; field < 22; ++field) {
    at = text.find(' ', at);
    if (at == std::string::npos) return DataLoss("/proc/…/stat: too short");
    ++at;
  }
  const auto [end, error] =
      std::from_chars(text.data() + at, text.data() + text.size(), stat.start_ticks);
  if (error != std::errc()) return DataLoss("/proc/…/stat: not understood");
  return stat;
}

Result<std::string> BootId() {
  TRY_ASSIGN(std::string id, ReadFile("/proc/sys/kernel/random/boot_id", 256));
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

// 0 if the kernel does not report it.
int64_t PidNamespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? static_cast<int64_t>(info.st_ino) : 0;
}

// False if /proc was mounted in another PID namespace, whose pids are not ours.
bool ProcIsOurs() {
  char name[32];
  const ssize_t size = ::readlink("/proc/self", name, sizeof name);
  return size > 0 && std::string_view(name, static_cast<size_t>(size)) == std::to_string(getpid());
}

std::filesystem::path LivenessLockPath(const std::filesystem::path& root,
                                       const ProcessIdentity& process) {
  return root / "controllers" /
         (FormatProcessScope(process) + "-" + std::to_string(process.pid) + "-" +
          std::to_string(process.start_ticks));
}

// Records are untrusted: their fields must not name a file elsewhere.
bool IsPlain(const ProcessIdentity& process) {
  return process.pid > 0 && !process.boot_id.empty() &&
         process.boot_id.find('/') == std::string::npos;
}

// Readers take a shared lock, so they never look like a holder to each other.
bool IsLivenessLockHeld(const std::filesystem::path& root, const ProcessIdentity& process) {
  const auto file = OpenFile(LivenessLockPath(root, process), O_RDONLY);
  if (!file.ok()) return file.status().code() != Code::kNotFound;
  return ::flock(file->get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace

Result<ProcessIdentity> CurrentProcess() {
  ProcessIdentity process;
  process.pid = getpid();
  TRY_ASSIGN(const Stat stat, ReadStat("self"));
  process.start_ticks = stat.start_ticks;
  TRY_ASSIGN(process.boot_id, BootId());
  process.pid_namespace = PidNamespace();
  return process;
}

bool SharesPids(const ProcessIdentity& process) {
  const Result<std::string> boot = BootId();
  if (!boot.ok() || *boot != process.boot_id) return false;
  return process.pid_namespace == 0 || process.pid_namespace == PidNamespace();
}

std::string FormatProcessScope(const ProcessIdentity& process) {
  if (process.pid_namespace == 0) return process.boot_id;
  return process.boot_id + std::string(kNamespaceMark) + std::to_string(process.pid_namespace);
}

void ParseProcessScope(std::string_view realm, ProcessIdentity* process) {
  const size_t mark = realm.rfind(kNamespaceMark);
  process->boot_id = realm.substr(0, mark);
  process->pid_namespace = 0;
  if (mark == std::string_view::npos) return;
  const std::string_view number = realm.substr(mark + kNamespaceMark.size());
  (void)std::from_chars(number.data(), number.data() + number.size(), process->pid_namespace);
}

bool IsAlive(const std::filesystem::path& root, const ProcessIdentity& process) {
  if (!IsPlain(process)) return false;
  if (IsLivenessLockHeld(root, process)) return true;
  if (!SharesPids(process) || !ProcIsOurs()) return false;
  const Result<Stat> stat = ReadStat(std::to_string(process.pid));
  return stat.ok() && stat->start_ticks == process.start_ticks && stat->state != 'Z' &&
         stat->state != 'X';
}

Result<LivenessLock> LivenessLock::Make(const std::filesystem::path& root,
                                        const ProcessIdentity& process) {
  std::filesystem::path path = LivenessLockPath(root, process);
  TRY(MakeDirectories(path.parent_path(), 0700));
  TRY_ASSIGN(UniqueFd file, OpenFile(path, O_RDWR | O_CREAT, 0600));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return ErrnoStatus(errno, "flock " + path.string());
  return LivenessLock(std::move(path), std::move(file));
}

LivenessLock::~LivenessLock() {
  std::error_code error;
  if (file_.valid()) std::filesystem::remove(path_, error);
}

void RefreshLivenessLock(const std::filesystem::path& root, const ProcessIdentity& self) {
  if (IsPlain(self)) (void)::utimensat(AT_FDCWD, LivenessLockPath(root, self).c_str(), nullptr, 0);
}

bool IsResponsive(const std::filesystem::path& root, const ProcessIdentity& owner,
                  const ProcessIdentity& self) {
  if (!IsPlain(owner)) return false;
  std::error_code error;
  const auto theirs = std::filesystem::last_write_time(LivenessLockPath(root, owner), error);
  if (error) return true;
  const auto ours = std::filesystem::last_write_time(LivenessLockPath(root, self), error);
  return error || ours - theirs < kFrozenAfter;
}

void RemoveLivenessLock(const std::filesystem::path& root, const ProcessIdentity& process) {
  if (!IsPlain(process)) return;
  std::error_code error;
  std::filesystem::remove(LivenessLockPath(root, process), error);
}

void RemoveDeadLivenessLocks(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "controllers", error)) {
    const auto touched = entry.last_write_time(error);
    if (error || fs::file_time_type::clock::now() - touched < kFrozenAfter) continue;
    const auto file = OpenFile(entry.path(), O_RDWR);
    if (file.ok() && ::flock(file->get(), LOCK_EX | LOCK_NB) == 0) fs::remove(entry.path(), error);
  }
}

}  // namespace shoal::controller
