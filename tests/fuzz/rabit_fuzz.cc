// Fuzz entry: what comes to rabit's tracker. The first byte is the number of workers, then pieces:
// connection, length, bytes. What it says is bounded by what it heard, and nobody hears after its
// close.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "rendezvous/framework_services/rabit_tracker.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using shoal::rendezvous::RabitAction;
  if (size < 1) return 0;
  const int workers = bytes[0] % 8 + 1;
  shoal::rendezvous::RabitTracker tracker(workers);
  std::set<uint64_t> open, closed;
  size_t said = 0;
  const auto check = [&](const auto& actions) {
    for (const RabitAction& action : actions) {
      said += action.kind == RabitAction::Kind::kSend ? action.text.size() : 0;
      if (action.kind == RabitAction::Kind::kSend && closed.contains(action.connection))
        std::abort();
      if (action.kind == RabitAction::Kind::kClose) closed.insert(action.connection);
    }
  };
  for (size_t at = 1; at + 2 <= size;) {
    const uint64_t id = bytes[at] % 16;
    const size_t length = std::min<size_t>(bytes[at + 1], size - at - 2);
    if (open.insert(id).second) tracker.Opened(id, "127.0.0.1");
    if (length == 0) {
      check(tracker.Closed(id));
    } else if (!closed.contains(id)) {
      check(tracker.Received(id, {reinterpret_cast<const char*>(bytes) + at + 2, length}));
    }
    at += 2 + length;
  }
  if (said > 1000 + 1000 * size) std::abort();
  return 0;
}
