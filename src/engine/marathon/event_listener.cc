#include "engine/marathon/event_listener.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/mutex.h"

namespace shoal::engine::marathon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSilence{60'000};
constexpr milliseconds kFirstRetry{200};
constexpr milliseconds kLongestRetry{10'000};

}  // namespace

EventListener::EventListener(const MarathonApi* api, std::function<void(const Event&)> on_event)
    : api_(api), on_event_(std::move(on_event)), thread_([this] { Listen(); }) {}

EventListener::~EventListener() {
  {
    const MutexLock lock(mu_);
    ending_ = true;
    if (stream_ != nullptr) stream_->Cancel();
  }
  ends_.notify_all();
  thread_.join();
}

void EventListener::Listen() {
  milliseconds retry = kFirstRetry;
  for (;;) {
    const auto begun = std::chrono::steady_clock::now();
    const Status ended = ListenOnce();
    if (std::chrono::steady_clock::now() - begun > kLongestRetry) retry = kFirstRetry;
    MutexLock lock(mu_);
    stream_.reset();
    if (ending_) return;
    LogInfo("the event stream of Marathon at {} broke: {}; reconnecting", api_->url(),
            ended.message());
    if (ends_.wait_for(lock, retry, [this]() REQUIRES(mu_) { return ending_; })) return;
    retry = std::min(retry * 2, kLongestRetry);
  }
}

Status EventListener::ListenOnce() {
  TRY_ASSIGN(std::unique_ptr<net::HttpStream> opened, api_->Events());
  const std::shared_ptr<net::HttpStream> stream = std::move(opened);
  {
    const MutexLock lock(mu_);
    if (ending_) return Cancelled("the engine ends");
    stream_ = stream;
  }
  on_event_({});
  ServerSentEventParser cutter;
  for (;;) {
    auto bytes = stream->Next(kSilence);
    if (bytes.status().code() == Code::kDeadlineExceeded) continue;
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return Unavailable("Marathon closed them");
    std::vector<Event> events;
    TRY(cutter.Feed(*bytes, &events));
    for (const Event& event : events) on_event_(event);
  }
}

}  // namespace shoal::engine::marathon
