#include "controller/process_identity.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <charconv>
#include <string>

#include "base/file.h"

namespace shoal::controller {
namespace {

struct Stat {
  char state = 0;
  int64_t start_ticks = 0;
};

// proc(5): the name in parentheses may hold anything, so fields are counted from the last one.
Result<Stat> ReadStat(int64_t pid) {
  TRY_ASSIGN(const std::string text, ReadFile("/proc/" + std::to_string(pid) + "/stat", 4096));
  size_t at = text.rfind(')');
  if (at == std::string::npos || at + 2 >= text.size())
    return DataLoss("/proc/" + std::to_string(pid) + "/stat: not understood");
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

std::filesystem::path MarkOf(const std::filesystem::path& root, const ProcessIdentity& process) {
  return root / "controllers" /
         (process.boot_id + "-" + std::to_string(process.pid) + "-" +
          std::to_string(process.start_ticks));
}

}  // namespace

Result<ProcessIdentity> CurrentProcess() {
  ProcessIdentity process;
  process.pid = getpid();
  TRY_ASSIGN(const Stat stat, ReadStat(process.pid));
  process.start_ticks = stat.start_ticks;
  TRY_ASSIGN(process.boot_id, BootId());
  return process;
}

bool IsAlive(const ProcessIdentity& process) {
  if (process.pid <= 0) return false;
  const Result<std::string> boot = BootId();
  if (!boot.ok() || *boot != process.boot_id) return false;
  const Result<Stat> stat = ReadStat(process.pid);
  return stat.ok() && stat->start_ticks == process.start_ticks && stat->state != 'Z' &&
         stat->state != 'X';
}

Result<AliveMark> AliveMark::Make(const std::filesystem::path& root,
                                  const ProcessIdentity& process) {
  std::filesystem::path path = MarkOf(root, process);
  TRY(MakeDirectories(path.parent_path(), 0700));
  TRY_ASSIGN(UniqueFd file, OpenFile(path, O_RDWR | O_CREAT, 0600));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return ErrnoStatus(errno, "flock " + path.string());
  return AliveMark(std::move(path), std::move(file));
}

AliveMark::~AliveMark() {
  std::error_code error;
  if (file_.valid()) std::filesystem::remove(path_, error);
}

void ForgetMark(const std::filesystem::path& root, const ProcessIdentity& process) {
  if (process.boot_id.empty() || process.boot_id.find('/') != std::string::npos) return;
  std::error_code error;
  std::filesystem::remove(MarkOf(root, process), error);
}

bool LivesElsewhere(const std::filesystem::path& root, const ProcessIdentity& process) {
  if (process.pid <= 0 || process.boot_id.find('/') != std::string::npos) return false;
  const Result<std::string> boot = BootId();
  if (!boot.ok() || *boot == process.boot_id) return false;
  const auto file = OpenFile(MarkOf(root, process), O_RDWR, 0600);
  return file.ok() && ::flock(file->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace shoal::controller
