// What follows from an attempt to deliver a message: when the next one is made, or that the message
// is given up. Without clocks and threads of its own; dispatcher.h has those.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "api/webhooks/message.h"
#include "api/webhooks/webhook.h"
#include "base/clock.h"
#include "net/http.h"

namespace shoal::api {

// kRejected: the receiver answered that it does not want this message (4xx). kGone: 410, it wants
// no more messages at all.
enum class DeliveryResult : uint8_t { kDelivered, kFailed, kRejected, kGone };

struct DeliveryOutcome {
  DeliveryResult result = DeliveryResult::kFailed;
  std::string error;       // empty if it was delivered
  Duration retry_after{};  // that the receiver asked for; 0: nothing
};

// Of a reply, or of the error of a call without one.
DeliveryOutcome OutcomeOf(const Result<net::HttpReply>& reply);

// Waits before attempt `failures` + 1: between half of and the whole of 1 s · 2^(failures − 1), at
// most 5 min. `chance`: a random number.
Duration RetryDelay(int failures, uint64_t chance);

// The messages of one webhook that wait, in order, and its progress. Not thread-safe.
class DeliveryQueue {
 public:
  // Messages that wait in memory; the rest waits in the store.
  static constexpr size_t kMost = 64;
  // A message that could not be delivered for so long after its event is given up.
  static constexpr Duration kExpiry = std::chrono::hours(24);
  // Attempts at a message that the receiver rejects.
  static constexpr int kRejections = 5;

  explicit DeliveryQueue(WebhookProgress progress)
      : progress_(std::move(progress)), scanned_(progress_.position) {}

  bool HasRoom() const { return waiting_.size() < kMost; }
  // Events up to this position are in the queue, or not asked for.
  int64_t scanned() const { return scanned_; }
  // In ascending order of positions.
  void Push(JobChange change) { waiting_.push_back(std::move(change)); }
  void SetScanned(int64_t position);

  // The message to send now; null: none, or not yet. Drops those that have expired.
  const JobChange* Next(TimePoint now, WallTime wall);
  // When Next has one; only if it is not empty.
  TimePoint next_attempt() const { return next_attempt_; }
  bool empty() const { return waiting_.empty(); }
  // Of the message that Next returned last.
  void Apply(const DeliveryOutcome& outcome, TimePoint now, WallTime wall, uint64_t chance);
  // It was set again: errors are forgotten, and the next attempt is made at once.
  void Reset();

  const WebhookProgress& progress() const { return progress_; }
  bool failing() const { return !progress_.error.empty(); }

 private:
  void Finish();

  WebhookProgress progress_;
  int64_t scanned_ = 0;
  std::deque<JobChange> waiting_;
  int failures_ = 0;    // of the first message
  int rejections_ = 0;  // likewise
  TimePoint next_attempt_{};
};

}  // namespace shoal::api
