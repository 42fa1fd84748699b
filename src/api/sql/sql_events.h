// The events of an SQL session that wait in memory for their readers; old ones make room for new
// ones.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "base/json.h"

namespace shoal::api {

// Events after a position.
struct SqlEvents {
  std::vector<json::object> items;
  int64_t next = 0;    // the position after them
  bool lost = false;   // some before them are no longer there
  bool ended = false;  // the session has, and there are none after these
};

// Not thread-safe.
class SqlEventLog {
 public:
  // Bytes and number of events that are kept; the newest one is, whatever its size.
  static constexpr size_t kMaxBytes = size_t{16} << 20;
  static constexpr size_t kMaxEvents = 20'000;

  // Gives the event the next position, as its `seq`. Amortized O(its bytes).
  void Add(json::object event);
  // At most `limit` of them. `ended` is left to the caller, who knows whether there will be more.
  SqlEvents Read(int64_t after, size_t limit) const;
  bool HasAfter(int64_t position) const { return last_seq_ > position; }

 private:
  struct Event {
    int64_t seq = 0;
    size_t bytes = 0;
    json::object event;
  };
  std::deque<Event> events_;
  size_t bytes_ = 0;
  int64_t last_seq_ = 0;
};

}  // namespace shoal::api
