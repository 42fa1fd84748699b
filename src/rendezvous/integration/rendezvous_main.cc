// Minimal `shoal coordinator` and `shoal task` programs for tests that kill them.
//
//   rendezvous_process coordinator DIR
//   rendezvous_process task DIR ROLE INDEX INCARNATION
#include <cstdio>
#include <cstdlib>
#include <string>

#include "rendezvous/coordinator/coordinator.h"
#include "rendezvous/launcher/launcher.h"

int main(int argc, char** argv) {
  using namespace shoal::rendezvous;  // NOLINT: a program of one function
  const std::string mode = argc > 2 ? argv[1] : "";
  if (mode == "coordinator") {
    CoordinatorOptions options;
    options.job_dir = argv[2];
    const shoal::Status status = RunCoordinator(options);
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return status.ok() ? 0 : 1;
  }
  if (mode == "task" && argc == 6) {
    LauncherOptions options;
    options.job_dir = argv[2];
    options.role = argv[3];
    options.index = std::atoi(argv[4]);
    options.incarnation = std::atoi(argv[5]);
    return RunLauncher(options);
  }
  std::fprintf(stderr, "usage: %s coordinator DIR | task DIR ROLE INDEX INCARNATION\n", argv[0]);
  return 2;
}
