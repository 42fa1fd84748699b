// Decisions of the scheduler and the reason why a job waits, typed; text only where they are shown.
#pragma once

#include <cstdint>

#include "queue/core/amounts.h"
#include "queue/core/job.h"
#include "queue/core/quota_tree.h"

namespace shoal::queue {

enum class ReasonCode : uint8_t {
  kNone,             // it does not wait
  kFits,             // it fits and has not been decided yet
  kNoFlavor,         // no flavor of its queue is allowed for it                  never starts
  kExceedsQuota,     // it asks for more than its queue can ever use              never starts
  kExceedsCapacity,  // it asks for more than there is in all                     waits for machines
  kTaskTooLarge,     // one of its tasks fits on no node                          waits for machines
  kExceedsLimit,     // it asks for more than its user or team may hold           never starts
  kHeld,             // its queue is on hold or drained
  kMaintenance,      // it would run into a maintenance window, or one is open
  kDelayed,          // its tasks did not gather, so it goes back after a while
  kLimit,            // its user or team holds as much as it may
  kVictims,          // resources are set aside; jobs that hold them are stopping
  kQuota,            // its queue may not use more now
  kCapacity,         // too little is free
  kReserved,         // it would delay the job that is next
  kBehind,           // an earlier job of its queue is first
};

// Why a job waits, and on what. Fields that do not apply are kNoIndex or 0.
struct Reason {
  ReasonCode code = ReasonCode::kNone;
  FlavorIndex flavor = kNoIndex;
  NodeIndex node = kNoIndex;  // whose quota or limit binds
  size_t resource = 0;        // the first that is short
  int64_t needed = 0;
  int64_t available = 0;
  JobRef other = kNoIndex;  // kReserved, kBehind: that job; kCapacity, kQuota: the largest holder
  int32_t ahead = 0;        // jobs of its queue before it
  Millis until = kForever;  // expected start, or the time to which it is put off

  bool operator==(const Reason&) const = default;
};

enum class Action : uint8_t {
  kAdmit,    // starts now, on `flavor` with `size`
  kResize,   // a running job changes to `size` tasks; a shrinking one for `beneficiary`
  kPreempt,  // a running job is saved and stopped, and goes back into its queue
  kReserve,  // resources are set aside for a waiting job, expected at `at`
  kRefuse,   // can never start
};

struct Decision {
  Action action = Action::kAdmit;
  JobRef job = kNoIndex;
  JobRef beneficiary = kNoIndex;  // of a preemption or shrinking; kNoIndex: maintenance or drain
  FlavorIndex flavor = kNoIndex;
  int32_t size = 0;
  Millis at = kForever;  // of kReserve; kForever: unknown, since run times are
  Reason reason;         // of kRefuse and kPreempt

  bool operator==(const Decision&) const = default;
};

}  // namespace shoal::queue
