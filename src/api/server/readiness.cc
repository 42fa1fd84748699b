#include "api/server/readiness.h"

#include <fmt/format.h>

#include "base/mutex.h"

namespace shoal::api {
namespace {

constexpr Duration kInterval = std::chrono::seconds(5);
constexpr const char* kKind = "server";
constexpr const char* kKey = "ready";
constexpr double kMiB = 1 << 20;

}  // namespace

Status Readiness::CheckStore() {
  const MutexLock lock(mu_);
  const TimePoint now = clock_->Now();
  if (tried_ && now - *tried_ < kInterval) return last_;
  tried_ = now;
  const json::object body{{"written", FormatWall(clock_->Wall())}};
  last_ = records_->Put(kKind, kKey, body, controller::kAnyVersion, clock_->Wall()).status();
  return last_;
}

Status Readiness::CheckDisk() const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(state_, error);
  if (error) return ErrnoStatus(error.value(), state_.string());
  if (space.available >= static_cast<uintmax_t>(kFreeForNewJobs)) return Status::Ok();
  return ResourceExhausted(fmt::format(
      "the disk of {} has {:.0f} MiB left, and a new job is accepted with at least {:.0f} MiB; "
      "running jobs go on. Free some space, for example with `shoal jobs --prune`",
      state_.string(), static_cast<double>(space.available) / kMiB, kFreeForNewJobs / kMiB));
}

}  // namespace shoal::api
