// How long what a disk refuses is tried again before that is an end (ADR 141): the same for a
// coordinator or launcher that starts and for a program that is started.
#pragma once

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

namespace shoal::rendezvous {

inline constexpr Duration kDiskRetryInterval = std::chrono::milliseconds(100);

// 10 s after an error of the device (EIO and all that has no code of its own), 0 for one that does
// not pass by itself.
inline Duration DeviceErrorTimeout(const Status& error) {
  return error.code() == Code::kUnknown ? Duration(std::chrono::seconds(10)) : Duration(0);
}

// Also 1 min where there is no room.
inline Duration DiskErrorTimeout(const Status& error) {
  if (error.code() == Code::kResourceExhausted) return std::chrono::minutes(1);
  return DeviceErrorTimeout(error);
}

// What `start` gives, a Result, once that is no error that may pass: patience(error) is how long it
// is tried again. Blocks; logs the first error.
template <typename Start, typename Patience = Duration (*)(const Status&)>
auto RetryOnDiskError(Start start, Patience patience = DiskErrorTimeout) -> decltype(start()) {
  const TimePoint begun = RealClock::Get()->Now();
  for (bool told = false;; told = true) {
    auto started = start();
    if (started.ok()) return started;
    if (RealClock::Get()->Now() - begun >= patience(started.status())) return started;
    if (!told) LogWarning("{}; tried again", started.status().message());
    std::this_thread::sleep_for(kDiskRetryInterval);
  }
}

}  // namespace shoal::rendezvous
