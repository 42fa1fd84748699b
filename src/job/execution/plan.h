// The plan: a job's roles as the tasks that will exist, each with its command, environment and
// resources; and how people and programs see it (`shoal plan`).
//
// Made from a validated Job by `shoal plan`, the queue (totals) and the coordinator (tasks). The
// order is the file's roles, then the index; a pure function of the job.
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
  std::vector<std::string> command;        // the role's, else the job's; "@shoal" not yet replaced
  std::map<std::string, std::string> env;  // the job's, the role's over it; secrets and all
  Resources resources;
  std::vector<Port> ports;
  int processes = 1;
  std::string follows;
};

struct Plan {
  std::vector<PlannedTask> tasks;
  Resources total;  // of all tasks; the coordinator itself is not counted
};

// InvalidArgument if a task has no command or there are more than kMaxTasks; ParseJob has checked
// both already, a Job made by other means may not have been.
Result<Plan> MakePlan(const Job& job);

// The table that `shoal plan` prints: tasks with resources, ports and command, totals, success
// rule, and the environment by role. Values of variables that look like secrets are not shown.
std::string PrintPlan(const Job& job, const Plan& plan);
// The same as JSON; likewise without secrets.
json::object PlanToJson(const Job& job, const Plan& plan);

// True for the name of a variable or option whose value is never shown: a word of it (between
// characters that are no letters or digits, in any case) is KEY, PASS or PRIVATE or ends with
// TOKEN, SECRET, PASSWORD, PASSWD, CREDENTIAL or APIKEY.
bool LooksSecret(const std::string& variable);
// The text with the passwords of its URLs ("s3://user:password@host") replaced by ***.
std::string HideSecrets(const std::string& text);

// Names as they stand in job files.
std::string_view NameOf(Framework framework);
std::string_view NameOf(RestartWhen when);
std::string_view NameOf(RestartScope scope);
std::string_view NameOf(SuccessRule rule);
std::string_view NameOf(OnControllerLoss loss);

// "512 MiB", "1.5 GiB", "0 B".
std::string FormatBytes(int64_t bytes);

}  // namespace shoal::job
