// Reports from a training task to its launcher.
#pragma once

#include "base/json.h"

namespace shoal::learn {

// Writes JSON lines to the report pipe; does nothing without one. Write errors are ignored, because
// reports are optional. Thread-safe.
class Reporter {
 public:
  // `fd` is not owned; −1: no pipe.
  explicit Reporter(int fd) : fd_(fd) {}
  void Progress(const json::object& progress) const { Write("progress", progress); }
  void Result(const json::object& result) const { Write("result", result); }
  void Event(const json::object& event) const { Write("event", event); }

 private:
  void Write(const char* kind, const json::object& value) const;
  const int fd_;
};

}  // namespace shoal::learn
