#include "rendezvous/launcher/report_queue.h"

#include <utility>

namespace shoal::rendezvous {

json::object LogGrowth(int attempt, int64_t bytes) {
  return {{"attempt", attempt}, {"bytes", bytes}};
}

void ReportQueue::BeginAttempt() {
  results_.clear();
  unsent_results_from_ = 0;
  ready_sent_ = port_conflict_sent_ = false;
}

void ReportQueue::Rewind() {
  unsent_results_from_ = 0;
  ready_sent_ = port_conflict_sent_ = false;
  for (End& end : ends_) end.sent = false;
}

void ReportQueue::AddResult(json::object message) {
  message["number"] = results_.size();
  results_.push_back(std::move(message));
}

void ReportQueue::AddEnd(EndedMessage ended, bool log_is_here) {
  ends_.push_back({std::move(ended), log_is_here});
}

void ReportQueue::HoldForOutputs() { ends_.back().waits_for_outputs = true; }

void ReportQueue::OutputsStored(const Status& status) {
  for (End& end : ends_) {
    if (std::exchange(end.waits_for_outputs, false)) end.message.outputs_lost = status.message();
  }
}

void ReportQueue::Acknowledge(int attempt) {
  std::erase_if(ends_, [&](const End& end) { return end.message.attempt <= attempt; });
}

void ReportQueue::SendResults(const Send& send) {
  for (; unsent_results_from_ < results_.size(); ++unsent_results_from_)
    send("report", results_[unsent_results_from_]);
}

void ReportQueue::SendReady(int attempt, const Send& send) {
  if (!std::exchange(ready_sent_, true)) send("ready", {{"attempt", attempt}});
}

void ReportQueue::SendPortConflict(int attempt, const std::string& text, const Send& send) {
  if (!std::exchange(port_conflict_sent_, true))
    send("stolen", {{"attempt", attempt}, {"text", text}});
}

void ReportQueue::SendEnds(const std::function<bool(int attempt)>& log_sent, const Send& send) {
  for (End& end : ends_) {
    const int attempt = end.message.attempt;
    if (end.sent || end.waits_for_outputs || !log_sent(attempt)) continue;
    end.sent = true;
    if (end.log_is_here) send("log_grew", LogGrowth(attempt, end.message.log_bytes));
    send("ended", ToJson(end.message));
  }
}

}  // namespace shoal::rendezvous
