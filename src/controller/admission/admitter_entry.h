// A job of an admitter. Used by job_admitter.cc and held_jobs.cc.
#pragma once

#include <optional>
#include <string>

#include "controller/admission/job_admitter.h"
#include "controller/admission/job_sizes.h"

namespace shoal::controller {

struct AdmitterEntry {
  JobRecord record;
  job::Job job;
  AdmissionCallbacks calls;  // empty once the job holds its resources
  int64_t serial = 0;
  queue::JobRef ref = queue::kNoIndex;  // kNoIndex: its engine's capacity is not known yet
  bool storing = false;                 // an event of it is being written
  bool admitted = false;                // decided; stored when `storing` ends
  bool told = false;                    // on_wait was called
  std::string flavor;                   // of the admission
  queue::Reason reason;                 // last stored
  int told_requests = 0;                // to the job that it waits for, likewise
  bool whole = false;                   // it had not run before this admission
  // Of a job that the scheduler resizes; `role` is the one whose tasks are counted.
  bool elastic = false;
  std::string role;
  int size = 0;      // decided
  int accepted = 0;  // by its coordinator, or stored with the admission
  SizeHistory history;
  std::optional<TaskCount> tasks;
  int refused = 0;      // requests for more tasks in a row
  TimePoint grow_at{};  // after a refusal; epoch: at any time
  // Of a job that is to stop for another.
  int asked = 0;       // requests to stop
  TimePoint ask_at{};  // the next one
  std::string stop_reason;
  std::string refusal;  // what its coordinator said
  int kept = 0;         // times that it was let go on

  bool waits() const { return calls.on_admitted != nullptr; }
  bool decidable() const { return waits() && ref != queue::kNoIndex && !storing && !admitted; }
};

}  // namespace shoal::controller
