#include "controller/run/admission.h"

#include <algorithm>

#include "job/spec/json.h"

namespace shoal::controller {

// Resources of running jobs are those of their specifications. Suspended jobs hold none.
AdmissionAnswer DecideAdmission(const std::string& id, const std::vector<JobRecord>& unfinished,
                                const engine::Capacity& capacity, const queue::Admission& policy,
                                const std::function<bool(const ProcessIdentity& owner)>& acts) {
  queue::Snapshot snapshot;
  // CPU may be oversubscribed, since tasks then share it; memory and devices may not.
  if (capacity.memory_bytes > 0) snapshot.capacity.memory_bytes = capacity.memory_bytes;
  snapshot.capacity.gpu = capacity.gpu;
  std::string engine;
  for (const JobRecord& record : unfinished) {
    if (record.id == id) engine = record.engine;
  }
  for (const JobRecord& record : unfinished) {
    if (record.state == JobState::kSuspended) continue;  // it holds nothing and asks for nothing
    if (record.engine != engine) continue;
    const Result<job::Job> parsed = job::FromJson(record.job);
    if (!parsed.ok()) continue;  // of another version; it cannot be weighed
    const queue::Demand demand = queue::DemandOf(*parsed);
    if (record.state != JobState::kPending) {
      snapshot.running.push_back({record.id, record.name, demand});
    } else if (record.id == id || acts(record.owner)) {
      snapshot.waiting.push_back({record.id, record.name, record.order, demand});
    }
  }
  const queue::SnapshotDecision decision = policy.Decide(snapshot);
  if (std::find(decision.admit.begin(), decision.admit.end(), id) != decision.admit.end())
    return {AdmissionDecision::kYes, ""};
  if (const auto refused = decision.rejected.find(id); refused != decision.rejected.end())
    return {AdmissionDecision::kNever, refused->second};
  const auto why = decision.pending_reasons.find(id);
  return {AdmissionDecision::kWait, why == decision.pending_reasons.end() ? "" : why->second};
}

}  // namespace shoal::controller
