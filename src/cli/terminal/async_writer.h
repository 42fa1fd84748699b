// Output to a reader that may be slow or stopped (`| less`, Ctrl-S): a thread writes it, so the
// event loop continues to serve signals. Used by job_runner.cc and the displays.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace shoal::cli {

// Writes in order. Thread-safe. Output to a regular file is written at once, without a thread.
class AsyncWriter {
 public:
  // Queue size above which producers should wait if they can.
  static constexpr size_t kHighWater = size_t{4} << 20;

  explicit AsyncWriter(int fd);
  // Does not wait: drops the bytes that the reader has not taken.
  ~AsyncWriter();
  AsyncWriter(const AsyncWriter&) = delete;
  AsyncWriter& operator=(const AsyncWriter&) = delete;

  // Queues bytes without blocking. Drops them after a write error or the end of the reader.
  void Write(std::string bytes);
  size_t queued() const;
  // The first write error. The end of the reader is no error (OutputStream).
  Status status() const;
  bool full() const { return queued() >= kHighWater; }
  int fd() const;
  // `fn` is called on the writer's thread when the queue falls below half of kHighWater after it
  // was full.
  void OnRoom(std::function<void()> fn);
  // True when everything is written or writing has failed; false after `limit`.
  bool WaitUntilWritten(Duration limit) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the thread, which may outlive this
};

}  // namespace shoal::cli
