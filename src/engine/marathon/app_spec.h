// Renders a job as a Marathon group with one app per role. Pure; marathon_engine.cc sends it. An
// app's definition depends only on the job, so that a change of its instance count is not a new
// version, which Marathon would restart.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "engine/engine.h"

namespace shoal::engine::marathon {

inline constexpr const char* kJobLabel = "SHOAL_JOB";
inline constexpr const char* kRoleLabel = "SHOAL_ROLE";
inline constexpr const char* kDirLabel = "SHOAL_DIR";

// Number and size of the Mesos tasks of a role's app.
struct RoleRequirement {
  int instances = 0;
  job::Resources resources;  // maximum over the role's tasks
};

// Default memory of a Mesos task. Mesos kills a task that uses more than it requested.
inline constexpr int64_t kUsualMemory = int64_t{1} << 30;
inline constexpr int64_t kCoordinatorMemory = int64_t{256} << 20;

// A name as a part of a Marathon path: lower-case letters, digits and '-'. A name with other
// characters is changed and gets a hash of the original as suffix.
std::string PathPart(const std::string& name);
// "/shoal/JOB", "/shoal/JOB/ROLE".
std::string GroupId(const job::Marathon& settings, const std::string& job_id);
std::string AppId(const std::string& group, const std::string& role);

// Name of the SRV record under which Mesos-DNS publishes the coordinator's port; empty if the name
// would be too long for DNS.
std::string CoordinatorService(const job::Marathon& settings, const std::string& job_id);
// The name server: numeric HOST:PORT, or "machine" (net/srv_record.h). Not set: no SRV lookup.
inline constexpr const char* kDnsVariable = "SHOAL_MESOS_DNS";
// Variable of launchers (rendezvous/bootstrap/coordinator_lookup.h).
inline constexpr const char* kCoordinatorServiceVariable = "SHOAL_COORDINATOR_SERVICE";

// Checks that Marathon can run the job. InvalidArgument names the field of the job file.
Status CheckSettings(const DesiredJob& desired);

// The requirements of each role with tasks.
std::map<std::string, RoleRequirement> RoleRequirements(const DesiredJob& desired);

// The body of PUT /v2/groups. `program`: path or name of shoal on the agents. The tasks of
// `settings` are ignored.
json::object MakeGroup(const DesiredJob& settings,
                       const std::map<std::string, RoleRequirement>& needs,
                       const std::string& program);

// ---- Shared with Metronome's jobs (metronome_spec.h) ----

// The program as a quoted word of `cmd`: a path, or a file name in the task's sandbox.
std::string QuoteProgram(const std::string& program);
// Quotes a text as one word for sh.
std::string ShellQuote(const std::string& text);
// Whole seconds, rounded up.
int64_t CeilSeconds(std::chrono::milliseconds time);
// Parses "FIELD:OPERATOR[:VALUE]".
json::array Constraint(const std::string& text);
// The `fetch` list of a task's sandbox; the program is marked executable.
json::array Fetch(const std::vector<std::string>& uris, const std::string& program);
// Variables of this process that are passed on to tasks.
json::object PassedVariables();
// Adds variables from secrets to `env`; returns the matching `secrets` object.
json::object AddSecrets(const std::map<std::string, std::string>& wanted, json::object* env);

}  // namespace shoal::engine::marathon
