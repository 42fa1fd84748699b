// Output whose reader may be slow, or not read at all (`| less`, Ctrl-S): written by a thread of
// its own, so that the event loop, and with it every signal, is served meanwhile. Used by
// job_runner.cc and the displays.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace shoal::cli {

// Thread-safe. Order is kept. What a regular file gets is written at once, without a thread.
class AsyncWriter {
 public:
  // More than this queued: a producer that can wait should.
  static constexpr size_t kHighWater = size_t{4} << 20;

  explicit AsyncWriter(int fd);
  // Waits for nothing: what the reader has not taken is dropped.
  ~AsyncWriter();
  AsyncWriter(const AsyncWriter&) = delete;
  AsyncWriter& operator=(const AsyncWriter&) = delete;

  // Never blocks. After a write has failed, or where the reader is gone, nothing is queued.
  void Write(std::string bytes);
  size_t queued() const;
  // The first error of a write; a reader that has gone is none (OutputStream).
  Status status() const;
  bool full() const { return queued() >= kHighWater; }
  int fd() const;
  // Called on the writer's thread when less than half of kHighWater is queued again after it had
  // been full.
  void OnRoom(std::function<void()> fn);
  // True once everything is written, or writing has failed; false after `limit`.
  bool WaitUntilWritten(Duration limit) const;

 private:
  struct State;
  const std::shared_ptr<State> state_;  // the thread's as well, which may outlive this
};

}  // namespace shoal::cli
