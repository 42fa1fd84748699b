// The coordinator as a process: `shoal coordinator`.
#include <signal.h>

#include <utility>

#include "base/fault_injection.h"
#include "base/log.h"
#include "base/open_file_limit.h"
#include "host/files/disk_retry.h"
#include "rendezvous/coordinator/coordinator.h"

namespace shoal::rendezvous {

namespace {

Result<std::unique_ptr<Coordinator>> StartOnce(net::Loop* loop, const CoordinatorOptions& options,
                                               const std::function<void(const Status&)>& on_end) {
  TRY(FaultPoint("coordinator.start"));
  return Coordinator::Start(loop, options, on_end);
}

// A controller that a signal paused before it connected is alive and is waited for.
void AskForController(net::Loop* loop, Coordinator* coordinator,
                      const std::function<bool()>& lives) {
  constexpr auto kEvery = std::chrono::seconds(2);
  loop->After(kEvery, [=] {
    if (coordinator->core().has_controller()) return;
    if (lives()) coordinator->AwaitController();
    AskForController(loop, coordinator, lives);
  });
}

}  // namespace

Status RunCoordinator(CoordinatorOptions options) {
  SetLogName("coordinator");
  RaiseOpenFiles();  // each task needs a descriptor
  net::Loop loop;
  Status end;
  const bool batch = options.batch;
  const bool no_shared_filesystem = options.no_shared_filesystem;
  auto coordinator = host::RetryOnDiskError([&] {
    return StartOnce(&loop, options, [&](const Status& status) {
      end = status;
      loop.Stop();
    });
  });
  if (!coordinator.ok()) return coordinator.status();
  for (const int signal : {SIGTERM, SIGINT}) {
    loop.WatchSignal(signal, [&, batch, no_shared_filesystem] {
      if (no_shared_filesystem || (!batch && (*coordinator)->core().has_controller())) {
        // The signal comes from the host, not from the job's user, who would use the controller.
        // The next coordinator goes on from the journal.
        end = Unavailable("a signal ended it, and its successor goes on");
        loop.Stop();
      } else if (!batch) {
        (*coordinator)->Stop("the coordinator was told to stop, and the job has no controller");
      }
    });
  }
  if (batch) {
    loop.WatchSignal(SIGUSR1, [&] { (*coordinator)->Suspend(kContinuesInNextAllocation); });
    loop.WatchSignal(SIGUSR2, [&] {
      (*coordinator)->Suspend("the time of its allocation is nearly over; resume it");
    });
  }
  if (options.controller_lives)
    AskForController(&loop, coordinator->get(), options.controller_lives);
  loop.Run();
  coordinator->reset();
  return end;
}

}  // namespace shoal::rendezvous
