// The lines that a session's process gets on its standard input, read on a thread of their own, so
// that a request to stop is heard while a statement runs.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "sql/process/messages.h"

namespace shoal::cli {

// Thread-safe.
class RequestLines {
 public:
  // `on_stop` and `on_end`, the end of the input, are called on the thread.
  RequestLines(std::function<void()> on_stop, std::function<void()> on_end);
  RequestLines(const RequestLines&) = delete;
  RequestLines& operator=(const RequestLines&) = delete;

  // Begins to read. The thread lives as long as the process, since a read cannot be ended.
  void Start();

  // The next request that is no answer; blocks. Nothing after the end of the input or a line that
  // cannot be read, which is told on standard error: what waits then is dropped.
  std::optional<sql::SessionRequest> Next();
  // The next answer; blocks.
  std::optional<sql::SessionRequest> NextAnswer();

 private:
  void Read();
  // False to end.
  bool Take(const std::string& line);
  std::optional<sql::SessionRequest> Pop(bool answer);

  const std::function<void()> on_stop_;
  const std::function<void()> on_end_;
  Mutex mu_;
  CondVar come_;
  std::deque<sql::SessionRequest> requests_ GUARDED_BY(mu_);
  std::deque<sql::SessionRequest> answers_ GUARDED_BY(mu_);
  bool ended_ GUARDED_BY(mu_) = false;
};

}  // namespace shoal::cli
