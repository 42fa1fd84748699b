#include "api/operator/object_watch.h"

#include <utility>

namespace shoal::api {
namespace {

constexpr int kGone = 410;
constexpr int kQuiet = 2;  // failures in a row that are not reported

class Following {
 public:
  Following(ObjectFeed* feed, const ObjectSink& sink) : feed_(feed), sink_(sink) {}

  void Run() {
    int failures = 0;
    while (!feed_->ending()) {
      received_ = false;
      const Status ended = version_.empty() ? ListThenWatch() : Watch();
      if (feed_->ending()) return;
      if (ended.code() == Code::kOutOfRange) version_.clear();
      if (ended.ok() && received_) {
        failures = 0;
        continue;
      }
      failures = received_ ? 1 : failures + 1;
      if (received_) told_ = false;
      if (!ended.ok() && failures > kQuiet && !std::exchange(told_, true)) sink_.on_trouble(ended);
      if (!feed_->Pause(failures)) return;
    }
  }

 private:
  Status ListThenWatch() {
    TRY_ASSIGN(const ShoalJobList list, feed_->List());
    sink_.on_list(list);
    version_ = list.version;
    received_ = true;
    return Watch();
  }

  Status Watch() {
    return feed_->Watch(version_, [this](std::string_view line) { return OnLine(line); });
  }

  Status OnLine(std::string_view line) {
    TRY_ASSIGN(const ShoalJobEvent event, DecodeShoalJobLine(line));
    if (event.kind == ShoalJobEvent::Kind::kError) {
      const std::string text = "the watch ended: " + event.error;
      return event.error_code == kGone ? OutOfRange(text) : Unavailable(text);
    }
    received_ = true;
    if (!event.version.empty()) version_ = event.version;
    if (!event.job) return Status::Ok();
    event.kind == ShoalJobEvent::Kind::kDeleted ? sink_.on_delete(*event.job)
                                                : sink_.on_change(*event.job);
    return Status::Ok();
  }

  ObjectFeed* const feed_;
  const ObjectSink& sink_;
  std::string version_;    // empty: list first
  bool received_ = false;  // something, by the last attempt
  bool told_ = false;
};

}  // namespace

void FollowObjects(ObjectFeed* feed, const ObjectSink& sink) { Following(feed, sink).Run(); }

}  // namespace shoal::api
