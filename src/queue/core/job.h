// A job as the scheduler sees it: the request of its submitter, and where it stands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "queue/core/amounts.h"
#include "queue/core/quota_tree.h"

namespace shoal::queue {

// Number of a job in one scheduler. It is reused after the job has ended.
using JobRef = int32_t;

// Resources of a job of `n` tasks of its elastic role: base + n · unit. A job that is not elastic
// has least == most == 1 and its whole demand in `unit`.
struct Request {
  Amounts base;
  Amounts unit;
  int32_t least = 1;  // it may start with this many
  int32_t most = 1;   // and uses at most this many
  Amounts largest_task;

  Amounts At(int32_t size) const { return base + unit * size; }
  Amounts Least() const { return At(least); }
  bool operator==(const Request&) const = default;
};

struct JobSpec {
  std::string id;    // unique
  std::string name;  // for messages
  std::string queue;
  std::string user;
  std::string team;
  std::string engine;                // engine instance; empty: any
  std::vector<std::string> flavors;  // any of these; empty: every flavor of its queue
  Request request;
  int32_t tasks = 1;      // that its submitter asked for, of the role that `request.unit` counts
  std::string role;       // name of that role
  int32_t priority = 0;   // larger ones first, within the queue
  int64_t order = 0;      // of submission; ties are broken by the id
  Millis run_time{0};     // declared or learned; 0: unknown
  double confidence = 1;  // that it ends within `run_time`: 1 for a declared one, which is a limit
  Millis checkpoint{0};   // interval of its checkpoints, known from its specification; 0: none
};

enum class Phase : uint8_t {
  kFree,        // the number is not in use
  kWaiting,     // in the line of its queue
  kDelayed,     // goes back into the line at `not_before`
  kImpossible,  // exceeds what there is in all; reconsidered when the capacity or policy changes
  kAssigned,    // its resources are set aside; it starts when its victims have released theirs
  kRunning,     // from its admission on
  kLeaving,     // preempted; holds its resources until it has stopped
};

// Record of a job. Owned by JobTable.
struct JobState {
  Phase phase = Phase::kFree;
  bool refused = false;  // it was said once that it can never start
  NodeIndex leaf = kNoIndex;
  int32_t lane = kNoIndex;        // WaitingLines
  FlavorIndex flavor = kNoIndex;  // once resources are set aside
  int32_t size = 0;
  uint32_t flavor_mask = ~0U;     // allowed flavors
  int32_t attempts = 0;           // failed gatherings in a row
  JobRef beneficiary = kNoIndex;  // of a leaving or shrinking job: it waits for this one
  bool shrinking = false;         // it was told to, and has not said that it did
  int32_t victims = 0;            // of an assigned job: those that have not released yet
  int32_t whole = 0;              // of a shrinking job: the size that it had
  Millis kept_until{0};           // nothing is taken from it before
  int64_t serial = 0;             // unique among all jobs of the scheduler, ascending
  int64_t hold_serial = 0;        // unique, ascending in the order of admission
  Amounts charge;  // what it is to hold: nothing of a leaving job, all of an assigned one
  Amounts real;    // what it holds: all of a leaving job until it has stopped, nothing of an
                   // assigned one
  Millis submitted{0};
  Millis started{0};
  Millis saved{0};        // last checkpoint that was reported, or its start
  Millis end = kForever;  // expected, of a job that holds resources
  Millis not_before{0};
  Millis resized{0};
  int32_t running_at = kNoIndex;  // position in the list of its queue
  JobSpec spec;

  int32_t priority() const { return spec.priority; }
  // What it keeps from others.
  int64_t Holds(size_t resource) const { return std::max(charge[resource], real[resource]); }
  bool holds() const {
    return phase == Phase::kAssigned || phase == Phase::kRunning || phase == Phase::kLeaving;
  }
};

}  // namespace shoal::queue
