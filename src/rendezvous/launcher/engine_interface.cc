#include "rendezvous/launcher/engine_interface.h"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "base/file.h"
#include "job/spec/job.h"

namespace shoal::rendezvous {

std::string LocalNodeName() {
  if (const char* told = std::getenv(job::kNodeVariable); told != nullptr) return told;
  char name[HOST_NAME_MAX + 1] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

Duration SignalSpread() {
  // Slurm and Mesos go through the processes of a task, one after another.
  return std::getenv("SHOAL_SIGNALS_ALL") != nullptr ? std::chrono::milliseconds(100) : Duration(0);
}

int ExitCodeForEngine(int exit_code) {
  const char* const file = std::getenv(job::kExcludedFileVariable);
  if (exit_code != job::kExitHostExcluded || file == nullptr) return exit_code;
  const auto opened = OpenFile(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const bool told = opened.ok() && WriteAll(opened->get(), std::to_string(exit_code)).ok();
  return told ? 0 : exit_code;
}

}  // namespace shoal::rendezvous
