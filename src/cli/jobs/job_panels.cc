#include "cli/jobs/job_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/jobs/curves.h"

namespace shoal::cli {
namespace {

constexpr size_t kPoints = 700;  // of a line

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

}  // namespace

Result<std::vector<PlotPanel>> PanelsOfJobs(controller::Jobs* jobs,
                                            const std::vector<std::string>& prefixes,
                                            const std::vector<std::string>& metrics) {
  TRY_ASSIGN(const std::vector<PlottedJob> plotted, FindJobs(jobs, prefixes));
  std::vector<PlotPanel> panels;
  for (const std::string& metric : ChooseMetrics(plotted, metrics)) {
    TRY_ASSIGN(PlotPanel panel, MakePanel(jobs, plotted, metric));
    if (!panel.lines.empty()) panels.push_back(std::move(panel));
  }
  return panels;
}

}  // namespace shoal::cli
