#include "rendezvous/launcher/metric_lines.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace shoal::rendezvous {

void MetricLines::Feed(int process, std::string_view bytes, TimePoint now) {
  Line& line = processes_[static_cast<size_t>(process)];
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (line.other || !line.held.empty()) {  // in the middle of a line
      const std::string_view part = bytes.substr(0, end);
      if (!line.other) line.held += part.substr(0, kLongestLine + 1 - line.held.size());
      const size_t known = std::min(line.held.size(), kMark.size());
      if (line.held.size() > kLongestLine || line.held.substr(0, known) != kMark.substr(0, known))
        line = {{}, true};
      if (end == std::string_view::npos) return;
      if (!line.other && line.held.starts_with(kMark)) Take(line.held, now);
      line = {};
      bytes.remove_prefix(end + 1);
      continue;
    }
    // At the beginning of a line: the next mark, or what may be the beginning of one at the end.
    const size_t mark = bytes.find(kMark);
    if (mark != std::string_view::npos) {
      const bool begins = mark == 0 || bytes[mark - 1] == '\n';
      const size_t stop = bytes.find('\n', mark);
      if (stop != std::string_view::npos) {
        if (begins) Take(bytes.substr(mark, stop - mark), now);
        bytes.remove_prefix(stop + 1);
        continue;
      }
    }
    const size_t last = bytes.rfind('\n');
    const std::string_view rest = last == std::string_view::npos ? bytes : bytes.substr(last + 1);
    const size_t known = std::min(rest.size(), kMark.size());
    if (rest.empty()) return;
    if (rest.substr(0, known) == kMark.substr(0, known) && rest.size() <= kLongestLine) {
      line.held = rest;
    } else {
      line.other = true;
    }
    return;
  }
}

void MetricLines::Finish(TimePoint now) {
  for (Line& line : processes_) {
    if (line.held.starts_with(kMark)) Take(line.held, now);
    line = {};
  }
}

void MetricLines::Take(std::string_view line, TimePoint now) {
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    count_ = 0;
  }
  if (line.size() > kLongestLine) return;
  if (++count_ > kMostPerSecond) {
    if (!std::exchange(told_, true))
      LogWarning("the program prints more than {} metrics a second: the rest is not kept",
                 kMostPerSecond);
    return;
  }
  auto object = ParseJsonObject(line.substr(kMark.size()));
  if (object.ok()) on_metric_(std::move(*object));
}

}  // namespace shoal::rendezvous
