// Retries of disk operations that fail for a while (ADR 141): the same limits for a coordinator, a
// launcher, an engine's step and a program that start.
#pragma once

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

namespace shoal::host {

inline constexpr Duration kDiskRetryInterval = std::chrono::milliseconds(100);

// 10 s for an error of the device (EIO and every error without a code of its own), 0 for errors
// that do not pass by themselves.
inline Duration DeviceErrorTimeout(const Status& error) {
  return error.code() == Code::kUnknown ? Duration(std::chrono::seconds(10)) : Duration(0);
}

// Also 1 min for a full disk.
inline Duration DiskErrorTimeout(const Status& error) {
  if (error.code() == Code::kResourceExhausted) return std::chrono::minutes(1);
  return DeviceErrorTimeout(error);
}

inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
const Status& StatusOf(const Result<T>& result) {
  return result.status();
}

// Calls `start`, which returns a Result or a Status, until it succeeds or has failed for
// patience(error). Blocks; logs the first error.
template <typename Start, typename Patience = Duration (*)(const Status&)>
auto RetryOnDiskError(Start start, Patience patience = DiskErrorTimeout) -> decltype(start()) {
  const TimePoint begun = RealClock::Get()->Now();
  for (bool told = false;; told = true) {
    auto started = start();
    if (started.ok()) return started;
    const Status& failed = StatusOf(started);
    if (RealClock::Get()->Now() - begun >= patience(failed)) return started;
    if (!told) LogWarning("{}; tried again", failed.message());
    std::this_thread::sleep_for(kDiskRetryInterval);
  }
}

}  // namespace shoal::host
