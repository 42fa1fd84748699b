#include "serving/endpoint/request_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace shoal::serving {
namespace {

// Names of models have no character that a label must escape (model_name.h).
std::string Labels(const std::string& model, uint64_t version) {
  return fmt::format("model=\"{}\",version=\"{}\"", model, version);
}

}  // namespace

void RequestMetrics::Count(const std::string& model, uint64_t version, int status, size_t instances,
                           Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  const auto bound = std::lower_bound(kLatencyBounds.begin(), kLatencyBounds.end(), seconds);
  const MutexLock lock(mu_);
  Times& times = times_[{model, version}];
  ++times.buckets[static_cast<size_t>(bound - kLatencyBounds.begin())];
  ++times.count;
  times.sum += seconds;
  times.instances += instances;
  ++statuses_[{model, version, status}];
}

void RequestMetrics::CountSwap(const std::string& model) {
  const MutexLock lock(mu_);
  ++swaps_[model];
}

std::string RequestMetrics::Text() const {
  std::string text;
  const auto out = std::back_inserter(text);
  const MutexLock lock(mu_);
  text +=
      "# HELP shoal_serving_request_seconds Time from a request's last byte to its answer.\n"
      "# TYPE shoal_serving_request_seconds histogram\n";
  for (const auto& [version, times] : times_) {
    const std::string labels = Labels(version.first, version.second);
    uint64_t below = 0;
    for (size_t i = 0; i < kLatencyBounds.size(); ++i) {
      below += times.buckets[i];
      fmt::format_to(out, "shoal_serving_request_seconds_bucket{{{},le=\"{}\"}} {}\n", labels,
                     kLatencyBounds[i], below);
    }
    fmt::format_to(out, "shoal_serving_request_seconds_bucket{{{},le=\"+Inf\"}} {}\n", labels,
                   times.count);
    fmt::format_to(out, "shoal_serving_request_seconds_sum{{{}}} {:.9g}\n", labels, times.sum);
    fmt::format_to(out, "shoal_serving_request_seconds_count{{{}}} {}\n", labels, times.count);
  }
  text +=
      "# HELP shoal_serving_requests_total Requests by the status of their answer.\n"
      "# TYPE shoal_serving_requests_total counter\n";
  for (const auto& [key, count] : statuses_) {
    fmt::format_to(out, "shoal_serving_requests_total{{{},code=\"{}\"}} {}\n",
                   Labels(std::get<0>(key), std::get<1>(key)), std::get<2>(key), count);
  }
  text +=
      "# HELP shoal_serving_instances_total Instances that were predicted.\n"
      "# TYPE shoal_serving_instances_total counter\n";
  for (const auto& [version, times] : times_) {
    fmt::format_to(out, "shoal_serving_instances_total{{{}}} {}\n",
                   Labels(version.first, version.second), times.instances);
  }
  text +=
      "# HELP shoal_serving_swaps_total Versions that were put in service after the first.\n"
      "# TYPE shoal_serving_swaps_total counter\n";
  for (const auto& [model, count] : swaps_)
    fmt::format_to(out, "shoal_serving_swaps_total{{model=\"{}\"}} {}\n", model, count);
  return text;
}

}  // namespace shoal::serving
