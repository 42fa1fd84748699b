// Jobs, tasks and events as the API returns them, and read back by the client.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "controller/files/log_store.h"
#include "controller/files/outputs.h"
#include "controller/jobs/jobs.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"

namespace shoal::api {

// Without `whole` as in a list: without the job file.
json::object JobToReply(const controller::JobRecord& job, bool whole);
json::object SummaryToReply(const controller::JobSummary& job);
// Of either. InvalidArgument names the field that is wrong.
Result<controller::JobRecord> ParseJobReply(const json::object& object);

json::object EventToReply(const std::string& job, const controller::Event& event);
Result<controller::Event> ParseEventReply(const json::object& object);

json::object LogToReply(const controller::LogInfo& log);
Result<controller::LogInfo> ParseLogReply(const json::object& object);

json::object LogTimesToReply(const rendezvous::LogTimes& times);
Result<rendezvous::LogTimes> ParseLogTimesReply(const json::object& object);

json::object OutputToReply(const controller::OutputFile& file);
Result<controller::OutputFile> ParseOutputReply(const json::object& object);

// "worker-0.1", of the second attempt of worker 0; and back, nullopt for another form.
std::string LogName(const controller::LogKey& key);
std::optional<controller::LogKey> ParseLogName(std::string_view text);

// The ETag of a job, in quotes. It changes with each of its events.
std::string ETagOf(const controller::JobRecord& job);

}  // namespace shoal::api
