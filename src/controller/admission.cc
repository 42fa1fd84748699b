#include "controller/admission.h"

#include <algorithm>

#include "job/json.h"

namespace shoal::controller {

AdmissionAnswer MayStart(const std::string& id, const std::vector<JobRecord>& unfinished,
                         const engine::Capacity& capacity, const queue::Admission& policy,
                         const std::function<bool(const ProcessIdentity& owner)>& acts) {
  queue::Snapshot snapshot;
  // CPU may be oversubscribed: tasks then take turns. Memory and devices may not.
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
  const queue::Decision decision = policy.Decide(snapshot);
  if (std::find(decision.admit.begin(), decision.admit.end(), id) != decision.admit.end())
    return {Admitted::kYes, ""};
  if (const auto refused = decision.refuse.find(id); refused != decision.refuse.end())
    return {Admitted::kNever, refused->second};
  const auto why = decision.why.find(id);
  return {Admitted::kWait, why == decision.why.end() ? "" : why->second};
}

}  // namespace shoal::controller
