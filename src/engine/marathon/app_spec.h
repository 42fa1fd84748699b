// What Marathon is sent of a job: one group, in it one app a role. Pure; marathon_engine.cc sends
// it. The definition of an app depends on the job alone, so that a change of its instances is no
// new version of it, which Marathon would restart.
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
inline constexpr const char* kCoordinator = "coordinator";

// One role's app: how many Mesos tasks, and what each of them needs.
struct RoleRequirement {
  int instances = 0;
  job::Resources resources;  // the largest of its tasks'
};

// What a task's Mesos task is given where the job file says nothing: Mesos kills what takes more
// memory than it asked for.
inline constexpr int64_t kUsualMemory = int64_t{1} << 30;
inline constexpr int64_t kCoordinatorMemory = int64_t{256} << 20;

// A part of a Marathon path: lower case letters, digits and '-'. A name that cannot stand there as
// it is ends with a number made of it.
std::string PathPart(const std::string& name);
// "/shoal/JOB", "/shoal/JOB/ROLE".
std::string GroupId(const job::Marathon& settings, const std::string& job_id);
std::string AppId(const std::string& group, const std::string& role);

// The SRV record that Mesos-DNS makes of the coordinator's port; empty if the name would be too
// long for one.
std::string CoordinatorService(const job::Marathon& settings, const std::string& job_id);
// Who is asked for it: HOST:PORT, numeric, or "machine" (net/srv_record.h). Not set: nobody.
inline constexpr const char* kDnsVariable = "SHOAL_MESOS_DNS";
// What launchers are told (rendezvous/bootstrap/coordinator_lookup.h).
inline constexpr const char* kCoordinatorServiceVariable = "SHOAL_COORDINATOR_SERVICE";

// InvalidArgument names the field of the job file.
Status CheckSettings(const DesiredJob& desired);

// Of the tasks named.
std::map<std::string, RoleRequirement> RoleRequirements(const DesiredJob& desired);

// The body of PUT /v2/groups. `program`: shoal, as the agents find it. `settings`: of the job; its
// tasks are not looked at.
json::object MakeGroup(const DesiredJob& settings,
                       const std::map<std::string, RoleRequirement>& needs,
                       const std::string& program);

// ---- What Metronome's jobs have as well (metronome_spec.h) ----

// The program as a word of `cmd`: a path, or a name in the task's sandbox.
std::string QuoteProgram(const std::string& program);
// As sh reads one word.
std::string ShellQuote(const std::string& text);
// Whole seconds, rounded up.
int64_t CeilSeconds(std::chrono::milliseconds time);
// Of "FIELD:OPERATOR[:VALUE]".
json::array Constraint(const std::string& text);
// What a task's sandbox gets; the program can be executed there.
json::array Fetch(const std::vector<std::string>& uris, const std::string& program);
// The variables of this process that a task is to have too.
json::object PassedVariables();
// Variables that a secret store fills, in `env`, and where, as `secrets`.
json::object AddSecrets(const std::map<std::string, std::string>& wanted, json::object* env);

}  // namespace shoal::engine::marathon
