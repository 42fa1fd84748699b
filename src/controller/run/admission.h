// Decides whether a queued job may start, given the jobs in the store. Used by job_run.cc.
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
  std::string why;  // set for kWait and kNever
};

// Applies the queue's policy to job `id`. Pure function.
//
// Waiting jobs whose owner does not act (killed or frozen, as `acts` reports) do not hold back
// others, and jobs of other engines do not use this engine's capacity. `capacity`: total of the
// job's engine. `unfinished`: all jobs that have not ended, oldest first, including `id`.
AdmissionAnswer DecideAdmission(const std::string& id, const std::vector<JobRecord>& unfinished,
                                const engine::Capacity& capacity, const queue::Admission& policy,
                                const std::function<bool(const ProcessIdentity& owner)>& acts);

}  // namespace shoal::controller
