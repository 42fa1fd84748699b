// The coordinator as a process: `shoal coordinator`.
#include <signal.h>

#include <utility>

#include "base/log.h"
#include "rendezvous/coordinator.h"

namespace shoal::rendezvous {

Status RunCoordinator(CoordinatorOptions options) {
  SetLogName("coordinator");
  net::Loop loop;
  Status end;
  auto coordinator = Coordinator::Start(&loop, std::move(options), [&](const Status& status) {
    end = status;
    loop.Stop();
  });
  if (!coordinator.ok()) return coordinator.status();
  for (const int signal : {SIGTERM, SIGINT}) {
    loop.WatchSignal(signal, [&] { (*coordinator)->Stop("the coordinator was told to stop"); });
  }
  loop.Run();
  coordinator->reset();
  return end;
}

}  // namespace shoal::rendezvous
