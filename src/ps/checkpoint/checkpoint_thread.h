// The thread that writes a server's part of checkpoints: one task at a time, in the background.
//
// Owned by CheckpointService; the thread starts with the first task. Thread-safe. Its mutex is a
// leaf: it is taken under lane 0's lock and never the other way round.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "ps/lane/server_context.h"

namespace shoal::ps {

class CheckpointThread {
 public:
  using Task = std::function<Result<std::string>()>;

  // `context` outlives it.
  explicit CheckpointThread(ServerContext* context) : context_(context) {}
  ~CheckpointThread() { Stop(); }

  // Runs `task` without locks, then calls `answer` with its result under lane 0's lock.
  // FailedPrecondition while another task runs; Unavailable once the server has stopped.
  Status Run(Task task, Answer answer);
  // Calls `then` under lane 0's lock: at once if no task runs, else right after the task. To be
  // called under that lock.
  void WhenIdle(std::function<void()> then);
  // Waits for the task that runs; a task that waits to run is dropped. The context must have been
  // stopped. Idempotent.
  void Stop();

 private:
  void Loop();

  ServerContext* const context_;
  Mutex mu_;
  CondVar wake_;
  Task task_ GUARDED_BY(mu_);
  Answer answer_ GUARDED_BY(mu_);
  bool busy_ GUARDED_BY(mu_) = false;
  std::vector<std::function<void()>> then_ GUARDED_BY(mu_);
  std::thread thread_ GUARDED_BY(mu_);
};

}  // namespace shoal::ps
