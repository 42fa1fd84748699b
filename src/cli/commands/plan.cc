// `shoal plan FILE`: prints the tasks of a job without starting them.

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/commands/schedule.h"
#include "cli/jobs/engines.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"
#include "controller/files/log_store.h"
#include "controller/files/state_home.h"
#include "controller/membership/desired_job.h"
#include "framework/framework_environment.h"
#include "import/import.h"
#include "job/execution/job_dir.h"
#include "job/execution/plan.h"
#include "job/spec/json.h"

namespace shoal::cli {
namespace {

struct PlanArguments {
  std::string file;
  std::vector<std::string> set;
  std::string task;    // print only this task's environment
  std::string engine;  // print the request to this engine
  std::string directory;
  std::string document;
};

constexpr const char* kAtStart = "(at start)";

constexpr uint16_t kFirstPlaceholder = 20000;
constexpr int kPlaceholders = 40000;

// The cluster as far as a plan can know it: its tasks with placeholders for addresses,
// worker-0:20000 and so on.
framework::ClusterDescription FutureCluster(const job::Job& job) {
  framework::ClusterDescription cluster;
  int ports = 0;
  for (const job::Role& role : job.roles) {
    framework::ClusterRole members;
    members.name = role.name;
    for (const job::Port& port : role.ports) members.port_names.push_back(port.name);
    for (int i = 0; i < role.replicas; ++i) {
      framework::ClusterMember member;
      member.host = role.name + "-" + std::to_string(i);
      for (size_t p = 0; p < role.ports.size(); ++p) {
        member.ports.push_back(static_cast<uint16_t>(kFirstPlaceholder + ports++ % kPlaceholders));
      }
      members.members.push_back(std::move(member));
    }
    cluster.roles.push_back(std::move(members));
  }
  return cluster;
}

// Replaces values that only the coordinator and the launchers know.
void BlankOut(framework::Environment* env) {
  for (auto& [name, value] : *env) {
    if (name == "SHOAL_JOB_ID" || name.starts_with("SHOAL_PORT")) value = kAtStart;
  }
  for (const char* name : {"SHOAL_CLUSTER", "SHOAL_CLUSTER_FILE", "SHOAL_TOKEN_FILE",
                           "SHOAL_SCRATCH", "SHOAL_JOB_DIR", "SHOAL_REPORT_FD"}) {
    (*env)[name] = kAtStart;
  }
}

// Completes the environments of the plan's tasks. Without `every` only that of the first task of
// each role, which is all that the text output shows.
Status AddEnvironment(const job::Job& job, bool every, job::Plan* plan) {
  const framework::ClusterDescription cluster = FutureCluster(job);
  for (job::PlannedTask& task : plan->tasks) {
    if (!every && task.index > 0) continue;
    framework::TaskContext context;
    context.role = task.role;
    context.index = task.index;
    TRY_ASSIGN(task.env, framework::RenderEnvironment(job, cluster, context));
    BlankOut(&task.env);
  }
  return Status::Ok();
}

// Prints the environment of one task as lines NAME=VALUE.
Status PrintEnvironment(const job::Job& job, const std::string& name, bool as_json) {
  TRY_ASSIGN(const controller::LogSelection chosen, controller::ParseLogSelection(name));
  framework::TaskContext task;
  task.role = chosen.role;
  task.index = chosen.index.value_or(0);
  const job::Role* role = job.FindRole(task.role);
  if (role == nullptr || task.index >= role->replicas) {
    std::string tasks;
    for (const job::Role& one : job.roles) {
      if (one.replicas == 0) continue;
      tasks += (tasks.empty() ? "" : ", ") + one.name + "-0";
      if (one.replicas > 1) tasks += " to " + one.name + "-" + std::to_string(one.replicas - 1);
    }
    return InvalidArgument("got --env " + name + ", expected one of the tasks " + tasks);
  }
  TRY_ASSIGN(framework::Environment env,
             framework::RenderEnvironment(job, FutureCluster(job), task));
  BlankOut(&env);
  json::object object;
  std::string text;
  for (auto& [variable, value] : env) {
    value = job::ShownValue(variable, value);
    object[variable] = value;
    text += variable + "=" + value + "\n";
  }
  return PrintOut(as_json ? JsonLine(object) : text);
}

// Prints the request to the engine. The job has no name and no directory yet.
Status PrintWhatIsSent(const Context& context, const LoadedJob& loaded, const std::string& name,
                       const std::string& file) {
  const job::Job& job = loaded.job();
  TRY_ASSIGN(const std::unique_ptr<engine::Engine> engine, MakeEngine(name));
  TRY_ASSIGN(const std::filesystem::path root, controller::FindStateHome());
  const std::string id = job.name + "-ID";
  controller::DesiredJobPaths places{controller::StateHome(root).job_dir(id), loaded.folder,
                                     context.program, engine->SharesJobDirectory()};
  if (!places.shared) {
    places.bootstrap_files = {{job::JobDir::kId, id + "\n"},
                              {job::JobDir::kToken, "***\n"},
                              {job::JobDir::kJob, ToText(job::ToJson(job)) + "\n"}};
  }
  TRY_ASSIGN(const engine::DesiredJob desired, controller::MakeDesiredJob(job, id, places, {}));
  TRY_ASSIGN(const std::string text, engine->Describe(desired));
  if (job.schedule.cron.empty()) return PrintOut(text);
  const auto schedules = MakeSchedules(name, job.marathon);
  if (!schedules.ok()) {
    PrintNote(NoSchedules(name, file, job.schedule, schedules.status()).message());
    return PrintOut(text);
  }
  TRY_ASSIGN(
      const std::string scheduled,
      (*schedules)->Describe(job, ScheduledRunOf(job, controller::StateHome(root), loaded.folder)));
  return PrintOut(scheduled + "# and each time\n" + text);
}

// The engine that `shoal run` with the same arguments would use, which determines errors and notes.
std::string EngineOfRun(const PlanArguments& arguments) {
  if (!arguments.engine.empty()) return arguments.engine;
  const char* const usual = std::getenv("SHOAL_ENGINE");
  return usual != nullptr && *usual != 0 ? usual : kLocalEngine;
}

int PlanFile(const Context& context, const PlanArguments& arguments) {
  const Result<LoadedJob> loaded =
      LoadJob(arguments.file, arguments.set, arguments.directory, arguments.document);
  if (!loaded.ok()) return PrintError(loaded.status());
  const job::Job* const job = &loaded->job();
  const std::string engine = EngineOfRun(arguments);
  if (const auto known = MakeEngine(engine); !known.ok()) return PrintError(known.status());
  if (const Status valid = CheckJob(*job, engine, loaded->imported.places); !valid.ok())
    return PrintError(valid);
  PrintUnusedFields(*loaded, engine);
  if (!arguments.task.empty()) {
    const Status printed = PrintEnvironment(*job, arguments.task, context.json);
    return printed.ok() ? 0 : PrintError(InvalidArgument(printed.message()));
  }
  if (!arguments.engine.empty() && arguments.engine != kLocalEngine) {
    const Status printed = PrintWhatIsSent(context, *loaded, arguments.engine, arguments.file);
    return printed.ok() ? 0 : PrintError(printed);
  }
  Result<job::Plan> plan = job::MakePlan(*job);
  if (!plan.ok()) return PrintError(plan.status());
  if (const Status added = AddEnvironment(*job, context.json, &*plan); !added.ok()) {
    return PrintError(InvalidArgument(added.message()).With(arguments.file));
  }
  return PrintResult(context.json ? JsonLine(job::PlanToJson(*job, *plan))
                                  : job::PrintPlan(*job, *plan));
}

constexpr const char* kPlanFooter = R"help(Examples:
  shoal plan job.yaml
  shoal plan job.yaml --set roles.worker.replicas=8
  shoal plan job.yaml --env worker-1      # the environment of that task's program
  shoal plan job.yaml --json | jq '.total'

Starts nothing, hides secrets, and rejects every job that `shoal run` rejects. Addresses such as
worker-0:20000 are placeholders: real addresses are known when the tasks have joined. Exit code 2 if
the file is invalid; every error names the line, the column and the expected value.)help";

}  // namespace

void AddPlan(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* sub =
      app.add_subcommand("plan", "Check a job file and print its tasks without starting them");
  sub->add_option("FILE", arguments->file,
                  "Job file (YAML; docs/job-file.md), or a job description of another system; -: "
                  "standard input")
      ->required();
  sub->add_option("--set", arguments->set, "Override a field of the file: PATH=VALUE (repeatable)")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  sub->add_option("--env", arguments->task,
                  "Print the environment of one task, for example worker-1, instead of the plan")
      ->type_name("TASK");
  AddDirectoryOption(sub, &arguments->directory);
  AddDocumentOption(sub, &arguments->document);
  sub->add_option(
         "--engine", arguments->engine,
         "Print the request to this engine instead of the plan (local has none): " + EngineNames())
      ->type_name("NAME");
  sub->footer(kPlanFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return PlanFile(context, *arguments); };
  });
}

}  // namespace shoal::cli
