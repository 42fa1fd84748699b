// `shoal plot JOB… -o FILE`: the curves of jobs as a picture.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "base/output_file.h"
#include "cli/commands/commands.h"
#include "cli/jobs/curve_svg.h"
#include "cli/jobs/curves.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/report.h"

namespace shoal::cli {
namespace {

constexpr size_t kPoints = 700;  // of a line

struct PlotArguments {
  std::vector<std::string> jobs;
  std::string output;
  std::vector<std::string> metrics;
};

struct PlottedJob {
  std::string id;
  std::vector<controller::SeriesInfo> series;
};

Result<std::vector<PlottedJob>> FindJobs(controller::Jobs* jobs,
                                         const std::vector<std::string>& prefixes) {
  std::vector<PlottedJob> found;
  for (const std::string& prefix : prefixes) {
    TRY_ASSIGN(const controller::JobView view, jobs->Find(prefix));
    PlottedJob job{view.record.id, {}};
    TRY_ASSIGN(job.series, jobs->ListSeries(job.id));
    if (job.series.empty()) return NotFound(job.id + " has reported no numbers");
    found.push_back(std::move(job));
  }
  return found;
}

// The chosen metrics, else the main ones of all jobs, else all.
std::vector<std::string> ChooseMetrics(const std::vector<PlottedJob>& jobs,
                                       const std::vector<std::string>& chosen) {
  if (!chosen.empty()) return chosen;
  std::vector<controller::SeriesInfo> all;
  for (const PlottedJob& job : jobs) all.insert(all.end(), job.series.begin(), job.series.end());
  const std::vector<std::string> names = MetricNames(all);
  const std::vector<std::string> main = MainMetrics(names);
  return main.empty() ? names : main;
}

bool Has(const PlottedJob& job, const std::string& metric) {
  return std::ranges::any_of(job.series, [&](const controller::SeriesInfo& info) {
    return controller::MetricOf(info.name) == metric;
  });
}

// A chosen metric that one of several jobs lacks has no line there; one that none has is an error.
Result<PlotPanel> MakePanel(controller::Jobs* jobs, const std::vector<PlottedJob>& plotted,
                            const std::string& metric) {
  PlotPanel panel{metric, {}};
  const bool known =
      std::ranges::any_of(plotted, [&](const PlottedJob& job) { return Has(job, metric); });
  for (const PlottedJob& job : plotted) {
    if (known && !Has(job, metric)) continue;
    TRY_ASSIGN(Curve curve, ReadCurve(jobs, job.id, job.series, metric, kPoints));
    std::string label = job.id;
    if (curve.tasks > 1)
      label += fmt::format(" ({} of {} tasks)", curve.summed ? "sum" : "mean", curve.tasks);
    if (!curve.points.empty()) panel.lines.push_back({std::move(label), std::move(curve.points)});
  }
  return panel;
}

Status Plot(const Context& context, const PlotArguments& arguments) {
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const std::vector<PlottedJob> plotted, FindJobs(jobs.get(), arguments.jobs));
  std::vector<PlotPanel> panels;
  for (const std::string& metric : ChooseMetrics(plotted, arguments.metrics)) {
    TRY_ASSIGN(PlotPanel panel, MakePanel(jobs.get(), plotted, metric));
    if (!panel.lines.empty()) panels.push_back(std::move(panel));
  }
  const std::string svg = PlotSvg(panels);
  return arguments.output == "-" ? PrintOut(svg) : WriteOutputFile(arguments.output, svg);
}

constexpr const char* kPlotFooter = R"help(Examples:
  shoal plot word2vec-7f3a9c -o curves.svg
  shoal plot mnist-1b6d2e mnist-7f3a9c --metric loss -o losses.svg    two jobs in one picture
  shoal plot mnist-7f3a9c -o - > curves.svg)help";

}  // namespace

void AddPlot(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<PlotArguments>();
  CLI::App* sub = app.add_subcommand("plot", "Draw the curves of jobs to an SVG file");
  sub->add_option("JOB", arguments->jobs, "Names of jobs, or unambiguous prefixes")->required();
  sub->add_option("-o,--output", arguments->output, "The file; - for standard output")
      ->type_name("FILE")
      ->required();
  sub->add_option("--metric", arguments->metrics,
                  "Draw this number [losses and speeds] (can be repeated)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  sub->footer(kPlotFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Status done = Plot(context, *arguments);
      return done.ok() ? 0 : PrintError(done);
    };
  });
}

}  // namespace shoal::cli
