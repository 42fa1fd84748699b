// What objects need of the world, handed in so that tests choose it: the environment, time, waiting
// and randomness.
#pragma once

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/id.h"

namespace shoal::data {

// How often a request is repeated that failed for a reason that may pass: the server answers 408,
// 429 or 5xx, the connection breaks, nothing comes in time.
struct RetryPolicy {
  int attempts = 6;  // in all
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds most{10'000};
  std::chrono::milliseconds timeout{60'000};  // of one attempt
};

struct ObjectContext {
  // A variable of the environment; empty if it is not set.
  std::function<std::string(const char*)> env = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::function<void(std::chrono::milliseconds)> sleep = [](std::chrono::milliseconds time) {
    std::this_thread::sleep_for(time);
  };
  const Clock* clock = RealClock::Get();
  uint64_t seed = RandomSeed();  // of the jitter
  RetryPolicy retry;
  int connections_per_host = 16;
};

}  // namespace shoal::data
