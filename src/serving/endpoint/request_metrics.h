// Counts and times of the requests of each model, in the text format of Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "base/clock.h"
#include "base/mutex.h"

namespace shoal::serving {

// Upper bounds in seconds; the last bucket has none.
inline constexpr std::array<double, 14> kLatencyBounds{
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};

// Thread-safe. Models are those that are served, so labels are bounded.
class RequestMetrics {
 public:
  void Count(const std::string& model, uint64_t version, int status, size_t instances,
             Duration time);
  // A version was put in service.
  void CountSwap(const std::string& model);
  std::string Text() const;

 private:
  struct Times {
    std::array<uint64_t, kLatencyBounds.size() + 1> buckets{};
    uint64_t count = 0;
    double sum = 0;
    uint64_t instances = 0;
  };
  using Version = std::pair<std::string, uint64_t>;

  mutable Mutex mu_;
  std::map<Version, Times> times_ GUARDED_BY(mu_);
  std::map<std::tuple<std::string, uint64_t, int>, uint64_t> statuses_ GUARDED_BY(mu_);
  std::map<std::string, uint64_t> swaps_ GUARDED_BY(mu_);
};

}  // namespace shoal::serving
