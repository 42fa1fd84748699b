// The engine of a cluster under Mesos with Marathon: a job is a group, a role an app, a task runs
// under a holder (inside.h) in one of that app's Mesos tasks.
//
//   controller: marathon_engine ── PUT /v2/groups/shoal/JOB ──▶ Marathon ──▶ agent: holder ──▶ task
//     marathon_job │ orders.json ─────────────────────────────────────────▶ table, one place
//                  │ ◀──────────────────────── places/ROLE-N.jsonl             │
//                  └─ events, then the job's apps: what is lost, why it waits
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

struct MarathonEngineOptions {
  // Absolute path of shoal, at which all agents find it; `PROGRAM marathon …` is inside.h.
  std::string program;
  std::string url;  // where a job file names none; empty: SHOAL_MARATHON_URL
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  // Between SIGTERM and SIGKILL of a task that Apply no longer names.
  std::chrono::milliseconds remove_grace{10'000};
  FindJobDir job_dir;  // of jobs that this engine has not been told of by Adopt
};

// Starts two threads. Asks Marathon for nothing yet.
Result<std::unique_ptr<Engine>> MakeMarathonEngine(MarathonEngineOptions options);

}  // namespace shoal::engine
