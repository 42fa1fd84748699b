// The event loop: one thread that waits for timers, descriptors, signals, children and sockets, and
// calls back.
//
// Every room that talks to the network or waits for several things at once owns one (coordinator,
// launcher, controller). All callbacks run on the thread that is in Run; every method belongs to
// that thread (or to the time before Run) except where it says "any thread". A callback may add and
// cancel anything, itself included. Boost.Asio is behind it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/status.h"

namespace boost::asio {
class io_context;
}

namespace shoal::net {

class Loop {
 public:
  // Names a timer or a watch; never used twice; 0 names nothing.
  using Id = uint64_t;
  using Callback = std::function<void()>;

  Loop();
  // Drops all callbacks that have not run. Objects made on the loop (WebSocket …) must be gone.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Calls back until Stop. A Stop before Run makes it return at once; after it returns, Run may be
  // called again.
  void Run();
  // Runs callbacks until `done` (asked after each) says true or `limit` has passed; what it last
  // said. For tests and for short programs that wait for one thing.
  bool RunUntil(const std::function<bool()>& done, Duration limit);
  // Any thread; also from a callback.
  void Stop();
  // Runs `fn` on the loop's thread, after what was posted before. Any thread.
  void Post(Callback fn);

  // Once, after `delay` (≤ 0: at the next turn).
  Id After(Duration delay, Callback fn);

  // Calls whenever `fd` is readable or at its end, until cancelled (level-triggered). The
  // descriptor stays the caller's, and must stay open until Cancel. InvalidArgument for a
  // descriptor that cannot be waited for (a regular file).
  Result<Id> WatchReadable(int fd, Callback fn);

  // Calls whenever the signal arrives; blocks its default action for the whole process for as long
  // as the loop lives. Several loops may watch the same signal.
  Id WatchSignal(int signal, Callback fn);

  // Once, when this child has exited (pidfd). The child is not reaped: the caller calls waitpid.
  Result<Id> WatchChild(pid_t pid, Callback fn);

  // No more calls of it; unknown ids are ignored.
  void Cancel(Id id);

  // For src/net's own sources.
  boost::asio::io_context& context();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shoal::net
