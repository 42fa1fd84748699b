// The coordinator as a process: `shoal coordinator`.
#include <signal.h>
#include <sys/resource.h>

#include <utility>

#include "base/log.h"
#include "rendezvous/coordinator.h"

namespace shoal::rendezvous {

namespace {

// A descriptor a task; the usual bound of 1,024 is meant for programs that use select(2).
void AllowManyConnections() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

Status RunCoordinator(CoordinatorOptions options) {
  SetLogName("coordinator");
  AllowManyConnections();
  net::Loop loop;
  Status end;
  const bool batch = options.batch;
  const bool apart = options.apart;
  auto coordinator = Coordinator::Start(&loop, std::move(options), [&](const Status& status) {
    end = status;
    loop.Stop();
  });
  if (!coordinator.ok()) return coordinator.status();
  for (const int signal : {SIGTERM, SIGINT}) {
    loop.WatchSignal(signal, [&, batch, apart] {
      if (apart) {
        // Its host wants to be rid of it, not the user of the job: the next one goes on.
        end = Unavailable("it was told to end, and goes on elsewhere");
        loop.Stop();
      } else if (!batch) {
        (*coordinator)->Stop("the coordinator was told to stop");
      }
    });
  }
  if (batch) {
    loop.WatchSignal(SIGUSR1, [&] { (*coordinator)->Suspend(kGoesOnLater); });
    loop.WatchSignal(SIGUSR2, [&] {
      (*coordinator)->Suspend("the time of its allocation is nearly over; resume it");
    });
  }
  loop.Run();
  coordinator->reset();
  return end;
}

}  // namespace shoal::rendezvous
