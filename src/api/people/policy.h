// What the job files of a team may ask for, and what they are given: the administrator's limits on
// engines, images, paths of the server's machines and fields.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/access/directory_owner.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "controller/store/records.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"

namespace shoal::api {

// In patterns, `*` stands for any text. A list that is not set allows everything. Plain value.
struct Policy {
  std::optional<std::vector<std::string>> engines;  // names of engine instances
  std::optional<std::vector<std::string>> images;   // patterns, "registry.example/red/*"
  // Directories of the machines where jobs run: paths of data, outputs and volumes, and the
  // directory of a submission, must lie in one of them.
  std::optional<std::vector<std::string>> paths;
  // Patterns of fields that job files must not contain: "slurm.options", "kubernetes.*".
  std::vector<std::string> forbidden;
  // Fields with the values that every job of the team has: "kubernetes.namespace" → "red".
  std::map<std::string, std::string> fields;
  // When logs are removed before the records of their jobs (controller/retention).
  std::optional<int64_t> log_days;   // after the job's end
  std::optional<int64_t> log_bytes;  // on the disk, of all jobs of a team
  // As whom tasks of the engines local and slurm run: a name, "UID" or "UID:GID"; empty: as the
  // server.
  std::string user;
  bool isolated = false;  // jobs whose tasks would run as the server are refused
  // On Kubernetes tasks accept connections from tasks of the same team only.
  bool separate_network = false;
};

json::object ToJson(const Policy& policy);
// InvalidArgument names what is wrong: a field of job files that does not exist, a path that is not
// absolute.
Result<Policy> ParsePolicy(const json::object& object);

// A job with what it is checked with.
struct PolicySubject {
  const job::Job& job;
  const job::FieldLocations& locations;  // of the fields that the file gives
  std::string engine;
  std::string directory;  // that the request names; empty: none
};

// PermissionDenied with the field, its location, and what the policy allows. Paths must be absolute
// already (job::ResolvePaths). Symbolic links are not followed.
Status CheckPolicy(const Policy& policy, const PolicySubject& subject);
// As whom the tasks of a job run, on an instance of the engine `kind`. None: as the server, or as
// its engine decides. PermissionDenied if the policy does not allow that, InvalidArgument for an
// unknown user, FailedPrecondition if this process is not root and so cannot run them as the user.
Result<std::optional<UserIds>> TaskUserOf(const Policy& policy, const std::string& kind);
// The fields of the policy as arguments of job::ParseJob.
std::vector<std::string> OverridesOf(const Policy& policy);

// The stored policies: one for each team, and one for the teams without. Thread-safe.
class Policies {
 public:
  // Both must outlive it.
  Policies(controller::Records* records, const Clock* clock) : records_(records), clock_(clock) {}

  // `team` empty: the one for teams without. NotFound if there is none.
  Result<Policy> Get(const std::string& team);
  Status Set(const std::string& team, const Policy& policy);
  Status Remove(const std::string& team);
  // What applies to a team: its own, else the one for teams without, else one that allows
  // everything.
  Result<Policy> Of(const std::string& team);

 private:
  controller::Records* const records_;
  const Clock* const clock_;
};

}  // namespace shoal::api
