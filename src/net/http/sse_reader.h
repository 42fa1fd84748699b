// Server-sent events (text/event-stream of the HTML standard), read while they come: `id`, `event`,
// `data`, `retry`.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::net {

struct SseEvent {
  std::string type = "message";
  std::string data;  // lines joined by '\n'
  std::string id;    // the latest, also of an event before; for Last-Event-ID
};

class SseReader {
 public:
  // `most`: bytes of one event; more is ResourceExhausted.
  explicit SseReader(size_t most = 4 << 20) : most_(most) {}

  // Appends the events that are whole now, however the bytes are cut. After an error nothing more
  // is read.
  Status Feed(std::string_view bytes, std::vector<SseEvent>* events);

  // The latest id that came with a whole event.
  const std::string& last_id() const { return last_id_; }
  // How long to wait before connecting again, if the server has said so; at most a day.
  std::optional<std::chrono::milliseconds> retry() const { return retry_; }

 private:
  void TakeLine(std::string_view line, std::vector<SseEvent>* events);
  void TakeField(std::string_view name, std::string_view value);

  const size_t most_;
  std::string line_;           // that has not ended
  bool after_return_ = false;  // the last byte was a CR, whose LF may follow
  bool began_ = false;         // the first line was read
  bool failed_ = false;
  std::string type_;
  std::string data_;
  std::string id_;  // takes effect with the event
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
};

}  // namespace shoal::net
