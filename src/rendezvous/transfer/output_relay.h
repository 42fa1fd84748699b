// The coordinator's side of forwarding outputs in no-shared-filesystem mode: sends complete outputs
// of tasks on other hosts on to the controller, one attempt after the other, over a connection of
// its own (hello kind "fetch_outputs"). Used by transfers.cc. docs/formats/rendezvous.md,
// "No-shared-filesystem mode".
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/transfer/output_source.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class OutputRelay {
 public:
  struct Callbacks {
    // The controller has stored them, or no controller is waited for any more.
    std::function<void(const LogKey&)> on_forwarded;
    std::function<void(const LogKey&, const Status& why)> on_lost;
  };
  // `directory`: OutputStore's. `job_id` and an attempt name an upload.
  OutputRelay(std::filesystem::path directory, std::string job_id, Callbacks callbacks)
      : directory_(std::move(directory)),
        job_id_(std::move(job_id)),
        callbacks_(std::move(callbacks)) {}

  // A controller that receives outputs; it replaces an earlier one and is offered everything. The
  // caller keeps ownership of `connection`, until Remove.
  void Add(Connection* connection);
  bool Serves(const Connection* connection) const {
    return connection_ != nullptr && connection_ == connection;
  }
  void Remove(Connection* connection);
  // An attempt's outputs are complete. True: on_forwarded or on_lost follows.
  bool Offer(const LogKey& key);
  // On an error the caller closes the connection.
  Status Received(const std::string& type, const json::object& message);

 private:
  void OfferNext();
  void Done(const Status& status);
  void Settle();

  const std::filesystem::path directory_;
  const std::string job_id_;
  const Callbacks callbacks_;
  Connection* connection_ = nullptr;
  std::deque<LogKey> waiting_;  // the first one is being sent, if source_
  std::optional<OutputSource> source_;
  bool finishing_ = false;  // tell the controller when nothing waits
};

}  // namespace shoal::rendezvous
