// What a task of a training job tells the launcher that started it.
#pragma once

#include "base/json.h"

namespace shoal::learn {

// Writes lines of JSON to the report pipe; does nothing without one. A reader that went away is no
// error: nobody needs the reports. Thread-safe.
class Reporter {
 public:
  // fd -1: none. Not owned.
  explicit Reporter(int fd) : fd_(fd) {}
  void Progress(const json::object& progress) const { Write("progress", progress); }
  void Result(const json::object& result) const { Write("result", result); }
  void Event(const json::object& event) const { Write("event", event); }

 private:
  void Write(const char* kind, const json::object& value) const;
  const int fd_;
};

}  // namespace shoal::learn
