// `shoal outputs JOB`: lists or copies the files that tasks wrote to $SHOAL_OUTPUT, by attempt.

#include "controller/files/outputs.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "job/execution/job_dir.h"

namespace shoal::cli {
namespace {

struct OutputsArguments {
  std::string job;
  std::string task;
  std::string to;
};

struct Found {
  std::string id;
  std::string dir;        // the job's directory; empty: it is on the server
  json::object declared;  // the job's own `outputs`: name → directory
  std::vector<controller::OutputFile> files;
};

// NotFound lists the job's tasks if it never had one of this name.
Status CheckTask(controller::Jobs& jobs, const std::string& id, const std::string& wanted) {
  TRY_ASSIGN(const controller::JobDetails job, jobs.Describe(id));
  std::vector<std::string> names;
  for (const controller::TaskRecord& task : job.tasks)
    names.push_back(task.role + "-" + std::to_string(task.index));
  if (names.empty() || std::find(names.begin(), names.end(), wanted) != names.end())
    return Status::Ok();
  const std::string nearest = NearestName(wanted, names);
  return NotFound("job " + id + " has no task " + wanted +
                  (nearest.empty() ? "" : "; did you mean " + nearest + "?") + "; `shoal show " +
                  id + "` lists its tasks");
}

Result<Found> Find(controller::Jobs& jobs, const OutputsArguments& arguments) {
  TRY_ASSIGN(const controller::JobView job, jobs.Find(arguments.job));
  Found found;
  found.id = job.record.id;
  found.dir = job.directory;
  if (const json::value* outputs = job.record.job.if_contains("outputs");
      outputs != nullptr && outputs->is_object())
    found.declared = outputs->get_object();
  TRY_ASSIGN(found.files, jobs.ListOutputs(found.id));
  if (!arguments.task.empty()) {
    TRY(CheckTask(jobs, found.id, arguments.task));
    std::erase_if(found.files, [&](const auto& file) { return file.task != arguments.task; });
  }
  return found;
}

int PrintText(const Found& found) {
  std::vector<std::vector<std::string>> rows = {{"TASK", "ATTEMPT", "BYTES", "FILE"}};
  for (const controller::OutputFile& file : found.files)
    rows.push_back({file.task, std::to_string(file.attempt + 1),
                    file.link ? "link" : std::to_string(file.bytes), file.path});
  std::string out = rows.size() > 1 ? Table(rows) : "";
  for (const auto& field : found.declared) {
    const std::string where =
        field.value().is_string() ? std::string(field.value().get_string()) : "";
    out += std::string(field.key()) + ": " + where + "\n";
  }
  if (out.empty()) PrintNote("no task of this job has written anything to $SHOAL_OUTPUT");
  return PrintResult(out);
}

int PrintJson(const Found& found) {
  json::array files;
  for (const controller::OutputFile& file : found.files) {
    files.push_back({{"task", file.task},
                     {"attempt", file.attempt},
                     {"path", file.path},
                     {"bytes", file.bytes},
                     {"link", file.link}});
  }
  json::object out;
  if (!found.dir.empty()) out["directory"] = job::JobDir(found.dir).outputs().string();
  out["declared"] = found.declared;
  out["files"] = std::move(files);
  return PrintResult(JsonLines(out));
}

int Outputs(const Context& context, const OutputsArguments& arguments) {
  const auto jobs = OpenJobs(context);
  if (!jobs.ok()) return PrintError(jobs.status());
  const Result<Found> found = Find(**jobs, arguments);
  if (!found.ok()) return PrintError(found.status());
  if (!arguments.to.empty()) {
    if (const Status copied = (*jobs)->CopyOutputs(found->id, found->files, arguments.to);
        !copied.ok())
      return PrintError(copied);
  }
  return context.json ? PrintJson(*found) : PrintText(*found);
}

constexpr const char* kOutputsFooter = R"help(Examples:
  shoal outputs mnist-7f3a9c
  shoal outputs mnist --task worker-0 --to results      copies to results/worker-0.0/…

Attempts are numbered from 1 in the table, from 0 in directory names and in --json.)help";

}  // namespace

void AddOutputs(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<OutputsArguments>();
  CLI::App* sub =
      app.add_subcommand("outputs", "List or copy the files that tasks wrote to $SHOAL_OUTPUT");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_option("--task", arguments->task, "Only files of this task, for example worker-0")
      ->type_name("TASK");
  sub->add_option("--to", arguments->to, "Copy the files to this directory")->type_name("DIR");
  sub->footer(kOutputsFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Outputs(context, *arguments); };
  });
}

}  // namespace shoal::cli
