// Volcano Job (batch.volcano.sh/v1alpha1): tasks, plugins, and policies that map events to actions.
#include <algorithm>
#include <cctype>

#include "import/conversion/importer.h"
#include "import/kubernetes/cron_job.h"
#include "import/kubernetes/operator_files.h"
#include "import/kubernetes/pod_hosts.h"
#include "import/kubernetes/pod_settings.h"
#include "import/kubernetes/pod_template.h"

namespace shoal::importer {
namespace {

using job::Framework;
using job::RestartScope;
using job::RestartWhen;
using job::SuccessRule;

constexpr std::string_view kHostFiles = "/etc/volcano";
constexpr size_t kLongestTask = 63;  // a DNS label

// A policy of a task or of the job: events, and the action they trigger.
struct Policy {
  std::vector<std::string> events;
  std::string action;
  int exit_code = 0;  // if the event is an exit code; else 0

  // True if the policy lists the event or "*".
  bool CoversEvent(const std::string& event) const {
    return std::any_of(events.begin(), events.end(),
                       [&](const std::string& one) { return one == event || one == "*"; });
  }
};

// The action for an event: the task's own policies take precedence over the job's. nullptr if there
// is none.
const std::string* ActionFor(const std::string& event, const std::vector<Policy>& task,
                             const std::vector<Policy>& job) {
  for (const std::vector<Policy>* policies : {&task, &job}) {
    for (const Policy& policy : *policies) {
      if (policy.CoversEvent(event)) return &policy.action;
    }
  }
  return nullptr;
}

// Imports one Volcano Job. Tasks become roles; names of roles follow the framework plugins, if
// there are any.
class VolcanoReader {
 public:
  VolcanoReader(const job::Node& document, JobBuilder* builder)
      : builder_(builder), document_(document, "", "", builder->diagnostics()) {}

  void Run();

 private:
  void ReadSpec(FieldReader* spec);
  // Plugins determine the framework and some variables.
  void ReadPlugins(FieldReader* spec);
  void ReadPluginRoles(FieldReader* plugins, const char* name,
                       const std::vector<std::string>& roles);
  std::vector<Policy> ReadPolicies(FieldReader* section);
  void ReadTask(FieldReader task, size_t number);
  // Restart rule of a task from its pod's restart policy and the policies for failures.
  void SetRestart(const PodSummary& pod, const std::vector<Policy>& policies, job::Role* role,
                  FieldReader* task);
  // The reaction to a failed task.
  void SetFailure(const std::string& action, job::Role* role, FieldReader* task);
  // Policies with an exit code become `on_exit` rules.
  void SetExitRules(const PodSummary& pod, const std::vector<Policy>& policies, job::Role* role,
                    FieldReader* task);
  void AddExitRule(const std::string& action, const std::string& code, job::Role* role,
                   FieldReader* task);
  void SetEviction(const std::vector<Policy>& policies, job::Role* role);
  // dependsOn of a task; SetOrder resolves the names later.
  void ReadDependencies(FieldReader* task, job::Role* role);
  void SetOrder();
  void ReadVolumes(FieldReader* spec);
  void SetSuccess(FieldReader* spec);
  // minAvailable: the minimum of a job with one role; a loss for several roles.
  void SetMinAvailable(int64_t available, FieldReader* spec);
  void ReportPolicy(const Policy& policy, FieldReader* from);
  // Variables of the plugins env and svc.
  void AddVariables();
  // Pods have the host name JOB-TASK-INDEX, in the domain JOB with the plugin svc.
  void ReplaceHosts();
  void MoveHostFiles(job::Role* role);

  JobBuilder* const builder_;
  FieldReader document_;
  std::vector<Policy> policies_;
  std::map<std::string, std::string> roles_;               // task → role of the framework
  std::map<std::string, std::string> tasks_;               // role → task
  std::map<std::string, std::vector<std::string>> after_;  // role → tasks that it depends on
  std::vector<std::string> deciding_;  // roles whose completion completes the job
  int max_retry_ = 3;
  bool variables_ = false;
};

void VolcanoReader::Run() {
  builder_->job()->framework = Framework::kGeneric;
  ReadMetadata(&document_, builder_);
  if (document_.ReadText("kind") == "CronJob") {
    auto inner =
        ReadCronJob(&document_, "VolcanoCronJobSpec", "VolcanoCronJobSpecJobTemplate", builder_);
    document_.ReportUnread("VolcanoCronJob");
    if (inner) ReadSpec(&*inner);
    return;
  }
  auto spec = document_.ReadObject("spec");
  document_.ReportUnread("VolcanoJob");
  if (!spec) return document_.AddError("spec", "got no spec, expected one with tasks");
  ReadSpec(&*spec);
}

void VolcanoReader::ReadSpec(FieldReader* spec) {
  max_retry_ = static_cast<int>(spec->ReadInteger("maxRetry", 0, kUnlimitedRestarts).value_or(3));
  if (const auto queue = spec->ReadText("queue")) builder_->job()->queue = *queue;
  ReadTtl(spec, builder_);
  ReadPlugins(spec);
  policies_ = ReadPolicies(spec);
  if (!spec->HasField("tasks")) spec->AddError("", "got no tasks, expected a list of them");
  size_t number = 0;
  for (FieldReader& task : spec->ReadObjects("tasks")) ReadTask(task, number++);
  if (!builder_->diagnostics()->ok()) return;
  ReadVolumes(spec);
  SetSuccess(spec);
  SetOrder();
  AddVariables();
  ReplaceHosts();
  spec->ReportUnread("VolcanoJobSpec");
}

void VolcanoReader::ReadPlugins(FieldReader* spec) {
  constexpr static UnsupportedField kPlugins[] = {
      {"ssh", "that pods reach each other by ssh",
       "nothing goes through ssh; mpirun of one machine "
       "needs none"},
      {"mpi", "that mpiexec of one task starts ranks in another",
       "mpiexec starts all ranks on its own machine; leave out its --host"},
      {"ray", "a Ray cluster of the tasks", "start ray in the commands"},
      {"hcclrank", "the ranks of Ascend devices", "nothing sets them"},
  };
  auto plugins = spec->ReadObject("plugins");
  if (!plugins) return;
  variables_ = plugins->HasField("env") || plugins->HasField("svc");
  plugins->ReadNode("env");
  plugins->ReadNode("svc");
  if (plugins->HasField("tensorflow")) {
    builder_->job()->framework = Framework::kTensorflow;
    ReadPluginRoles(&*plugins, "tensorflow", {"ps", "worker", "chief", "evaluator"});
  }
  if (plugins->HasField("pytorch")) {
    builder_->job()->framework = Framework::kPytorch;
    ReadPluginRoles(&*plugins, "pytorch", {"master", "worker"});
  }
  plugins->ReportUnread("", kPlugins);
}

// Reads the plugin's arguments ["--master=head", "--worker=node", "--port=23456"], which name the
// framework's roles.
void VolcanoReader::ReadPluginRoles(FieldReader* plugins, const char* name,
                                    const std::vector<std::string>& roles) {
  for (const std::string& argument : plugins->ReadTexts(name)) {
    const size_t equals = argument.find('=');
    const size_t begin = argument.find_first_not_of('-');
    if (equals == std::string::npos || begin == std::string::npos || begin > equals) continue;
    const std::string role = argument.substr(begin, equals - begin);
    const bool known = std::find(roles.begin(), roles.end(), role) != roles.end();
    if (known) roles_[argument.substr(equals + 1)] = role;
  }
}

std::vector<Policy> VolcanoReader::ReadPolicies(FieldReader* section) {
  static const std::vector<std::string> kEvents = {
      "*",          "PodPending",    "PodRunning",    "PodFailed",
      "PodEvicted", "Unknown",       "TaskCompleted", "TaskFailed",
      "OutOfSync",  "CommandIssued", "JobUpdated"};
  static const std::vector<std::string> kActions = {
      "AbortJob",   "TerminateJob",     "CompleteJob", "RestartJob", "RestartTask",
      "RestartPod", "RestartPartition", "ResumeJob",   "SyncJob",    "EnqueueJob"};
  std::vector<Policy> policies;
  for (FieldReader& one : section->ReadObjects("policies")) {
    Policy policy;
    policy.action = one.ReadChoice("action", kActions).value_or("");
    if (const auto event = one.ReadChoice("event", kEvents)) policy.events.push_back(*event);
    for (const std::string& event : one.ReadTexts("events")) policy.events.push_back(event);
    for (const std::string& event : policy.events) {
      if (std::find(kEvents.begin(), kEvents.end(), event) == kEvents.end()) {
        one.AddError("events", "got " + job::PrintableText(event) +
                                   ", expected an event of Volcano" +
                                   job::DidYouMean(event, kEvents));
      }
    }
    policy.exit_code = static_cast<int>(one.ReadInteger("exitCode", 1, 255).value_or(0));
    if (one.ReadNode("timeout") != nullptr) {
      one.AddLoss("timeout",
                  "the action waited so long for the event to pass; not kept: it is taken "
                  "at once");
    }
    one.ReportUnread("VolcanoPolicy");
    ReportPolicy(policy, &one);
    policies.push_back(std::move(policy));
  }
  return policies;
}

// Reports a policy that has no effect.
void VolcanoReader::ReportPolicy(const Policy& policy, FieldReader* from) {
  static const std::vector<std::string> kKept = {"PodFailed", "TaskFailed", "PodEvicted",
                                                 "TaskCompleted", "*"};
  from->set_at("roles");
  for (const std::string& event : policy.events) {
    const bool completes = event != "TaskCompleted" || policy.action == "CompleteJob";
    const bool kept = std::find(kKept.begin(), kKept.end(), event) != kKept.end();
    if (kept && completes) continue;
    from->AddLoss("event", "at " + event + " the action was " + policy.action +
                               "; not kept: tasks' failures, evictions and CompleteJob at "
                               "TaskCompleted are acted on here");
  }
  static const std::vector<std::string> kOthers = {"ResumeJob", "SyncJob", "EnqueueJob",
                                                   "RestartPartition"};
  if (std::find(kOthers.begin(), kOthers.end(), policy.action) == kOthers.end()) return;
  from->AddLoss("action", policy.action + (policy.action == "RestartPartition"
                                               ? " started a task's partition again; not kept: the "
                                                 "task alone starts again, see restart.scope"
                                               : " is not kept: nothing here stands for it"));
}

// Without a policy failed pods do not end the job: it succeeds when all pods have ended and
// `minAvailable` of them succeeded.
void VolcanoReader::SetMinAvailable(int64_t available, FieldReader* spec) {
  job::Job& job = *builder_->job();
  if (available >= builder_->TotalReplicas()) return;
  if (job.roles.size() == 1) {
    if (!job.roles[0].min_replicas) {
      job.roles[0].min_replicas = static_cast<int>(std::max<int64_t>(available, 1));
    }
    return;
  }
  const bool each = std::all_of(job.roles.begin(), job.roles.end(), [](const job::Role& role) {
    return role.min_replicas || role.replicas <= 1;
  });
  spec->AddLoss(
      "minAvailable",
      "the job could start with " + std::to_string(available) +
          " of its tasks, and succeed with so many; not kept: it starts with all and fails "
          "with the first that fails for good, or goes on with `min` of a role that has it",
      each);
}

// Volcano's webhook names tasks without a name default0, default1 …
void VolcanoReader::ReadTask(FieldReader task, size_t number) {
  std::string name = task.ReadText("name").value_or("");
  if (name.empty()) name = "default" + std::to_string(number);
  const auto called = roles_.find(name);
  job::Role* role =
      builder_->AddRole(called == roles_.end() ? name : called->second, task.place(), task.path());
  tasks_[role->name] = name;
  task.set_at("roles." + role->name);
  role->replicas = static_cast<int>(task.ReadInteger("replicas", 0, job::kMaxReplicas).value_or(1));
  if (const auto least = task.ReadInteger("minAvailable", 0, job::kMaxReplicas)) {
    if (*least < role->replicas) role->min_replicas = static_cast<int>(*least);
  }
  const std::vector<Policy> policies = ReadPolicies(&task);
  auto pod_template = task.ReadObject("template");
  if (!pod_template) {
    return task.AddError("template", "got no template, expected one with the pod's containers");
  }
  const PodSummary pod = ReadPod(&*pod_template, {}, role, builder_);
  SetRestart(pod, policies, role, &task);
  SetExitRules(pod, policies, role, &task);
  SetEviction(policies, role);
  ReadDependencies(&task, role);
  const std::string* completed = ActionFor("TaskCompleted", policies, policies_);
  if (completed != nullptr && *completed == "CompleteJob") deciding_.push_back(role->name);
  task.set_at("roles." + role->name);
  task.ReportUnread("VolcanoTask");
}

void VolcanoReader::SetRestart(const PodSummary& pod, const std::vector<Policy>& policies,
                               job::Role* role, FieldReader* task) {
  job::Restart& restart = role->restart;
  task->set_at("roles." + role->name + ".restart");
  const std::string* failed = ActionFor("PodFailed", policies, policies_);
  if (failed == nullptr) failed = ActionFor("TaskFailed", policies, policies_);
  // The kubelet restarts these in place: the pod does not fail. Without a policy a pod has Always.
  if (pod.restart_policy != "Never") {
    restart.when = RestartWhen::kAlways;
    restart.limit = kUnlimitedRestarts;
    builder_->SetScope(role, RestartScope::kTask);
    if (pod.restart_policy != "OnFailure") {
      task->AddLoss("template", std::string(pod.restart_policy.empty()
                                                ? "no restartPolicy is given, which is 'Always': it"
                                                : "restartPolicy 'Always'") +
                                    " started also tasks again that had ended with 0; not kept: "
                                    "a task that has ended well has ended");
    }
    if (failed != nullptr && !failed->empty()) {
      task->AddLoss("policies",
                    job::PrintableText(*failed) +
                        " was for failed pods, and with this restartPolicy none failed; not kept: "
                        "a program that fails starts again in its task",
                    true);
    }
  } else {
    SetFailure(failed == nullptr ? "" : *failed, role, task);
  }
}

// An evicted pod is a lost task, on engines whose hosts may be reclaimed.
void VolcanoReader::SetEviction(const std::vector<Policy>& policies, job::Role* role) {
  const std::string* evicted = ActionFor("PodEvicted", policies, policies_);
  if (evicted == nullptr || role->on_exit.size() >= 64) return;
  const bool never = role->restart.when == RestartWhen::kNever;
  const bool ends = *evicted == "AbortJob" || *evicted == "TerminateJob";
  const bool whole = *evicted == "RestartJob";
  const bool same = never ? ends : !ends && (!whole || role->restart.scope == RestartScope::kJob);
  if (same) return;  // the same as for failures
  job::ExitRule rule{"lost", job::EndAction::kFail};
  if (!ends) rule.action = whole ? job::EndAction::kRestartJob : job::EndAction::kRetry;
  if (never) {
    if (*evicted == "RestartTask") builder_->SetScope(role, RestartScope::kRole);
    role->restart.limit = max_retry_;
  }
  role->on_exit.push_back(std::move(rule));
}

// The first policy that covers a failed pod decides, the task's before the job's.
void VolcanoReader::SetExitRules(const PodSummary& pod, const std::vector<Policy>& policies,
                                 job::Role* role, FieldReader* task) {
  std::vector<Policy> all = policies;
  all.insert(all.end(), policies_.begin(), policies_.end());
  const bool fails = pod.restart_policy == "Never";
  bool covered = false;
  for (const Policy& policy : all) {
    covered = covered || (policy.CoversEvent("PodFailed") && fails);
    if (policy.exit_code == 0 || role->on_exit.size() >= 64) continue;
    const std::string code = std::to_string(policy.exit_code);
    if (fails && !covered) {
      AddExitRule(policy.action, code, role, task);
      continue;
    }
    task->AddLoss("policies",
                  policy.action + " at exit code " + code +
                      (fails ? " stands behind one for PodFailed, which Volcano takes; kept so"
                             : " was for pods that fail, and with this restartPolicy none did; "
                               "kept so"),
                  true);
  }
}

void VolcanoReader::AddExitRule(const std::string& action, const std::string& code, job::Role* role,
                                FieldReader* task) {
  job::ExitRule rule{code, job::EndAction::kFail};
  if (action == "RestartJob") rule.action = job::EndAction::kRestartJob;
  if (action == "RestartTask" || action == "RestartPod") rule.action = job::EndAction::kRetry;
  if (action == "CompleteJob") {
    task->AddLoss("policies", "exit code " + code +
                                  " completed the job well; not kept: it counts as this task's "
                                  "good end, and success is by all of its role");
    rule.action = job::EndAction::kIgnore;
  }
  if (role->restart.when == RestartWhen::kNever) role->restart.limit = max_retry_;
  role->on_exit.push_back(std::move(rule));
}

void VolcanoReader::ReadDependencies(FieldReader* task, job::Role* role) {
  auto depends = task->ReadObject("dependsOn");
  if (!depends) return;
  depends->set_at("roles." + role->name + ".after");
  after_[role->name] = depends->ReadTexts("name");
  if (depends->ReadChoice("iteration", {"any", "all"}).value_or("any") == "any" &&
      after_[role->name].size() > 1) {
    depends->AddLoss("iteration",
                     "one of the tasks was enough to go on; not kept: it waits for all of them");
  }
  depends->ReportUnread("VolcanoDependsOn");
}

// Call when all roles have their final names.
void VolcanoReader::SetOrder() {
  for (const auto& [name, tasks] : after_) {
    job::Role* role = builder_->FindRole(name);
    for (const std::string& task : tasks) {
      const auto called = std::find_if(tasks_.begin(), tasks_.end(),
                                       [&](const auto& one) { return one.second == task; });
      if (role == nullptr) continue;
      role->after.roles.push_back(called == tasks_.end() ? task : called->first);
    }
  }
}

// Volumes of all pods: existing claims by name, or claims that the controller creates.
void VolcanoReader::ReadVolumes(FieldReader* spec) {
  for (FieldReader& volume : spec->ReadObjects("volumes")) {
    volume.set_at("roles");
    const std::string path = volume.ReadText("mountPath").value_or("");
    const std::string claim = volume.ReadText("volumeClaimName").value_or("");
    bool kept = !claim.empty();
    for (job::Role& role : builder_->job()->roles)
      kept = AddVolumeClaim(claim, path, &role) && kept;
    const std::string there =
        "the programs found " +
        (claim.empty() ? "a volume" : "the claim " + job::PrintableText(claim)) + " at " + path;
    if (kept) {
      volume.AddLossExceptOn(
          "kubernetes", "",
          there +
              "; kept in kubernetes.volumes of the roles, and elsewhere tasks see the "
              "machine's own files: have the data at that path");
    } else {
      volume.AddLoss("", there + "; not kept: have the data on the machine or in the image");
    }
    volume.ReportUnread("VolcanoVolume");
  }
}

void VolcanoReader::SetFailure(const std::string& action, job::Role* role, FieldReader* task) {
  job::Restart& restart = role->restart;
  restart.when = RestartWhen::kNever;
  if (action == "RestartJob" || action == "RestartTask" || action == "RestartPod" ||
      action == "RestartPartition") {
    restart.when = RestartWhen::kAlways;
    restart.limit = max_retry_;
    builder_->SetScope(role, action == "RestartJob"    ? RestartScope::kJob
                             : action == "RestartTask" ? RestartScope::kRole
                                                       : RestartScope::kTask);
  } else if (action == "CompleteJob") {
    task->AddLoss(
        "policies",
        "a failed pod completed the job well; not kept: a task that fails for good fails the "
        "job");
  } else if (action == "AbortJob") {
    task->AddLoss(
        "policies",
        "a failed pod aborted the job, which could be resumed; kept as its failure, which "
        "cannot: run it again",
        true);
  }
}

void VolcanoReader::SetSuccess(FieldReader* spec) {
  job::Job& job = *builder_->job();
  const auto min_success = spec->ReadInteger("minSuccess", 1, job::kMaxTasks);
  const auto available = spec->ReadInteger("minAvailable", 0, job::kMaxTasks);
  if (available) SetMinAvailable(*available, spec);
  std::vector<std::string> all;
  for (const job::Role& role : job.roles) all.push_back(role.name);
  if (!deciding_.empty()) {
    if (deciding_.size() > 1) {
      spec->AddLoss("policies",
                    "the first of several tasks that completed completed the job; kept for " +
                        deciding_[0] + " only");
    }
    builder_->SetSuccess(SuccessRule::kAll, {deciding_[0]});
    for (job::Role& role : job.roles) {
      if (role.name != deciding_[0]) builder_->SetFollows(&role, deciding_[0]);
    }
    return;
  }
  if (min_success) {
    builder_->SetSuccess(
        SuccessRule::kCount, all,
        static_cast<int>(std::min<int64_t>(*min_success, builder_->TotalReplicas())));
  } else if (job.framework == Framework::kGeneric) {
    builder_->SetSuccess(SuccessRule::kAll, all);
  } else {
    spec->AddLoss(
        "tasks",
        "the job completed when all its tasks had, which parameter servers never do; kept as "
        "framework " +
            std::string(job.framework == Framework::kTensorflow ? "tensorflow" : "pytorch") +
            " has it: by its chief or workers",
        true);
  }
}

// The file name of a task's hosts, if the name is safe within a shell's quotes.
std::string HostFile(const std::string& task) {
  const bool safe = std::all_of(task.begin(), task.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.');
  });
  return safe ? task : ToRoleName(task, kLongestTask);
}

// Programs whose command names /etc/volcano get a directory of their own, created when the task
// starts, because nothing may write to the machine's /etc.
void VolcanoReader::MoveHostFiles(job::Role* role) {
  if (!CommandContains(*role, kHostFiles)) return;
  std::string before =
      "export VC_HOST_FILES=\"$SHOAL_SCRATCH/volcano\"; mkdir -p \"$VC_HOST_FILES\"";
  for (const auto& [_, task] : tasks_) {
    before += "\necho \"$VC_" + ToVariableName(task) + "_HOSTS\" | tr , '\\n' > \"$VC_HOST_FILES/" +
              HostFile(task) + ".host\"";
  }
  MovePath(kHostFiles, "VC_HOST_FILES", role);
  role->command[2] = before + "\n" + role->command[2];
}

// The variables of the plugins env and svc; addresses are known when all tasks have joined.
void VolcanoReader::AddVariables() {
  if (!variables_) return;
  for (job::Role& role : builder_->job()->roles) {
    for (const auto& [other, task] : tasks_) {
      const std::string name = "VC_" + ToVariableName(task);
      role.env.try_emplace(name + "_HOSTS", "{{shoal.hosts." + other + "}}");
      role.env.try_emplace(name + "_NUM", "{{shoal.count." + other + "}}");
    }
    for (const char* name : {"VC_TASK_INDEX", "VK_TASK_INDEX"}) {
      role.env.try_emplace(name, "{{shoal.index}}");
    }
    MoveHostFiles(&role);
  }
  document_.set_at("roles");
  document_.AddLoss(
      "spec",
      "the plugin svc wrote /etc/volcano/*.host, and each pod had an address of its own; "
      "kept in VC_…_HOSTS, and as files where a command names them: tasks of one machine "
      "share its address, so that what listens at a fixed port wants the addresses with "
      "ports, in SHOAL_CLUSTER or by {{shoal.addresses.ROLE}}");
}

void VolcanoReader::ReplaceHosts() {
  const std::string& job = builder_->job()->name;
  std::vector<PodHosts> pods;
  for (const auto& [role, task] : tasks_) {
    const std::string prefix = job + "-" + task + "-";
    pods.push_back({role, prefix, prefix + "0", job});
  }
  ReplacePodHosts(pods, &document_, builder_);
}

class Volcano final : public Importer {
 public:
  std::string DetectKind(const job::Node& document) const override {
    const job::Node* kind = document.Find("kind");
    const job::Node* version = document.Find("apiVersion");
    if (kind == nullptr || version == nullptr || !version->text.starts_with("batch.volcano.sh/"))
      return "";
    if (kind->text == "CronJob") return "Volcano CronJob";
    return kind->text == "Job" ? "Volcano Job" : "";
  }
  void Import(const job::Node& document, JobBuilder* builder) const override {
    VolcanoReader(document, builder).Run();
  }
};

}  // namespace

const Importer& VolcanoImporter() {
  static const Volcano importer;
  return importer;
}

}  // namespace shoal::importer
