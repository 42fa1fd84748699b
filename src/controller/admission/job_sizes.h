// The number of tasks of an elastic job under a scheduler that resizes it: what the job's log says,
// and which of its tasks still hold resources. Used by job_admitter.cc.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "controller/membership/desired_membership.h"
#include "controller/store/job_record.h"
#include "job/spec/job.h"
#include "queue/core/job.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// The reason of the scheduler's requests to coordinators. Other reasons are those of people.
inline constexpr const char* kByTheQueue = "by the queue";
// Field of an event "resized" that is the scheduler's.
inline constexpr const char* kResizedBy = "by";
// The field of an admission's event with the flavor that the job got.
inline constexpr const char* kFlavorField = "flavor";

// What a job's log says of the role whose tasks the scheduler counts. Plain value.
struct SizeHistory {
  bool ran = false;    // it was admitted before, and would go on with `size` tasks
  int admissions = 0;  // so far
  int size = 0;        // that it is to have; 0: as in its record
  int wanted = 0;      // the most that a person has asked for (`shoal scale`); 0: no person has
};
SizeHistory SizesOf(const job::Job& job, const std::string& role, std::span<const Event> events);

// The flavor of the last admission (kFlavorField); empty if it has none.
std::string FlavorOf(std::span<const Event> events);

// The job with the numbers of tasks that its log says.
job::Job WithSizes(job::Job job, std::span<const Event> events);

// The bounds of a job's size. `file`: as of SpecOf for its file.
//
// A job that ran before starts with the size that it had, since its coordinator goes on with it.
queue::Request BoundsOf(const queue::Request& file, const SizeHistory& history, bool waits);

// Tasks of one role that have not ended. Not thread-safe.
class TaskCount {
 public:
  // `job` must outlive it. The role begins with `size` tasks.
  TaskCount(const job::Job* job, std::string role) : role_(std::move(role)), members_(job) {}
  void ApplyEvent(const rendezvous::JobEvent& event) { (void)members_.ApplyEvent(event); }
  int tasks() const {
    const auto found = members_.members().find(role_);
    return found == members_.members().end() ? 0 : static_cast<int>(found->second.size());
  }

 private:
  std::string role_;
  DesiredMembership members_;
};

}  // namespace shoal::controller
