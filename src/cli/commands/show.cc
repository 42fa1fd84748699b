// `shoal show JOB`: prints the record of a job.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <climits>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/jobs/job_json.h"
#include "cli/jobs/session.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stall_report.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;

struct Shown {
  JobRecord job;
  bool unattended = false;
  std::string dir;
  std::vector<controller::TaskRecord> tasks;
  std::vector<controller::Event> events;
};

Result<Shown> Find(const Context& context, const std::string& prefix) {
  TRY_ASSIGN(const std::unique_ptr<Session> session, Session::Open(context));
  Shown shown;
  TRY_ASSIGN(shown.job, session->store().FindJob(prefix));
  shown.unattended = session->unattended(shown.job.id);
  shown.dir = session->home().job_dir(shown.job.id).string();
  TRY_ASSIGN(shown.tasks, session->store().ListTasks(shown.job.id));
  TRY_ASSIGN(shown.events, session->store().ReadEvents(shown.job.id, 0, INT_MAX));
  return shown;
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
    if (event.type == "task" || event.type == "owner") continue;
    std::string what = event.type == "ended" ? GetStringOr(event.body, "state", "") : event.type;
    const std::string why = GetStringOr(event.body, event.type == "note" ? "text" : "reason", "");
    if (event.type == "note") what = "";
    rows.push_back({"  +" + FormatDuration(event.time - from), what, why});
  }
  return Table(rows);
}

// Facts, tasks, the last stall and the history.
std::string TextOf(const Shown& shown) {
  const JobRecord& job = shown.job;
  const WallTime now = RealClock::Get()->Wall();
  std::vector<std::vector<std::string>> facts = {
      {"job", job.id}, {"name", job.name}, {"state", StateText(job, shown.unattended)}};
  if (!job.reason.empty()) facts.push_back({"reason", job.reason});
  if (!job.damage.empty()) facts.push_back({"damage", job.damage});
  facts.push_back({"submitted", FormatWall(job.submitted) + " (" + Ago(job.submitted, now) + ")"});
  if (const std::string ran = RunTime(job, now, TimeSuspended(shown.events)); !ran.empty())
    facts.push_back({"ran", ran});
  facts.push_back({"engine", job.engine});
  facts.push_back({"directory", shown.dir});
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
  const Result<Shown> shown = Find(context, prefix);
  if (!shown.ok()) return PrintError(shown.status());
  if (!context.json) return PrintResult(TextOf(*shown));
  json::object out = JobToJson(shown->job, shown->unattended);
  out["directory"] = shown->dir;
  out["job"] = shown->job.job;
  json::array tasks;
  for (const controller::TaskRecord& task : shown->tasks) tasks.push_back(TaskToJson(task));
  out["tasks"] = std::move(tasks);
  json::array events;
  for (const controller::Event& event : shown->events) events.push_back(EventToJson(event));
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
