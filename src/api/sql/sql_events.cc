#include "api/sql/sql_events.h"

#include <algorithm>
#include <utility>

namespace shoal::api {

void SqlEventLog::Add(json::object event) {
  Event added;
  added.seq = ++last_seq_;
  event["seq"] = added.seq;
  added.bytes = ToText(event).size();
  added.event = std::move(event);
  bytes_ += added.bytes;
  events_.push_back(std::move(added));
  while (events_.size() > 1 && (bytes_ > kMaxBytes || events_.size() > kMaxEvents)) {
    bytes_ -= events_.front().bytes;
    events_.pop_front();
  }
}

SqlEvents SqlEventLog::Read(int64_t after, size_t limit) const {
  SqlEvents read;
  read.next = std::min(after, last_seq_);
  read.lost = !events_.empty() && events_.front().seq > read.next + 1;
  auto at = std::ranges::upper_bound(events_, read.next, {}, &Event::seq);
  for (; at != events_.end() && read.items.size() < limit; ++at) {
    read.items.push_back(at->event);
    read.next = at->seq;
  }
  return read;
}

}  // namespace shoal::api
