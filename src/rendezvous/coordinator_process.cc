// The coordinator as a process: `shoal coordinator`.
#include <signal.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/open_files.h"
#include "rendezvous/coordinator.h"

namespace shoal::rendezvous {

namespace {

// How long a coordinator that cannot start because the disk is full tries again.
constexpr auto kWaitForRoom = std::chrono::minutes(1);
constexpr auto kRoomPause = std::chrono::milliseconds(100);

Result<std::unique_ptr<Coordinator>> StartWithRoom(
    net::Loop* loop, const CoordinatorOptions& options,
    const std::function<void(const Status&)>& on_end) {
  const TimePoint end = RealClock::Get()->Now() + kWaitForRoom;
  while (true) {
    auto started = Coordinator::Start(loop, options, on_end);
    const bool full = started.status().code() == Code::kResourceExhausted;
    if (started.ok() || !full || RealClock::Get()->Now() >= end) return started;
    LogWarning("{}; tried again until there is room", started.status().message());
    std::this_thread::sleep_for(kRoomPause);
  }
}

}  // namespace

Status RunCoordinator(CoordinatorOptions options) {
  SetLogName("coordinator");
  RaiseOpenFiles();  // a descriptor a task
  net::Loop loop;
  Status end;
  const bool batch = options.batch;
  const bool apart = options.apart;
  auto coordinator = StartWithRoom(&loop, options, [&](const Status& status) {
    end = status;
    loop.Stop();
  });
  if (!coordinator.ok()) return coordinator.status();
  for (const int signal : {SIGTERM, SIGINT}) {
    loop.WatchSignal(signal, [&, batch, apart] {
      if (apart || (!batch && (*coordinator)->core().has_controller())) {
        // Its host or another process ends this process, the user of the job does not end the job:
        // that the controller tells. The next coordinator goes on from the journal.
        end = Unavailable("it was told to end by a signal, and the next one goes on");
        loop.Stop();
      } else if (!batch) {
        (*coordinator)->Stop("the coordinator was told to stop, and the job has no controller");
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
