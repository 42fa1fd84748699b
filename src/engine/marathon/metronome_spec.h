// Requests to Metronome for scheduled jobs, and decoders of its responses. Pure; used by
// metronome.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "engine/schedules.h"

namespace shoal::engine::marathon {

inline constexpr const char* kScheduleLabel = "SHOAL_SCHEDULE";  // the job's name
inline constexpr const char* kHomeLabel = "SHOAL_HOME";
inline constexpr const char* kScheduleId = "shoal";  // id of the single schedule of each job

// "/ml/jobs" and "text-vectors" → "ml.jobs.text-vectors".
std::string MetronomeId(const job::Marathon& settings, const std::string& name);

// Metronome's URL: `given`, else derived from Marathon's URL at a DC/OS cluster,
// https://HOST/service/marathon. InvalidArgument names the variable to set.
Result<std::string> MetronomeUrl(const std::string& given, const std::string& marathon_url);

// The body of POST /v1/jobs. `program`: path of shoal on the agents.
json::object MakeScheduledJob(const job::Job& job, const ScheduledRun& run,
                              const std::string& program, const std::string& marathon_url);
// The body of POST /v1/jobs/ID/schedules.
json::object MakeSchedule(const job::Schedule& schedule);

// A job of Metronome, from untrusted JSON.
struct MetronomeJob {
  std::string id;
  ScheduleStatus status;  // empty name: not created by Shoal
};
Result<std::vector<MetronomeJob>> DecodeMetronomeJobs(std::string_view body);
// A job with its schedule, active runs and history.
Result<MetronomeJob> DecodeMetronomeJob(std::string_view body);
// The id of a started run.
Result<std::string> DecodeMetronomeRun(std::string_view body);

}  // namespace shoal::engine::marathon
