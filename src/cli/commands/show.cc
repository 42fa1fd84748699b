// `shoal show JOB`: prints the record of a job.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stall_report.h"
#include "controller/jobs/job_json.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;

using controller::JobDetails;

Result<JobDetails> Find(const Context& context, const std::string& prefix) {
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const controller::JobView job, jobs->Find(prefix));
  return jobs->Describe(job.record.id);
}

std::string EndText(const controller::TaskRecord& task) {
  if (!task.end) return "";
  std::string text = job::Describe(*task.end);
  if (!task.end->ok() && !task.last_line.empty()) text += "; last output: " + task.last_line;
  return text;
}

std::string History(const std::vector<controller::Event>& events, WallTime from) {
  std::vector<std::vector<std::string>> rows;
  for (const controller::Event& event : events) {
    if (event.type == "task" || event.type == "owner" || event.type == "result") continue;
    std::string what = event.type == "ended" ? GetStringOr(event.body, "state", "") : event.type;
    const std::string why = GetStringOr(event.body, event.type == "note" ? "text" : "reason", "");
    if (event.type == "note") what = "";
    rows.push_back({"  +" + FormatDuration(event.time - from), what, why});
  }
  return Table(rows);
}

// Facts, tasks, the last stall and the history.
std::string TextOf(const JobDetails& shown) {
  const JobRecord& job = shown.view.record;
  const WallTime now = RealClock::Get()->Wall();
  std::vector<std::vector<std::string>> facts = {
      {"job", job.id}, {"name", job.name}, {"state", StateText(job, shown.view.unattended)}};
  if (!job.reason.empty()) facts.push_back({"reason", job.reason});
  if (!job.damage.empty()) facts.push_back({"damage", job.damage});
  facts.push_back({"submitted", FormatWall(job.submitted) + " (" + Ago(job.submitted, now) + ")"});
  if (const std::string ran = RunTime(job, now, shown.view.suspended); !ran.empty())
    facts.push_back({"ran", ran});
  facts.push_back({"engine", job.engine});
  if (!shown.view.directory.empty()) facts.push_back({"directory", shown.view.directory});
  for (const auto& field : job.result)
    facts.push_back({std::string(field.key()), ToText(field.value())});
  std::string out = Table(facts);
  if (!shown.tasks.empty()) {
    std::vector<std::vector<std::string>> rows = {{"TASK", "STATE", "ATTEMPT", "END"}};
    for (const controller::TaskRecord& task : shown.tasks) {
      rows.push_back({fmt::format("{}-{}", task.role, task.index),
                      std::string(job::NameOf(task.state)), std::to_string(task.attempt + 1),
                      EndText(task)});
    }
    out += "\n" + Table(rows);
  }
  if (const std::string stall = FormatStallReport(shown.events, job.submitted); !stall.empty())
    out += "\n" + stall;
  return out + "\nhistory\n" + History(shown.events, job.submitted);
}

int Show(const Context& context, const std::string& prefix) {
  const Result<JobDetails> shown = Find(context, prefix);
  if (!shown.ok()) return PrintError(shown.status());
  if (!context.json) return PrintResult(TextOf(*shown));
  const controller::JobView& view = shown->view;
  json::object out = controller::JobToJson(view.record, view.unattended);
  if (!view.directory.empty()) out["directory"] = view.directory;
  out["job"] = view.record.job;
  json::array tasks;
  for (const controller::TaskRecord& task : shown->tasks)
    tasks.push_back(controller::TaskToJson(task));
  out["tasks"] = std::move(tasks);
  json::array events;
  for (const controller::Event& event : shown->events)
    events.push_back(controller::EventToJson(event));
  out["events"] = std::move(events);
  return PrintResult(ToPrettyText(out) + "\n");
}

constexpr const char* kShowFooter = R"help(Examples:
  shoal show word2vec-7f3a9c
  shoal show word --json | jq .tasks      an unambiguous prefix of the name suffices)help";

}  // namespace

void AddShow(CLI::App& app, Run* chosen) {
  auto prefix = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("show", "Show a job: state, tasks, results, history");
  sub->add_option("JOB", *prefix, "Name of the job, or an unambiguous prefix")->required();
  sub->footer(kShowFooter);
  sub->callback([prefix, chosen] {
    *chosen = [prefix](const Context& context) { return Show(context, *prefix); };
  });
}

}  // namespace shoal::cli
