#include "job/execution/plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "base/clock.h"
#include "job/spec/cluster_reference.h"
#include "job/spec/enum_names.h"
#include "job/spec/members.h"
#include "job/spec/schedule_json.h"
#include "job/spec/triggers_json.h"

namespace shoal::job {
namespace {

// The table prints at most this many tasks per role and summarizes the rest; --json lists all.
constexpr int kListedTasks = 16;

std::string FormatCpu(double cpu) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", cpu);
  return buffer;
}

// Shell quoting, for display only.
std::string Quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("@%_-+=:,./*").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "'";
}

constexpr std::string_view kHidden = "***";

// The command with the values of options such as --token=… and --password … hidden.
std::vector<std::string> ShownCommand(const std::vector<std::string>& command) {
  std::vector<std::string> shown;
  bool hide = false;
  for (const std::string& word : command) {
    const size_t equals = word.find('=');
    const bool named = LooksSecret(word.substr(0, equals));
    if (hide && !word.starts_with('-')) {
      shown.emplace_back(kHidden);
    } else if (named && equals != std::string::npos) {
      shown.push_back(word.substr(0, equals + 1) + std::string(kHidden));
    } else {
      shown.push_back(HideSecrets(word));
    }
    hide = named && equals == std::string::npos && word.starts_with('-');
  }
  return shown;
}

std::string Join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + Quoted(word);
  return out;
}

std::string PortNames(const std::vector<Port>& ports) {
  std::string out;
  for (const Port& port : ports) {
    out += (out.empty() ? "" : ", ") + port.name + (port.plain ? " (plain)" : "");
  }
  return out.empty() ? "-" : out;
}

std::string OrDash(std::string text) { return text.empty() ? "-" : text; }

std::string ResourceText(const Resources& resources, int kind) {
  if (kind == 0) return resources.cpu > 0 ? FormatCpu(resources.cpu) : "-";
  if (kind == 1) return resources.memory_bytes > 0 ? FormatBytes(resources.memory_bytes) : "-";
  return resources.gpu > 0 ? std::to_string(resources.gpu) : "-";
}

using Row = std::array<std::string, 7>;  // task, cpu, memory, gpu, ports, follows, command

Row MakeRow(const PlannedTask& task, std::string name) {
  return {std::move(name),
          ResourceText(task.resources, 0),
          ResourceText(task.resources, 1),
          ResourceText(task.resources, 2),
          PortNames(task.ports),
          OrDash(task.follows),
          Join(ShownCommand(task.command))};
}

std::string Table(const std::vector<Row>& rows) {
  std::array<size_t, 7> width{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      out += row[i] + std::string(width[i] - row[i].size() + 2, ' ');
    }
    out += row.back() + "\n";
  }
  return out;
}

std::string TaskTable(const Plan& plan) {
  std::vector<Row> rows = {{"TASK", "CPU", "MEMORY", "GPU", "PORTS", "FOLLOWS", "COMMAND"}};
  for (size_t i = 0; i < plan.tasks.size();) {
    size_t end = i;
    while (end < plan.tasks.size() && plan.tasks[end].role == plan.tasks[i].role) ++end;
    const size_t listed = end - i > kListedTasks ? kListedTasks - 1 : end - i;
    for (size_t k = i; k < i + listed; ++k) {
      const PlannedTask& task = plan.tasks[k];
      rows.push_back(MakeRow(task, task.role + " " + std::to_string(task.index)));
    }
    if (i + listed < end) {
      const PlannedTask& first = plan.tasks[i + listed];
      rows.push_back(MakeRow(first, first.role + " " + std::to_string(first.index) + " to " +
                                        std::to_string(plan.tasks[end - 1].index) + ", each"));
    }
    i = end;
  }
  return Table(rows);
}

std::string EnvironmentText(const Plan& plan) {
  std::string out;
  const PlannedTask* before = nullptr;
  for (const PlannedTask& task : plan.tasks) {
    const bool same_role = before != nullptr && before->role == task.role;
    if (!same_role && !task.env.empty()) {
      out += "\nEnvironment of " + task.role + " " + std::to_string(task.index) + ":\n";
      for (const auto& [name, value] : task.env) {
        out += "  " + name + "=" + Quoted(ShownValue(name, value)) + "\n";
      }
    }
    before = &task;
  }
  return out;
}

std::string SuccessText(const Success& success) {
  std::string roles;
  for (const std::string& role : success.roles) roles += (roles.empty() ? "" : ", ") + role;
  switch (success.rule) {
    case SuccessRule::kAll:
      return "when every task of " + roles + " has ended well";
    case SuccessRule::kAny:
      return "when one task of " + roles + " has ended well";
    case SuccessRule::kFirst:
      return "when " + roles + " 0 has ended well";
    case SuccessRule::kCount:
      return "when " + std::to_string(success.count) + " tasks of " + roles + " have ended well";
  }
  return {};
}

std::string TotalText(const Plan& plan) {
  std::string out =
      std::to_string(plan.tasks.size()) + (plan.tasks.size() == 1 ? " task" : " tasks");
  if (plan.total.cpu > 0) out += ", " + FormatCpu(plan.total.cpu) + " CPU";
  if (plan.total.memory_bytes > 0) out += ", " + FormatBytes(plan.total.memory_bytes) + " memory";
  if (plan.total.gpu > 0) out += ", " + std::to_string(plan.total.gpu) + " GPU";
  return out;
}

json::object ResourcesJson(const Resources& resources) {
  json::object object{
      {"cpu", resources.cpu}, {"memory_bytes", resources.memory_bytes}, {"gpu", resources.gpu}};
  if (resources.cpu_request > 0) object["cpu_request"] = resources.cpu_request;
  if (resources.memory_request > 0) object["memory_request"] = resources.memory_request;
  return object;
}

json::object TaskJson(const PlannedTask& task) {
  json::object object;
  object["role"] = task.role;
  object["index"] = task.index;
  json::array command;
  for (const std::string& word : ShownCommand(task.command)) command.emplace_back(word);
  object["command"] = std::move(command);
  json::object env;
  for (const auto& [name, value] : task.env) env[name] = ShownValue(name, value);
  object["env"] = std::move(env);
  object["resources"] = ResourcesJson(task.resources);
  json::array ports;
  for (const Port& port : task.ports) {
    ports.push_back(json::object{{"name", port.name}, {"plain", port.plain}});
  }
  object["ports"] = std::move(ports);
  object["processes"] = task.processes;
  object["follows"] = task.follows;
  return object;
}

}  // namespace

std::string_view NameOf(Framework framework) { return NameOfValue(kFrameworks, framework); }
std::string_view NameOf(RestartWhen when) { return NameOfValue(kRestartWhens, when); }
std::string_view NameOf(RestartScope scope) { return NameOfValue(kRestartScopes, scope); }
std::string_view NameOf(SuccessRule rule) { return NameOfValue(kSuccessRules, rule); }
std::string_view NameOf(OnControllerLoss loss) { return NameOfValue(kControllerLosses, loss); }

std::string FormatBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.4g %s", value, kUnits[unit]);
  return buffer;
}

// Splits the name into words at other characters than letters and digits.
bool LooksSecret(const std::string& variable) {
  const auto secret = [](const std::string& word) {
    for (const std::string_view whole : {"KEY", "PASS", "PRIVATE"}) {
      if (word == whole) return true;
    }
    for (const std::string_view tail : {"TOKEN", "SECRET", "SECRETS", "PASSWORD", "PASSWD",
                                        "CREDENTIAL", "CREDENTIALS", "APIKEY"}) {
      if (word.ends_with(tail)) return true;
    }
    return false;
  };
  // The reference to a secret is not secret itself.
  for (const std::string_view place : {"_FILE", "_PATH", "_DIR", "_file", "-file", "_path"}) {
    if (variable.ends_with(place)) return false;
  }
  std::string word;
  for (const char c : variable + "_") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      continue;
    }
    if (secret(word)) return true;
    word.clear();
  }
  return false;
}

// Finds each "://", then the user information before the next '/', and replaces its password.
std::string ShownValue(const std::string& variable, const std::string& value) {
  const std::string text = MarksAsReferences(value);
  if (WholeSecret(text)) return text;  // its name, which hides nothing
  return LooksSecret(variable) ? std::string(kHidden) : HideSecrets(text);
}

std::string HideSecrets(const std::string& text) {
  std::string out;
  size_t at = 0;
  for (;;) {
    const size_t scheme = text.find("://", at);
    if (scheme == std::string::npos) break;
    const size_t begin = scheme + 3;
    const size_t end = text.find_first_of("/?# \t\n\",'", begin);
    const std::string authority = text.substr(begin, end == std::string::npos ? end : end - begin);
    out += text.substr(at, begin - at);
    const size_t host = authority.rfind('@');
    const size_t colon = authority.find(':');
    if (host != std::string::npos && colon < host) {
      out += authority.substr(0, colon + 1) + std::string(kHidden) + authority.substr(host);
    } else {
      out += authority;
    }
    at = begin + authority.size();
  }
  return out + text.substr(at);
}

Result<Plan> MakePlan(const Job& job) {
  int64_t count = 0;
  for (const Role& role : job.roles) count += std::max(role.replicas, 0);
  if (count > kMaxTasks) {
    return InvalidArgument("the job's roles ask for " + std::to_string(count) +
                           " tasks, expected at most " + std::to_string(kMaxTasks));
  }
  Plan plan;
  plan.tasks.reserve(static_cast<size_t>(count));
  for (const Role& role : job.roles) {
    PlannedTask task;
    task.role = role.name;
    task.command = job.CommandOf(role);
    if (task.command.empty() && !job.image.empty()) {
      // The entry point is known only to the daemon or the registry.
      task.command = {"{" + job.image + "'s own entry point}"};
      task.command.insert(task.command.end(), role.args.begin(), role.args.end());
    } else if (task.command.empty()) {
      return InvalidArgument("role " + role.name + " has no command: give it or the job one");
    }
    task.env = role.env;
    task.env.insert(job.env.begin(), job.env.end());
    task.resources = role.resources;
    task.ports = role.ports;
    task.processes = role.processes;
    task.follows = role.follows;
    for (task.index = 0; task.index < role.replicas; ++task.index) plan.tasks.push_back(task);
    plan.total.cpu += role.resources.cpu_reserved() * role.replicas;
    plan.total.memory_bytes += role.resources.memory_reserved() * role.replicas;
    plan.total.gpu += role.resources.gpu * role.replicas;
  }
  return plan;
}

namespace {

std::string ElasticText(const Role& role) {
  if (!role.elastic()) return "";
  const std::string now = std::to_string(role.replicas);
  return "Size of " + role.name + ": " + now + " at first, at least " +
         std::to_string(role.least()) + ", at most " + std::to_string(role.most()) + ".\n";
}

std::string RestartText(const Role& role) {
  std::string out = "Restart of " + role.name + ": " + std::string(NameOf(role.restart.when));
  if (role.restart.when != RestartWhen::kNever) {
    out += ", at most " + std::to_string(role.restart.limit) + ", scope " +
           std::string(NameOf(role.restart.scope));
  }
  out += ".\n";
  // The preceding steps.
  std::string rules;
  for (const ExitRule& rule : role.on_exit)
    rules += "; " + rule.code + ": " + std::string(NameOfValue(kEndActions, rule.action));
  if (!rules.empty()) out += "Ends of " + role.name + ": " + rules.substr(2) + ".\n";
  rules.clear();
  for (const LogRule& rule : role.on_log)
    rules += "; " + Quoted(rule.line) + ": " + std::string(NameOfValue(kEndActions, rule.action));
  if (!rules.empty()) out += "Lines of " + role.name + ": " + rules.substr(2) + ".\n";
  return out;
}

template <typename Rule>
void AddRules(const char* field, const char* key, const std::vector<Rule>& rules,
              std::string Rule::*text, json::object* role) {
  if (rules.empty()) return;
  json::array& list = role->emplace(field, json::array()).first->value().get_array();
  for (const Rule& rule : rules)
    list.push_back({{key, rule.*text}, {"action", NameOfValue(kEndActions, rule.action)}});
}

std::string AfterText(const Role& role) {
  if (role.after.roles.empty()) return "";
  std::string waited;
  for (const std::string& name : role.after.roles) waited += (waited.empty() ? "" : ", ") + name;
  const bool ended = role.after.when == AfterWhen::kEnded;
  return "Start of " + role.name + ": when all tasks of " + waited + (ended ? " have " : " are ") +
         std::string(NameOfValue(kAfterWhens, role.after.when)) + ".\n";
}

std::string SuspendText(const Role& role) {
  if (role.checkpoint_signal == 0) return "";
  return "Suspension of " + role.name + ": " +
         std::string(NameOfValue(kCheckpointSignals, role.checkpoint_signal)) +
         " before SIGTERM.\n";
}

std::string ScheduleText(const Schedule& schedule) {
  if (schedule.cron.empty()) return "";
  constexpr std::string_view kBeside[] = {", unless the run before is not over",
                                          ", beside runs that are not over",
                                          ", in place of a run that is not over"};
  return "Schedule, once registered with `shoal schedule`: " + schedule.cron + ", " +
         schedule.time_zone + (schedule.enabled ? "" : ", not enabled") +
         std::string(kBeside[static_cast<size_t>(schedule.concurrency)]) + ".\n";
}

// What it waits for, and how many jobs it stands for.
std::string TriggersText(const Triggers& triggers) {
  std::string out;
  for (const Dependency& one : triggers.after)
    out += (out.empty() ? "Starts on a server after " : ", ") + one.job + " (" +
           std::string(NameOfValue(kDependencyWhens, one.when)) + ")";
  if (!out.empty()) out += ".\n";
  if (!triggers.has_members()) return out;
  const auto members = MembersOf(triggers);
  if (!members.ok()) return out;
  const bool sweeps = !triggers.sweep.objective.empty();
  const int limit = sweeps ? triggers.sweep.limit : triggers.matrix.limit;
  out += "One of " + std::to_string(members->size()) + " members, of which a server runs at most " +
         std::to_string(limit) + " at once; this is the first: ";
  std::string values;
  for (const auto& [name, value] : members->front())
    values += (values.empty() ? "" : ", ") + name + "=" + value;
  return out + values + ".\n";
}

std::string LimitsText(const Limits& limits) {
  constexpr std::string_view kDone[] = {"it is reported", "all tasks are started again",
                                        "the job fails"};
  std::string out;
  if (limits.stall.count() > 0) {
    out += "Stalled after " + FormatDuration(limits.stall) +
           " without any movement: " + std::string(kDone[static_cast<size_t>(limits.on_stall)]) +
           ".\n";
  }
  if (limits.keep_records.count() > 0) {
    out += "Records are kept for " + FormatDuration(limits.keep_records) + " after the end.\n";
  }
  return out;
}

json::object RoleJson(const Role& role) {
  json::object object{{"name", role.name},
                      {"replicas", role.replicas},
                      {"min", role.least()},
                      {"max", role.most()}};
  if (role.checkpoint_signal != 0) {
    object["checkpoint_signal"] = NameOfValue(kCheckpointSignals, role.checkpoint_signal);
  }
  AddRules("on_exit", "code", role.on_exit, &ExitRule::code, &object);
  AddRules("on_log", "line", role.on_log, &LogRule::line, &object);
  return object;
}

}  // namespace

std::string PrintPlan(const Job& job, const Plan& plan) {
  std::string out = "Job " + job.name + ", framework " + std::string(NameOf(job.framework)) + ": " +
                    TotalText(plan) + "\n\n" + TaskTable(plan);
  out += "\nSucceeds " + SuccessText(job.success) + ".\n";
  for (const Role& role : job.roles) out += ElasticText(role);
  for (const Role& role : job.roles) out += RestartText(role);
  for (const Role& role : job.roles) out += AfterText(role);
  for (const Role& role : job.roles) out += SuspendText(role);
  out += TriggersText(job.triggers);
  out += ScheduleText(job.schedule);
  out += LimitsText(job.limits);
  return out + EnvironmentText(plan);
}

json::object PlanToJson(const Job& job, const Plan& plan) {
  json::object object;
  object["name"] = job.name;
  object["framework"] = NameOf(job.framework);
  object["queue"] = job.queue;
  object["total"] = ResourcesJson(plan.total);
  json::array tasks;
  tasks.reserve(plan.tasks.size());
  for (const PlannedTask& task : plan.tasks) tasks.push_back(TaskJson(task));
  object["tasks"] = std::move(tasks);
  json::array roles;
  for (const std::string& role : job.success.roles) roles.emplace_back(role);
  object["success"] = json::object{{"rule", NameOf(job.success.rule)},
                                   {"roles", std::move(roles)},
                                   {"count", job.success.count}};
  json::array described;
  for (const Role& role : job.roles) described.push_back(RoleJson(role));
  object["roles"] = std::move(described);
  object["limits"] = json::object{{"stall_ms", job.limits.stall.count()},
                                  {"on_stall", NameOfValue(kOnStalls, job.limits.on_stall)},
                                  {"keep_records_ms", job.limits.keep_records.count()}};
  if (!job.schedule.cron.empty()) object["schedule"] = EncodeSchedule(job.schedule);
  if (job.triggers != Triggers()) object["triggers"] = EncodeTriggers(job.triggers);
  return object;
}

}  // namespace shoal::job
