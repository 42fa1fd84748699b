#include "engine/process/local_host.h"

#include <unistd.h>

#include <algorithm>
#include <climits>

namespace shoal::engine {

std::string LocalHostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

Status CheckHostNotExcluded(const std::string& engine, const DesiredTask& task) {
  const auto& hosts = task.excluded_hosts;
  if (hosts.empty()) return Status::Ok();
  const std::string own = LocalHostName();
  if (std::find(hosts.begin(), hosts.end(), own) == hosts.end()) return Status::Ok();
  return FailedPrecondition("this machine, " + own + ", is the only one that the engine " + engine +
                            " has");
}

}  // namespace shoal::engine
