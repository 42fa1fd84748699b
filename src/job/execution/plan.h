// The plan of a job: its tasks with their commands, environments and resources, and the output of
// `shoal plan`.
//
// A pure function of a validated Job, used by `shoal plan`, the queue (totals) and the coordinator
// (tasks). Tasks are ordered by role as in the file, then by index.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "job/spec/job.h"

namespace shoal::job {

struct PlannedTask {
  std::string role;
  int index = 0;
  std::vector<std::string> command;  // the role's, else the job's; "@shoal" is not yet resolved
  std::map<std::string, std::string>
      env;  // the job's variables overridden by the role's; contains secrets
  Resources resources;
  std::vector<Port> ports;
  int processes = 1;
  std::string follows;
};

struct Plan {
  std::vector<PlannedTask> tasks;
  Resources total;  // sum over all tasks, without the coordinator
};

// InvalidArgument if a task has no command or the job has more than kMaxTasks tasks. Jobs from
// ParseJob pass; a Job made by other means may fail.
Result<Plan> MakePlan(const Job& job);

// The text that `shoal plan` prints: tasks with resources, ports and command, totals, success rule,
// and the environment of each role. Values of secret-looking variables are hidden.
std::string PrintPlan(const Job& job, const Plan& plan);
// The same as JSON, with the same values hidden.
json::object PlanToJson(const Job& job, const Plan& plan);

// True for a variable or option whose value must not be shown. The name is split into words at
// characters other than letters and digits; it is secret if a word, in any case, is KEY, PASS or
// PRIVATE or ends in TOKEN, SECRET, PASSWORD, PASSWD, CREDENTIAL or APIKEY.
bool LooksSecret(const std::string& variable);
// Replaces passwords in URLs ("s3://user:password@host") with ***.
std::string HideSecrets(const std::string& text);

// The value of a variable as it may be shown: by the two rules above, and references to secrets by
// their names.
std::string ShownValue(const std::string& variable, const std::string& value);

// Names as in job files.
std::string_view NameOf(Framework framework);
std::string_view NameOf(RestartWhen when);
std::string_view NameOf(RestartScope scope);
std::string_view NameOf(SuccessRule rule);
std::string_view NameOf(OnControllerLoss loss);

// "512 MiB", "1.5 GiB", "0 B".
std::string FormatBytes(int64_t bytes);

}  // namespace shoal::job
