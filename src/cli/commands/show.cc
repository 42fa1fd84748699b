// `shoal show JOB`: prints the record of a job, or what is in a model.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/jobs/curves.h"
#include "cli/jobs/groups.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/open_jobs.h"
#include "cli/models/show_model.h"
#include "cli/terminal/curve_chart.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stall_report.h"
#include "controller/jobs/job_json.h"
#include "controller/jobs/series_json.h"

namespace shoal::cli {
namespace {

using controller::JobRecord;

using controller::JobDetails;

struct ShowArguments {
  std::string prefix;
  bool curves = false;
  std::vector<std::string> metrics;
  ShowModelArguments model;
};

// Columns of the terminal; $COLUMNS or 80 without one.
int TerminalWidth() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const int width = columns == nullptr ? 0 : std::atoi(columns);
  return width > 0 ? std::min(width, 1000) : 80;
}

std::string TitleOf(const Curve& curve) {
  const std::string last = ShortNumber(curve.points.back().value);
  std::string title = curve.metric + "  " + last;
  if (curve.tasks > 1)
    title += fmt::format("  ({} of {} tasks)", curve.summed ? "sum" : "mean", curve.tasks);
  return title;
}

Result<std::string> CurvesText(controller::Jobs* jobs, const std::string& id,
                               std::vector<std::string> metrics) {
  TRY_ASSIGN(const auto series, jobs->ListSeries(id));
  if (series.empty())
    return NotFound(id + " has reported no numbers (docs/metrics.md: how programs report them)");
  const std::vector<std::string> all = MetricNames(series);
  if (metrics.empty()) metrics = MainMetrics(all);
  if (metrics.empty()) metrics = all;
  const ChartStyle style{.width = TerminalWidth(), .utf8 = LocaleIsUtf8()};
  std::string text;
  for (const std::string& metric : metrics) {
    TRY_ASSIGN(const Curve curve, ReadCurve(jobs, id, series, metric, ChartPoints(style)));
    if (curve.points.empty()) continue;
    std::vector<std::pair<double, double>> points;
    for (const CurvePoint& point : curve.points) points.emplace_back(point.seconds, point.value);
    const std::string end = FormatDuration(std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(curve.points.back().seconds)));
    text += (text.empty() ? "" : "\n") + TitleOf(curve) + "\n";
    for (const std::string& line : DrawChart(points, end, style)) text += line + "\n";
  }
  return text;
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

// The names and extents of the job's series; empty if they cannot be read.
json::array SeriesJson(const Result<std::vector<controller::SeriesInfo>>& series) {
  json::array list;
  if (!series.ok()) return list;
  for (const controller::SeriesInfo& info : *series) list.push_back(controller::SeriesToJson(info));
  return list;
}

json::object JsonOf(const JobDetails& shown) {
  const controller::JobView& view = shown.view;
  json::object out = controller::JobToJson(view.record, view.unattended);
  if (!view.directory.empty()) out["directory"] = view.directory;
  out["job"] = view.record.job;
  json::array tasks;
  for (const controller::TaskRecord& task : shown.tasks)
    tasks.push_back(controller::TaskToJson(task));
  out["tasks"] = std::move(tasks);
  json::array events;
  for (const controller::Event& event : shown.events)
    events.push_back(controller::EventToJson(event));
  out["events"] = std::move(events);
  return out;
}

int ShowGroup(const Context& context, controller::Jobs* jobs, const json::object& group) {
  const auto whole =
      jobs->DescribeGroup(GetStringOr(group, "team", ""), GetStringOr(group, "id", ""));
  if (!whole.ok()) return PrintError(whole.status());
  return PrintResult(context.json ? ToPrettyText(*whole) + "\n" : GroupText(*whole));
}

int Show(const Context& context, const ShowArguments& arguments) {
  if (IsModelDirectory(arguments.prefix)) {
    ShowModelArguments model = arguments.model;
    model.model = arguments.prefix;
    return ShowModel(context, model);
  }
  const auto jobs = OpenJobs(context);
  if (!jobs.ok()) return PrintError(jobs.status());
  const auto group = FindGroup(jobs->get(), arguments.prefix);
  if (!group.ok()) return PrintError(group.status());
  if (*group) return ShowGroup(context, jobs->get(), **group);
  const Result<controller::JobView> job = (*jobs)->Find(arguments.prefix);
  if (!job.ok()) return PrintError(job.status());
  const std::string& id = job->record.id;
  if (arguments.curves || !arguments.metrics.empty()) {
    const Result<std::string> text = CurvesText(jobs->get(), id, arguments.metrics);
    return text.ok() ? PrintResult(*text) : PrintError(text.status());
  }
  const Result<JobDetails> shown = (*jobs)->Describe(id);
  if (!shown.ok()) return PrintError(shown.status());
  if (!context.json) return PrintResult(TextOf(*shown));
  json::object out = JsonOf(*shown);
  out["series"] = SeriesJson((*jobs)->ListSeries(id));
  return PrintResult(ToPrettyText(out) + "\n");
}

constexpr const char* kShowFooter = R"help(Examples:
  shoal show word2vec-7f3a9c
  shoal show word --json | jq .tasks      an unambiguous prefix of the name suffices
  shoal show word2vec-7f3a9c --curves     draws loss and speed
  shoal show word2vec-7f3a9c --metric memory_bytes
  shoal show tune-1c2d3e        a group: its members, of a sweep the best first (docs/triggers.md)
  shoal show ./model --top 50   a model's directory: its strongest features)help";

}  // namespace

void AddShow(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* sub = app.add_subcommand(
      "show", "Show a job or a group: state, tasks, results, history, curves; or a model");
  sub->add_option("JOB", arguments->prefix, "Name of the job, or an unambiguous prefix")
      ->required();
  sub->add_flag("--curves", arguments->curves, "Draw the numbers that its tasks reported");
  sub->add_option("--metric", arguments->metrics,
                  "Draw this number [losses and speeds] (can be repeated)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  sub->add_option("--top", arguments->model.top, "A model's features with the largest weights [20]")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("N");
  sub->add_option("--data", arguments->model.data,
                  "csv files with the names of a model's classes [its training data]")
      ->type_name("FILE");
  sub->footer(kShowFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) { return Show(context, *arguments); };
  });
}

}  // namespace shoal::cli
