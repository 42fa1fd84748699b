// A launcher's reports of its attempts to the coordinator: results while one runs, and ends. They
// are kept until the coordinator acknowledges them, and sent again on every connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "rendezvous/protocol/messages.h"

namespace shoal::rendezvous {

// Used on one thread.
class ReportQueue {
 public:
  using Send = std::function<void(const std::string& type, json::object message)>;

  // A new attempt runs: results of the one before are forgotten.
  void BeginAttempt();
  // The connection was lost.
  void Rewind();

  // Takes the message of a result, which has all fields but its number.
  void AddResult(json::object message);
  // `log_is_here`: this launcher wrote the attempt's log, and tells its length before the end.
  void AddEnd(EndedMessage ended, bool log_is_here);
  // The last end waits until its outputs are stored.
  void HoldForOutputs();
  // They are, or are lost (`status`).
  void OutputsStored(const Status& status);
  // Ends up to that of `attempt` are stored.
  void Acknowledge(int attempt);
  // No end waits for its acknowledgement.
  bool empty() const { return ends_.empty(); }

  // Sends what was not sent on this connection. An end waits until `log_sent` says that all of its
  // attempt's log is sent.
  void SendResults(const Send& send);
  void SendReady(int attempt, const Send& send);
  void SendPortConflict(int attempt, const std::string& text, const Send& send);
  void SendEnds(const std::function<bool(int attempt)>& log_sent, const Send& send);

 private:
  struct End {
    EndedMessage message;
    bool log_is_here = false;
    bool sent = false;
    bool waits_for_outputs = false;
  };

  std::vector<json::object> results_;  // of the attempt
  size_t unsent_results_from_ = 0;
  std::vector<End> ends_;  // not acknowledged
  bool ready_sent_ = false;
  bool port_conflict_sent_ = false;
};

// The message that tells the size of a log that is written by the launcher.
json::object LogGrowth(int attempt, int64_t bytes);

}  // namespace shoal::rendezvous
