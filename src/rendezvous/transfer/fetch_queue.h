// One thing after another that the other side of a connection has, in the order in which they were
// asked for: requests, "content", bytes (docs/formats/files.md). Without a connection of its own:
// used by file_fetch.cc, where a host fetches from the coordinator, and by file_intake.cc, where a
// coordinator does from its controller.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal::rendezvous {

class FetchQueue {
 public:
  struct Target {
    std::string request;
    json::object fields;
    int64_t most = 0;    // bytes
    bool exact = false;  // exactly `most`
  };
  // Called for each target in order: on_begin (again after a lost connection), on_bytes …,
  // on_whole.
  struct Sink {
    std::function<Status(size_t)> on_begin;
    std::function<Status(size_t, std::string_view)> on_bytes;
    std::function<Status(size_t)> on_whole;
  };
  using Send = std::function<void(const std::string& request, const json::object& fields)>;

  FetchQueue(std::vector<Target> targets, Sink sink, Send send)
      : targets_(std::move(targets)), sink_(std::move(sink)), send_(std::move(send)) {}

  // There is a connection (again): asks for what has not come whole.
  void Begin();
  // What comes over it. NotFound for what the other side has not, DataLoss for what nobody asked
  // for, ResourceExhausted for more than was asked for, and what the sink says.
  Status HandleMessage(const std::string& type, const json::object& message);
  Status HandleBytes(std::string_view bytes);

  bool done() const { return next_ == targets_.size(); }
  // Whether anything has come since Begin.
  bool received_any() const { return received_any_; }

 private:
  void Ask();
  Status Advance();

  const std::vector<Target> targets_;
  const Sink sink_;
  const Send send_;
  size_t next_ = 0;              // what is coming
  size_t asked_ = 0;             // up to here, on this connection
  std::optional<int64_t> left_;  // of what is coming; nothing: not offered yet
  bool received_any_ = false;
};

}  // namespace shoal::rendezvous
