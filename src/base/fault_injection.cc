#include "base/fault_injection.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <map>
#include <string>

#include "base/mutex.h"

namespace shoal {
namespace {

struct Fault {
  int error = 0;  // an errno, or 0 for a kill
  int64_t pass = 1;
  int64_t seen = 0;
};

struct Registry {
  Mutex mu;
  std::map<std::string, Fault, std::less<>> faults GUARDED_BY(mu);
  std::atomic<bool> any{false};
};

Result<int> ErrorOf(std::string_view action) {
  static const std::map<std::string_view, int> kNames = {{"kill", 0},
                                                         {"ENOSPC", ENOSPC},
                                                         {"EIO", EIO},
                                                         {"EACCES", EACCES},
                                                         {"EPIPE", EPIPE},
                                                         {"ENOMEM", ENOMEM},
                                                         {"ETIMEDOUT", ETIMEDOUT}};
  const auto found = kNames.find(action);
  if (found == kNames.end())
    return InvalidArgument("unknown fault action '" + std::string(action) + "'");
  return found->second;
}

Status ParseInto(std::string_view spec, std::map<std::string, Fault, std::less<>>* faults) {
  while (!spec.empty()) {
    std::string_view item = spec.substr(0, spec.find(';'));
    spec.remove_prefix(std::min(spec.size(), item.size() + 1));
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument("fault '" + std::string(item) + "': expected NAME=ACTION@PASS");
    }
    const std::string_view name = item.substr(0, equals);
    item.remove_prefix(equals + 1);
    const size_t at = item.find('@');
    Fault fault;
    TRY_ASSIGN(fault.error, ErrorOf(item.substr(0, at)));
    if (at != std::string_view::npos) {
      std::from_chars(item.data() + at + 1, item.data() + item.size(), fault.pass);
    }
    faults->insert_or_assign(std::string(name), fault);
  }
  return Status::Ok();
}

Registry& TheRegistry() {
  static Registry* registry = [] {
    auto* made =
        new Registry;  // lives as long as the process: fault points are passed in destructors too
    if (const char* spec = std::getenv("SHOAL_FAULTS"); spec != nullptr) {
      const MutexLock lock(made->mu);
      if (ParseInto(spec, &made->faults).ok()) made->any = !made->faults.empty();
    }
    return made;
  }();
  return *registry;
}

}  // namespace

Status FaultPoint(std::string_view name) {
  Registry& registry = TheRegistry();
  if (!registry.any.load(std::memory_order_relaxed)) return Status::Ok();
  const MutexLock lock(registry.mu);
  const auto found = registry.faults.find(name);
  if (found == registry.faults.end() || ++found->second.seen != found->second.pass)
    return Status::Ok();
  if (found->second.error == 0) ::kill(::getpid(), SIGKILL);
  return ErrnoStatus(found->second.error, "fault point " + std::string(name));
}

Status SetFaults(std::string_view spec) {
  std::map<std::string, Fault, std::less<>> faults;
  TRY(ParseInto(spec, &faults));
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mu);
  registry.faults = std::move(faults);
  registry.any = !registry.faults.empty();
  return Status::Ok();
}

}  // namespace shoal
