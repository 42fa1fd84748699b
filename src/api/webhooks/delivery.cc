#include "api/webhooks/delivery.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace shoal::api {
namespace {

using std::chrono::seconds;

constexpr Duration kFirstDelay = seconds(1);
constexpr Duration kLongestDelay = std::chrono::minutes(5);
constexpr int kMostDoublings = 16;
constexpr size_t kMaxError = 500;

constexpr int kRequestTimeout = 408;
constexpr int kGoneStatus = 410;
constexpr int kTooEarly = 425;
constexpr int kTooMany = 429;

Duration RetryAfter(const net::HttpReply& reply) {
  const std::string text = reply.Header("retry-after");
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || value < 0) return {};
  return seconds(std::min<int64_t>(value, kLongestDelay / seconds(1)));
}

}  // namespace

DeliveryOutcome OutcomeOf(const Result<net::HttpReply>& reply) {
  if (!reply.ok()) return {DeliveryResult::kFailed, reply.status().message(), {}};
  const int status = reply->status;
  if (status >= 200 && status < 300) return {DeliveryResult::kDelivered, "", {}};
  DeliveryOutcome outcome;
  outcome.error = "the receiver answered " + std::to_string(status);
  if (status >= 300 && status < 400) outcome.error += "; redirects are not followed";
  outcome.retry_after = RetryAfter(*reply);
  const bool later = status == kRequestTimeout || status == kTooEarly || status == kTooMany;
  if (status == kGoneStatus) {
    outcome.result = DeliveryResult::kGone;
  } else if (status >= 400 && status < 500 && !later) {
    outcome.result = DeliveryResult::kRejected;
  }
  return outcome;
}

Duration RetryDelay(int failures, uint64_t chance) {
  const int doublings = std::clamp(failures - 1, 0, kMostDoublings);
  const Duration whole = std::min<Duration>(kFirstDelay * (int64_t{1} << doublings), kLongestDelay);
  constexpr uint64_t kSteps = 1 << 20;
  return whole / 2 +
         whole / 2 / static_cast<int64_t>(kSteps) * static_cast<int64_t>(chance % kSteps);
}

void DeliveryQueue::SetScanned(int64_t position) {
  scanned_ = std::max(scanned_, position);
  if (waiting_.empty()) progress_.position = scanned_;
}

const JobChange* DeliveryQueue::Next(TimePoint now, WallTime wall) {
  while (!waiting_.empty() && wall - waiting_.front().time > kExpiry) {
    ++progress_.dropped;
    Finish();
  }
  if (progress_.disabled || waiting_.empty() || now < next_attempt_) return nullptr;
  return &waiting_.front();
}

void DeliveryQueue::Finish() {
  progress_.position = waiting_.front().position;
  waiting_.pop_front();
  if (waiting_.empty()) progress_.position = scanned_;
  failures_ = 0;
  rejections_ = 0;
}

void DeliveryQueue::Apply(const DeliveryOutcome& outcome, TimePoint now, WallTime wall,
                          uint64_t chance) {
  if (waiting_.empty()) return;
  if (outcome.result == DeliveryResult::kDelivered) {
    progress_.error.clear();
    progress_.failing_since = {};
    ++progress_.delivered;
    next_attempt_ = {};
    return Finish();
  }
  if (progress_.error.empty()) progress_.failing_since = wall;
  progress_.error = outcome.error.substr(0, kMaxError);
  ++failures_;
  if (outcome.result == DeliveryResult::kRejected) ++rejections_;
  next_attempt_ = now + std::max(RetryDelay(failures_, chance), outcome.retry_after);
  if (outcome.result == DeliveryResult::kGone) progress_.disabled = true;
  if (rejections_ < kRejections) return;
  ++progress_.dropped;
  Finish();
}

void DeliveryQueue::Reset() {
  progress_.error.clear();
  progress_.failing_since = {};
  progress_.disabled = false;
  failures_ = 0;
  rejections_ = 0;
  next_attempt_ = {};
}

}  // namespace shoal::api
