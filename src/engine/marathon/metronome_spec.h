// What Metronome is sent of a scheduled job, and what it answers. Pure; metronome.cc sends it.
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
inline constexpr const char* kScheduleId = "shoal";  // of the one schedule that each job has

// "/ml/jobs" and "text-vectors" → "ml.jobs.text-vectors".
std::string MetronomeId(const job::Marathon& settings, const std::string& name);

// Where Metronome is: `given`, else beside Marathon at DC/OS' address,
// https://HOST/service/marathon. InvalidArgument says what to set.
Result<std::string> MetronomeUrl(const std::string& given, const std::string& marathon_url);

// The body of POST /v1/jobs. `program`: shoal, as the agents find it.
json::object MakeScheduledJob(const job::Job& job, const ScheduledRun& run,
                              const std::string& program, const std::string& marathon_url);
// The body of POST /v1/jobs/ID/schedules.
json::object MakeSchedule(const job::Schedule& schedule);

// One job of Metronome's; nothing of it is trusted.
struct MetronomeJob {
  std::string id;
  ScheduleStatus status;  // an empty name: not one of ours
};
Result<std::vector<MetronomeJob>> DecodeMetronomeJobs(std::string_view body);
// With its schedule, active runs and history.
Result<MetronomeJob> DecodeMetronomeJob(std::string_view body);
// The id of a run that was begun.
Result<std::string> DecodeMetronomeRun(std::string_view body);

}  // namespace shoal::engine::marathon
