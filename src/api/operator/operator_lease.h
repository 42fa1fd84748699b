// The lease of operators: of several servers that watch one cluster with stores of their own, one
// acts. An object coordination.k8s.io/v1 Lease, used as client-go's leader election uses it: a
// holder is gone when its object has not changed for its duration, by the observer's own clock.
// Pure; operator.cc makes the requests.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"

namespace shoal::api {

inline constexpr const char* kOperatorLease = "shoal-operator";
inline constexpr Duration kLeaseDuration = std::chrono::seconds(15);
inline constexpr Duration kLeaseRenewal = std::chrono::seconds(4);

// A Lease as the API server returns it. Plain value.
struct LeaseView {
  std::string version;
  std::string holder;  // empty: none
  std::string renewed;
  int64_t seconds = 0;
  int64_t transitions = 0;
};
Result<LeaseView> DecodeLease(const json::object& object);

// Used by one thread.
class OperatorLease {
 public:
  // `self`: the id of the server's store. Servers of one store have a lease of their own there.
  explicit OperatorLease(std::string self) : self_(std::move(self)) {}

  // What to write into the object that was just read; none: another server holds it.
  std::optional<json::object> Attempt(const LeaseView& lease, TimePoint now, WallTime wall);
  // Attempt's change was written: so many seconds from the time before the request.
  void Acquired(TimePoint asked) { until_ = asked + kLeaseDuration; }
  // The change that gives the lease up.
  json::object Release(const LeaseView& lease, WallTime wall) const;
  // Whether this server may act.
  bool held(TimePoint now) const { return now < until_; }
  const std::string& other() const { return other_; }

 private:
  const std::string self_;
  std::string seen_;  // of the last object: holder and time of renewal
  TimePoint seen_at_{};
  TimePoint until_{};
  std::string other_;  // the other holder; empty: none
};

}  // namespace shoal::api
