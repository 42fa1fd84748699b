// Checks that involve several fields: references between roles, rules of the framework, sums.
#include <algorithm>
#include <set>

#include "base/clock.h"
#include "job/file/decode.h"
#include "job/file/parse.h"
#include "job/spec/cluster_reference.h"

namespace shoal::job {
namespace {

class Validator {
 public:
  Validator(const JobDraft& draft, Errors* errors)
      : draft_(draft), job_(draft.job), errors_(errors), clean_(errors->empty()) {
    for (const Role& role : job_.roles) names_.push_back(role.name);
  }

  void Run() {
    CheckRoles();
    if (clean_) CheckCommands();
    if (clean_) CheckFramework();
    // A role with an invalid name is dropped by the decoder; without this check every reference to
    // it would add another error.
    if (errors_->At("roles")) return;
    CheckFollows();
    for (const Role& role : job_.roles) {
      CheckAfter(role);
      CheckProbe(role, "ready", role.ready.port, {"tcp", "http", "command", "log"});
      CheckProbe(role, "health", role.health.port, {"tcp", "http", "command"});
    }
    CheckSchedule();
    CheckMembers();
    CheckSuccess();
    CheckStall();
    CheckVariables("env", job_.env);
    for (const Role& role : job_.roles) CheckVariables("roles." + role.name + ".env", role.env);
    for (const DataSource& data : job_.data) CheckData(data);
    for (const std::string& text : job_.container.volumes) {
      const Result<Volume> volume = ParseVolume(text);
      if (!volume.ok()) Wrong("container.volumes", volume.status().message());
    }
    const std::string& work_dir = job_.container.work_dir;
    if (!work_dir.empty() && work_dir[0] != '/')
      Wrong("container.work_dir", "got '" + work_dir + "', expected an absolute path");
    if (!job_.image.empty() && !job_.files.empty()) {
      Wrong("files", "got files beside an image, expected one of the two: an image brings its own");
    }
  }

 private:
  void Wrong(const std::string& path, const std::string& sentence) {
    errors_->Add(draft_.LocationOf(path), path, sentence);
  }
  // The name of a job with members has room for their numbers.
  void CheckMembers() {
    constexpr size_t kMaxGroupName = 57;
    if (job_.triggers.has_members() && job_.name.size() > kMaxGroupName)
      Wrong("name", "got " + std::to_string(job_.name.size()) +
                        " characters for a job with members, which are named NAME-INDEX, expected "
                        "at most " +
                        std::to_string(kMaxGroupName));
  }
  // On failure reports the names of the existing roles and returns false.
  bool CheckRole(const std::string& path, const std::string& name);
  void CheckRoles();
  void CheckRequests(const std::string& path, const Resources& resources);
  void CheckFollows();
  void CheckAfter(const Role& role);
  bool WaitsFor(const Role& role, const std::string& whom) const;
  void CheckProbe(const Role& role, const std::string& section, const std::string& port,
                  const std::vector<std::string>& kinds);
  void CheckSchedule();
  void CheckCommands();
  void CheckFramework();
  void CheckSuccess();
  void CheckStall();
  void CheckVariables(const std::string& path, const std::map<std::string, std::string>& env);
  void CheckCounts(const std::string& path);
  void CheckData(const DataSource& data);

  const JobDraft& draft_;
  const Job& job_;
  Errors* const errors_;
  // True without errors so far. A role that seems to be missing may only be misspelt, so no second
  // error is added.
  const bool clean_;
  std::vector<std::string> names_;
};

bool Validator::CheckRole(const std::string& path, const std::string& name) {
  if (job_.FindRole(name) != nullptr) return true;
  std::string list;
  for (const std::string& known : names_) list += (list.empty() ? "" : ", ") + known;
  Wrong(path, "got " + PrintableText(name) + ", expected one of the roles " + list +
                  DidYouMean(name, names_));
  return false;
}

void Validator::CheckRequests(const std::string& path, const Resources& resources) {
  if (resources.cpu > 0 && resources.cpu_request > resources.cpu) {
    Wrong(path + ".cpu", "got more than resources.cpu, the limit, expected at most that");
  }
  if (resources.memory_bytes > 0 && resources.memory_request > resources.memory_bytes) {
    Wrong(path + ".memory", "got more than resources.memory, the limit, expected at most that");
  }
}

void Validator::CheckRoles() {
  int64_t tasks = 0;
  for (const Role& role : job_.roles) {
    const std::string path = "roles." + role.name;
    tasks += std::max(role.replicas, role.most());
    if (role.min_replicas && !errors_->At(path + ".replicas") &&
        *role.min_replicas > role.replicas) {
      Wrong(path + ".min", "got " + std::to_string(*role.min_replicas) +
                               ", expected at most the role's replicas, " +
                               std::to_string(role.replicas));
    }
    if (role.max_replicas && !errors_->At(path + ".replicas") &&
        *role.max_replicas < role.replicas) {
      Wrong(path + ".max", "got " + std::to_string(*role.max_replicas) +
                               ", expected at least the role's replicas, " +
                               std::to_string(role.replicas));
    }
    CheckRequests(path + ".resources.requests", role.resources);
    if (role.restart.backoff > role.restart.backoff_max) {
      const bool given = draft_.Has(path + ".restart.backoff_max");
      Wrong(path + (given ? ".restart.backoff_max" : ".restart.backoff"),
            "got a first wait longer than the longest, expected backoff to be at most backoff_max");
    }
  }
  if (tasks == 0 && clean_) {
    Wrong("roles", "got no task at all, expected a role with at least one replica");
  } else if (tasks > kMaxTasks) {
    Wrong("roles", "got " + std::to_string(tasks) + " tasks in all, expected at most " +
                       std::to_string(kMaxTasks));
  }
}

void Validator::CheckFollows() {
  std::set<std::string> told;
  for (const Role& role : job_.roles) {
    if (role.follows.empty()) continue;
    const std::string path = "roles." + role.name + ".follows";
    if (!CheckRole(path, role.follows)) continue;
    // Walks the chain of `follows`. A role follows at most one other, so the only possible cycle is
    // a return to the start.
    std::string chain = role.name;
    const Role* next = job_.FindRole(role.follows);
    size_t steps = 0;
    while (next != nullptr && next->name != role.name && ++steps <= job_.roles.size()) {
      chain += " -> " + next->name;
      next = next->follows.empty() ? nullptr : job_.FindRole(next->follows);
    }
    const bool cycle = next != nullptr && next->name == role.name;
    if (!cycle || told.contains(role.name)) continue;
    for (const Role* member = &role; told.insert(member->name).second;) {
      member = job_.FindRole(member->follows);
    }
    Wrong(path, "got a cycle, " + chain + " -> " + role.name + ", expected no cycle of `follows`");
  }
}

// True if the role's start depends, directly or indirectly, on the start or end of `whom`.
bool Validator::WaitsFor(const Role& role, const std::string& whom) const {
  std::set<std::string> seen;
  std::vector<const Role*> open{&role};
  while (!open.empty()) {
    const Role* one = open.back();
    open.pop_back();
    std::vector<std::string> next = one->after.roles;
    // Waiting for the end of a role implies waiting for the end of the role it follows.
    if (one->after.when == AfterWhen::kEnded) {
      for (const std::string& name : one->after.roles) {
        const Role* waited = job_.FindRole(name);
        for (size_t i = 0; waited != nullptr && i <= job_.roles.size(); ++i) {
          if (!waited->follows.empty()) next.push_back(waited->follows);
          waited = job_.FindRole(waited->follows);
        }
      }
    }
    for (const std::string& name : next) {
      if (name == whom) return true;
      const Role* found = job_.FindRole(name);
      if (found != nullptr && seen.insert(name).second) open.push_back(found);
    }
  }
  return false;
}

void Validator::CheckAfter(const Role& role) {
  const std::string path = "roles." + role.name + ".after";
  if (role.after.roles.empty()) {
    if (draft_.Has(path) && clean_) Wrong(path, "got no role to wait for, expected 'role'");
    return;
  }
  for (const std::string& name : role.after.roles) {
    if (!CheckRole(path + ".role", name)) return;
  }
  if (WaitsFor(role, role.name)) {
    Wrong(path + ".role", "got a role that itself waits for " + PrintableText(role.name) +
                              ", expected one that can start, and end where it must have ended, "
                              "without it");
  }
}

// Checks `ready` or `health`: a kind in `kinds`, and a port that the role has.
void Validator::CheckProbe(const Role& role, const std::string& section, const std::string& port,
                           const std::vector<std::string>& kinds) {
  const std::string path = "roles." + role.name + "." + section;
  if (!draft_.Has(path) || !clean_) return;
  std::string got, expected;
  int given = 0;
  for (const std::string& kind : kinds) {
    expected += (expected.empty() ? "" : ", ") + kind;
    if (draft_.Has(path + "." + kind)) got += (given++ > 0 ? " and " : "") + kind;
  }
  if (given != 1) {
    Wrong(path, "got " + (got.empty() ? "none" : got) + ", expected exactly one of " + expected);
    return;
  }
  const bool http = got == "http";
  if (!http && got != "tcp") return;
  const std::string port_path = path + (http ? ".http.port" : ".tcp");
  std::vector<std::string> names;
  std::string list;
  for (const Port& one : role.ports) {
    names.push_back(one.name);
    list += (list.empty() ? "" : ", ") + one.name;
  }
  if (std::find(names.begin(), names.end(), port) != names.end()) return;
  Wrong(draft_.Has(port_path) ? port_path : path,
        "got " + (port.empty() ? "no port" : PrintableText(port)) +
            ", expected one of the role's ports: " + (list.empty() ? "it has none" : list) +
            DidYouMean(port, names));
}

void Validator::CheckSchedule() {
  const Schedule& schedule = job_.schedule;
  if (!draft_.Has("schedule") || errors_->At("schedule.cron")) return;
  if (schedule.cron.empty()) {
    if (clean_)
      Wrong("schedule",
            "got no time, expected one, such as cron: 30 2 * * 1-5 for half past two "
            "of each working day");
    return;
  }
  if (const Status cron = CheckCron(schedule.cron); !cron.ok())
    Wrong("schedule.cron", cron.message());
  if (const Status zone = CheckTimeZone(schedule.time_zone); !zone.ok())
    Wrong("schedule.time_zone", zone.message());
}

void Validator::CheckCommands() {
  // Built-in training without its framework is reported by CheckFramework.
  if (!job_.learn.empty() && job_.framework != Framework::kShoal) return;
  for (const Role& role : job_.roles) {
    if (!role.command.empty() || !job_.command.empty()) continue;
    const std::string path = "roles." + role.name;
    if (!job_.image.empty() && job_.framework != Framework::kShoal) continue;  // its entry point
    if (job_.framework == Framework::kShoal) {
      Wrong(path,
            "got no command, expected one: framework shoal has its own only for the roles server "
            "and worker");
    } else {
      Wrong(draft_.Has(path) ? path : "",
            "got no command, expected one here or at the top, such as command: [python, train.py]");
    }
  }
}

void Validator::CheckFramework() {
  if (job_.framework != Framework::kShoal) {
    if (!job_.learn.empty() && !draft_.Has("framework")) {
      Wrong("learn", "got built-in training without 'framework: shoal'; add it");
    } else if (!job_.learn.empty()) {
      Wrong("learn",
            "got built-in training in another framework, expected it with 'framework: "
            "shoal' only");
    }
    return;
  }
  if (draft_.Has("command")) {
    Wrong("command",
          "got a command for all roles, expected none: framework shoal trains by 'learn'; give "
          "another role its own command, or use framework generic");
  }
  const auto algorithm = job_.learn.find("algorithm");
  if (algorithm == job_.learn.end() || algorithm->second.text.empty()) {
    Wrong(draft_.Has("learn") ? "learn" : "framework",
          "got framework shoal without an algorithm, expected one, such as learn: {algorithm: "
          "word2vec}");
  }
  const Role* server = job_.FindRole("server");
  const Role* worker = job_.FindRole("worker");
  const bool served = server != nullptr && server->replicas > 0;
  if (worker != nullptr && worker->replicas > 1 && !served) {
    Wrong("roles.worker", "got " + std::to_string(worker->replicas) +
                              " workers without a server, expected a role server with at least one "
                              "replica; only a single worker can hold the model itself");
  }
}

void Validator::CheckSuccess() {
  std::vector<std::string> rules;
  for (const char* rule : {"all", "any", "first", "count"}) {
    if (draft_.Has(std::string("success.") + rule)) rules.emplace_back(rule);
  }
  if (rules.size() > 1 || (rules.empty() && draft_.Has("success"))) {
    std::string got = rules.empty() ? "none" : "";
    for (const std::string& rule : rules) got += (got.empty() ? "" : " and ") + rule;
    Wrong("success", "got " + got + ", expected exactly one of all, any, first, count");
    return;
  }
  if (draft_.Has("success.of") && job_.success.rule != SuccessRule::kCount) {
    Wrong("success.of", "got it without count, expected it with count only");
    return;
  }
  // A default that is invalid because of another error is not reported.
  if (rules.empty() && !errors_->empty()) return;
  const bool count = !rules.empty() && rules[0] == "count";
  CheckCounts(rules.empty() ? "success" : "success." + (count ? "of" : rules[0]));
}

void Validator::CheckStall() {
  const auto stall = job_.limits.stall;
  if (stall.count() == 0 || stall >= kLeastStall || errors_->At("limits.stall")) return;
  Wrong("limits.stall", "got " + FormatDuration(stall) +
                            ", expected 0 for never or at least 5s: programs pause for "
                            "moments all the time");
}

void Validator::CheckVariables(const std::string& path,
                               const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    const auto parts = ParseReferences(value);
    if (!parts.ok()) {
      Wrong(path + "." + name, parts.status().message());
      continue;
    }
    for (const ReferencePart& part : *parts) {
      const bool secret = part.to == ReferenceTo::kSecret || part.to == ReferenceTo::kSecretFile;
      if (part.to == ReferenceTo::kText || part.text.empty() || secret) continue;
      if (!CheckRole(path + "." + name, part.text)) break;
      if (part.to != ReferenceTo::kAddresses || !job_.FindRole(part.text)->ports.empty()) continue;
      Wrong(path + "." + name, "got the addresses of role " + PrintableText(part.text) +
                                   ", which has no port, expected a role with 'ports'");
    }
  }
}

void Validator::CheckCounts(const std::string& path) {
  int64_t tasks = 0;
  std::set<std::string> seen;
  for (const std::string& name : job_.success.roles) {
    if (!CheckRole(path, name)) return;
    const Role* role = job_.FindRole(name);
    if (!seen.insert(name).second) {
      Wrong(path, "got " + PrintableText(name) + " a second time, expected it once");
      return;
    }
    tasks += role->replicas;
    if (!role->follows.empty()) {
      Wrong(path, "got " + PrintableText(name) + ", which follows " + PrintableText(role->follows) +
                      " and is stopped after it, expected roles that end by themselves");
      return;
    }
  }
  if (tasks == 0 && clean_ && !errors_->At("roles")) {
    Wrong(path, "got roles without a task, expected at least one whose end decides the job");
  } else if (job_.success.rule == SuccessRule::kCount && job_.success.count > tasks) {
    Wrong("success.count", "got " + std::to_string(job_.success.count) + ", expected at most the " +
                               std::to_string(tasks) + " tasks of the roles in 'of'");
  }
}

void Validator::CheckData(const DataSource& data) {
  const std::string path = "data." + data.name;
  if (data.sources.empty() && data.table.empty() && clean_) {
    Wrong(path, "got no source, expected a path or URL, such as source: corpus.txt");
  }
  if (!data.sources.empty() && !data.table.empty())
    Wrong(path + ".table", "got a table and a source, expected one of them");
  if (data.table.empty() && !data.columns.empty())
    Wrong(path + ".columns", "expected with `table` only");
  if (!data.shard_by.empty()) CheckRole(path + ".shard_by", data.shard_by);
}

}  // namespace

void Validate(const JobDraft& draft, Errors* errors) {
  const bool clean = errors->empty();
  Validator(draft, errors).Run();
  ValidateEngines(draft, errors);
  if (clean) ValidateFramework(draft, errors);
}

}  // namespace shoal::job
