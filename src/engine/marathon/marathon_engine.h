// The engine of a Mesos cluster with Marathon: a job is a group, a role is an app, and each task
// runs under an executor (marathon_helper.h) in one of the app's Mesos tasks.
//
//   controller: marathon_engine ── PUT /v2/groups/shoal/JOB ──▶ Marathon ──▶ executor ──▶ task
//     marathon_job │ orders.json ──────────────────────────────▶ TaskTable, one slot
//                  │ ◀──────────────────────── places/ROLE-N.jsonl   │
//                  └─ Marathon's events trigger a poll of the job's apps: lost and waiting tasks
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine {

// Plain value; `clock` outlives the engine.
struct MarathonEngineOptions {
  // Absolute path of shoal on all agents, which run `PROGRAM marathon …` (marathon_helper.h).
  std::string program;
  std::string url;  // default for job files without marathon.url; empty: SHOAL_MARATHON_URL
  const Clock* clock = RealClock::Get();
  RestartRules restart;
  // Time between SIGTERM and SIGKILL of a task that Apply no longer lists.
  std::chrono::milliseconds remove_grace{10'000};
  FindJobDir job_dir;  // finds jobs of other controller processes
};

// Starts two threads. Contacts Marathon only when a method needs it.
Result<std::unique_ptr<Engine>> MakeMarathonEngine(MarathonEngineOptions options);

}  // namespace shoal::engine
