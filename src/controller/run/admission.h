// Asks the queue whether a job may start now, over the jobs that the store knows of. Used by
// job_run.cc.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "controller/store/job_record.h"
#include "engine/engine.h"
#include "queue/admission.h"

namespace shoal::controller {

enum class AdmissionDecision : uint8_t { kYes, kWait, kNever };

struct AdmissionAnswer {
  AdmissionDecision answer = AdmissionDecision::kWait;
  std::string why;  // of kWait and kNever
};

// Pure. A job that waits and whose owner does not act any more (`acts`; it was killed or is frozen)
// holds back no other, and one of another engine takes nothing of this one. `capacity`: of the
// job's engine. `unfinished`: oldest first, with the job `id` among them.
AdmissionAnswer DecideAdmission(const std::string& id, const std::vector<JobRecord>& unfinished,
                                const engine::Capacity& capacity, const queue::Admission& policy,
                                const std::function<bool(const ProcessIdentity& owner)>& acts);

}  // namespace shoal::controller
