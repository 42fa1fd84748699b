// Finds the lines `shoal.metric {"step": 10, "loss": 0.5}` in a program's output, with which any
// program reports numbers. Used by attempt.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace shoal::rendezvous {

// Not thread-safe. Output without such lines costs a search for their first word.
class MetricLines {
 public:
  static constexpr std::string_view kMark = "shoal.metric ";
  static constexpr size_t kLongestLine = 4096;
  // A program that prints more lines loses the rest: they would load the coordinator.
  static constexpr int kMostPerSecond = 50;

  // `on_metric` gets the object of each line.
  MetricLines(int processes, std::function<void(json::object)> on_metric)
      : on_metric_(std::move(on_metric)), processes_(static_cast<size_t>(processes)) {}

  void Feed(int process, std::string_view bytes, TimePoint now);
  // An unterminated last line counts.
  void Finish(TimePoint now);

 private:
  // The present line of a process.
  struct Line {
    std::string held;    // its beginning, as long as it may be a metric
    bool other = false;  // it is none
  };
  void Take(std::string_view line, TimePoint now);

  const std::function<void(json::object)> on_metric_;
  std::vector<Line> processes_;
  TimePoint second_{};  // begin of the present second
  int count_ = 0;       // of lines in it
  bool told_ = false;   // that lines are lost
};

}  // namespace shoal::rendezvous
