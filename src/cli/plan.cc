// `shoal plan FILE`: what a job file amounts to, without starting anything.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/report.h"
#include "dialect/dialect.h"
#include "job/parse.h"
#include "job/plan.h"
#include "learn/algorithm.h"

namespace shoal::cli {
namespace {

struct Arguments {
  std::string file;
  std::vector<std::string> set;
};

constexpr const char* kAtStart = "(at start)";

// The cluster as far as a plan knows it: who there will be, not where.
dialect::ClusterDescription FutureCluster(const job::Job& job) {
  dialect::ClusterDescription cluster;
  for (const job::Role& role : job.roles) {
    dialect::ClusterRole members;
    members.name = role.name;
    dialect::Member member;
    for (const job::Port& port : role.ports) {
      members.port_names.push_back(port.name);
      member.ports.push_back(0);
    }
    members.members.assign(static_cast<size_t>(role.replicas), member);
    cluster.roles.push_back(std::move(members));
  }
  return cluster;
}

// What only the coordinator and the launchers will know.
void BlankOut(dialect::Environment* env) {
  for (auto& [name, value] : *env) {
    if (name == "SHOAL_JOB_ID" || name.starts_with("SHOAL_PORT")) value = kAtStart;
  }
  for (const char* name : {"SHOAL_CLUSTER", "SHOAL_CLUSTER_FILE", "SHOAL_TOKEN_FILE",
                           "SHOAL_SCRATCH", "SHOAL_JOB_DIR", "SHOAL_REPORT_FD"}) {
    (*env)[name] = kAtStart;
  }
}

// Puts into the plan the whole environment that each task will find; for people (`every` false)
// only of the first of each role, which is all that is printed.
Status AddEnvironment(const job::Job& job, bool every, job::Plan* plan) {
  const dialect::ClusterDescription cluster = FutureCluster(job);
  for (job::PlannedTask& task : plan->tasks) {
    if (!every && task.index > 0) continue;
    dialect::TaskContext context;
    context.role = task.role;
    context.index = task.index;
    TRY_ASSIGN(task.env, dialect::RenderEnvironment(job, cluster, context));
    BlankOut(&task.env);
  }
  return Status::Ok();
}

// The algorithm and its parameters. Unlike a run, a plan does not ask for the data to be here.
Status CheckLearn(const job::Job& job) {
  if (job.framework != job::Framework::kShoal) return Status::Ok();
  const learn::Algorithm* algorithm =
      learn::FindAlgorithm(job.learn.contains("algorithm") ? job.learn.at("algorithm").text : "");
  if (algorithm == nullptr) return learn::ValidateLearn(job);
  return learn::ParseParams(algorithm->params, job.learn, job.file).status();
}

int PlanFile(const Context& context, const Arguments& arguments) {
  const Result<job::Job> job = job::ParseJobFile(arguments.file, arguments.set);
  if (!job.ok()) return Complain(job.status());
  if (const Status valid = CheckLearn(*job); !valid.ok()) {
    return Complain(InvalidArgument(valid.message()));
  }
  Result<job::Plan> plan = job::MakePlan(*job);
  if (!plan.ok()) return Complain(plan.status());
  if (const Status added = AddEnvironment(*job, context.json, &*plan); !added.ok()) {
    return Complain(InvalidArgument(added.message()).With(arguments.file));
  }
  (void)PrintOut(context.json ? ToText(job::PlanToJson(*job, *plan)) + "\n"
                              : job::PrintPlan(*job, *plan));
  return 0;
}

constexpr const char* kFooter = R"help(Examples:
  shoal plan job.yaml
  shoal plan job.yaml --set roles.worker.replicas=8
  shoal plan job.yaml --json | jq '.total'

Starts nothing and shows no secrets. Exit code 2 if the file is wrong; every error names the line,
the column and what is expected there.)help";

}  // namespace

void AddPlan(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* sub =
      app.add_subcommand("plan", "Check a job file and print its tasks, starting nothing");
  sub->add_option("FILE", arguments->file, "Job file (YAML; docs/job-file.md)")->required();
  sub->add_option("--set", arguments->set,
                  "Change a field of the file: PATH=VALUE (may be given often)")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  sub->footer(kFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return PlanFile(context, *arguments); };
  });
}

}  // namespace shoal::cli
