// Fetches several items over one connection, in the order of the requests: request, "content"
// message, bytes (docs/formats/files.md). Holds no connection itself: used by file_fetch.cc, where
// a host fetches from the coordinator, and by file_receiver.cc, where a coordinator fetches from
// its controller.
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
  // Called for each target in order: on_begin (again after a reconnection), on_bytes …, on_whole.
  struct Sink {
    std::function<Status(size_t)> on_begin;
    std::function<Status(size_t, std::string_view)> on_bytes;
    std::function<Status(size_t)> on_whole;
  };
  using Send = std::function<void(const std::string& request, const json::object& fields)>;

  FetchQueue(std::vector<Target> targets, Sink sink, Send send)
      : targets_(std::move(targets)), sink_(std::move(sink)), send_(std::move(send)) {}

  // A connection is up (again): requests everything that is not complete.
  void Begin();
  // A message or bytes of the connection. NotFound for an item that the other side lacks, DataLoss
  // for what was not requested, ResourceExhausted for more than was requested, and the sink's
  // errors.
  Status HandleMessage(const std::string& type, const json::object& message);
  Status HandleBytes(std::string_view bytes);

  bool done() const { return next_ == targets_.size(); }
  // Whether anything was received since Begin.
  bool received_any() const { return received_any_; }

 private:
  void Ask();
  Status Advance();

  const std::vector<Target> targets_;
  const Sink sink_;
  const Send send_;
  size_t next_ = 0;              // the target being received
  size_t asked_ = 0;             // targets requested on this connection
  std::optional<int64_t> left_;  // bytes missing of it; none: no "content" message yet
  bool received_any_ = false;
};

}  // namespace shoal::rendezvous
