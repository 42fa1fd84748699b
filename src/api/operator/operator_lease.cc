#include "api/operator/operator_lease.h"

#include <algorithm>

namespace shoal::api {
namespace {

constexpr int64_t kMaxSeconds = 3600;

json::object SpecOf(const std::string& holder, int64_t transitions, WallTime wall) {
  return {{"spec",
           {{"holderIdentity", holder},
            {"leaseDurationSeconds",
             std::chrono::duration_cast<std::chrono::seconds>(kLeaseDuration).count()},
            {"renewTime", FormatWall(wall)},
            {"leaseTransitions", transitions}}}};
}

json::object WithVersion(json::object change, const std::string& version) {
  change["metadata"] = json::object{{"resourceVersion", version}};
  return change;
}

}  // namespace

Result<LeaseView> DecodeLease(const json::object& object) {
  LeaseView lease;
  if (const json::object* const meta = FindObject(object, "metadata"))
    lease.version = GetStringOr(*meta, "resourceVersion", "");
  if (lease.version.empty()) return DataLoss("the API server's Lease has no version");
  const json::object* const spec = FindObject(object, "spec");
  if (spec == nullptr) return lease;
  lease.holder = GetStringOr(*spec, "holderIdentity", "");
  lease.renewed = GetStringOr(*spec, "renewTime", "");
  lease.seconds = std::clamp<int64_t>(GetIntOr(*spec, "leaseDurationSeconds", 0), 0, kMaxSeconds);
  lease.transitions = GetIntOr(*spec, "leaseTransitions", 0);
  return lease;
}

std::optional<json::object> OperatorLease::Attempt(const LeaseView& lease, TimePoint now,
                                                   WallTime wall) {
  const std::string seen = lease.holder + "\n" + lease.renewed;
  if (seen != seen_) {
    seen_ = seen;
    seen_at_ = now;
  }
  const bool own = lease.holder == self_;
  const bool expired = now - seen_at_ >= std::chrono::seconds(lease.seconds);
  if (!own && !lease.holder.empty() && !expired) {
    other_ = lease.holder;
    return std::nullopt;
  }
  other_.clear();
  return WithVersion(SpecOf(self_, lease.transitions + (own ? 0 : 1), wall), lease.version);
}

json::object OperatorLease::Release(const LeaseView& lease, WallTime wall) const {
  return WithVersion(SpecOf("", lease.transitions, wall), lease.version);
}

}  // namespace shoal::api
