#include "queue/simulate/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace shoal::queue {
namespace {

double Seconds(Millis time) { return static_cast<double>(time.count()) / 1000; }

double Quantile(std::vector<double>* values, double quantile) {
  if (values->empty()) return 0;
  const auto at = static_cast<size_t>(quantile * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), values->begin() + static_cast<int64_t>(at), values->end());
  return (*values)[at];
}

std::string Format(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// "95 s", "12.5 min", "3.1 h".
std::string TimeText(double seconds) {
  if (std::abs(seconds) < 120) return Format("%.4g s", seconds);
  if (std::abs(seconds) < 7200) return Format("%.3g min", seconds / 60);
  return Format("%.4g h", seconds / 3600);
}

// Waits in seconds of the jobs that started.
std::vector<double> Waits(const SimulationResult& result) {
  std::vector<double> waits;
  for (const JobOutcome& job : result.jobs) {
    if (job.started < kForever) waits.push_back(Seconds(job.waited));
  }
  return waits;
}

void Row(const std::string& name, const std::vector<std::string>& cells, std::string* text) {
  std::string line = name;
  line.resize(std::max<size_t>(line.size(), 22), ' ');
  for (const std::string& cell : cells) {
    std::string column = "  " + cell;
    column.resize(std::max<size_t>(column.size(), 20), ' ');
    line += column;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  *text += line + "\n";
}

std::string Differences(const Trace& trace, const SimulationResult& before,
                        const SimulationResult& after, size_t most) {
  std::vector<std::pair<double, size_t>> changes;
  size_t earlier = 0;
  size_t later = 0;
  for (size_t i = 0; i < trace.jobs.size(); ++i) {
    const double change = Seconds(after.jobs[i].waited) - Seconds(before.jobs[i].waited);
    earlier += change < -0.5 ? 1 : 0;
    later += change > 0.5 ? 1 : 0;
    if (std::abs(change) > 0.5) changes.push_back({change, i});
  }
  std::string text = "\n" + std::to_string(earlier) + " jobs wait less, " + std::to_string(later) +
                     " wait longer\n";
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return std::abs(a.first) != std::abs(b.first) ? std::abs(a.first) > std::abs(b.first)
                                                  : a.second < b.second;
  });
  if (changes.size() > most) changes.resize(most);
  if (!changes.empty()) Row("job", {"queue", "wait before", "wait after", "change"}, &text);
  for (const auto& [change, i] : changes) {
    Row(trace.jobs[i].id,
        {trace.name(trace.jobs[i].queue), TimeText(Seconds(before.jobs[i].waited)),
         TimeText(Seconds(after.jobs[i].waited)), (change > 0 ? "+" : "") + TimeText(change)},
        &text);
  }
  return text;
}

}  // namespace

SimulationSummary Summarize(const Trace& trace, const SimulationResult& result) {
  SimulationSummary summary;
  summary.jobs = static_cast<int64_t>(result.jobs.size());
  std::map<int32_t, std::pair<double, int64_t>> users;
  double slowdowns = 0;
  for (size_t i = 0; i < result.jobs.size(); ++i) {
    const JobOutcome& job = result.jobs[i];
    summary.refused += job.refused ? 1 : 0;
    summary.preemptions += job.preempted;
    summary.lost_hours += job.lost / 3600;
    if (job.ended == kForever) continue;
    ++summary.ended;
    const double run = Seconds(trace.jobs[i].run_time);
    const double slowdown = std::max(1.0, (Seconds(job.waited) + run) / std::max(run, 10.0));
    slowdowns += slowdown;
    auto& [sum, count] = users[trace.jobs[i].user];
    sum += slowdown;
    ++count;
  }
  std::vector<double> waits = Waits(result);
  for (const double wait : waits) summary.mean_wait += wait;
  summary.mean_wait /= std::max<double>(1, static_cast<double>(waits.size()));
  summary.median_wait = Quantile(&waits, 0.5);
  summary.p99_wait = Quantile(&waits, 0.99);
  summary.slowdown = slowdowns / std::max<double>(1, static_cast<double>(summary.ended));
  double sum = 0;
  double squares = 0;
  for (const auto& [user, total] : users) {
    const double mean = total.first / static_cast<double>(total.second);
    sum += mean;
    squares += mean * mean;
  }
  if (squares > 0) summary.fairness = sum * sum / (squares * static_cast<double>(users.size()));
  summary.makespan = Seconds(result.makespan);
  for (size_t r = 0; r < kResources; ++r) {
    if (result.capacity[r] <= 0) continue;
    const double whole = static_cast<double>(result.capacity[r]) * result.loaded_seconds;
    if (whole > 0) summary.utilisation = std::max(summary.utilisation, result.used[r] / whole);
  }
  return summary;
}

json::object SummaryJson(const SimulationSummary& summary) {
  return {{"jobs", summary.jobs},
          {"ended", summary.ended},
          {"refused", summary.refused},
          {"mean_wait", summary.mean_wait},
          {"median_wait", summary.median_wait},
          {"p99_wait", summary.p99_wait},
          {"slowdown", summary.slowdown},
          {"utilisation", summary.utilisation},
          {"fairness", summary.fairness},
          {"preemptions", summary.preemptions},
          {"lost_hours", summary.lost_hours},
          {"makespan", summary.makespan}};
}

std::string ReportText(const Trace& trace, const std::vector<SimulatedPolicy>& policies,
                       size_t most) {
  std::string text;
  std::vector<std::string> names;
  std::vector<SimulationSummary> all;
  for (const SimulatedPolicy& policy : policies) {
    names.push_back(policy.name);
    all.push_back(Summarize(trace, policy.result));
  }
  const auto row = [&](const std::string& name, auto cell) {
    std::vector<std::string> cells;
    for (const SimulationSummary& summary : all) cells.push_back(cell(summary));
    Row(name, cells, &text);
  };
  using S = const SimulationSummary&;
  Row("policy", names, &text);
  row("jobs ended", [](S s) {
    return std::to_string(s.ended) + " of " + std::to_string(s.jobs) +
           (s.refused > 0 ? " (" + std::to_string(s.refused) + " refused)" : "");
  });
  row("mean wait", [](S s) { return TimeText(s.mean_wait); });
  row("median wait", [](S s) { return TimeText(s.median_wait); });
  row("99 % wait at most", [](S s) { return TimeText(s.p99_wait); });
  row("mean slowdown", [](S s) { return Format("%.3g", s.slowdown); });
  row("utilisation", [](S s) { return Format("%.1f %%", 100 * s.utilisation); });
  row("fairness of users", [](S s) { return Format("%.3f", s.fairness); });
  row("preemptions", [](S s) { return std::to_string(s.preemptions); });
  row("work done twice", [](S s) { return Format("%.4g task-hours", s.lost_hours); });
  row("last end after", [](S s) { return TimeText(s.makespan); });
  if (policies.size() > 1 && most > 0)
    text += Differences(trace, policies.front().result, policies.back().result, most);
  return text;
}

std::string ReportSvg(const Trace& trace, const std::vector<SimulatedPolicy>& policies) {
  (void)trace;
  constexpr double kWidth = 720;
  constexpr double kHeight = 360;
  constexpr double kLeft = 60;
  constexpr double kBottom = 320;
  constexpr const char* kColours[] = {"#8a8a8a", "#1f6feb", "#d1242f", "#1a7f37"};
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 360\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"720\" height=\"360\" fill=\"white\"/>\n<text x=\"60\" "
      "y=\"20\">Part of the jobs that waited at most this long</text>\n";
  double longest = 1;
  for (const SimulatedPolicy& policy : policies) {
    for (const double wait : Waits(policy.result)) longest = std::max(longest, wait);
  }
  const double decades = std::log10(longest + 1);
  const auto x = [&](double wait) {
    return kLeft + (kWidth - kLeft - 20) * std::log10(wait + 1) / decades;
  };
  for (double tick = 1; tick <= longest * 1.01; tick *= 10) {
    svg += "<path d=\"M" + Format("%.1f", x(tick)) + " 30V320\" stroke=\"#ddd\"/><text x=\"" +
           Format("%.1f", x(tick)) + "\" y=\"338\" text-anchor=\"middle\">" + TimeText(tick) +
           "</text>\n";
  }
  for (int part = 0; part <= 4; ++part) {
    const double y = kBottom - 72.5 * part;
    svg += "<path d=\"M60 " + Format("%.1f", y) + "H700\" stroke=\"#ddd\"/><text x=\"54\" y=\"" +
           Format("%.1f", y + 4) + "\" text-anchor=\"end\">" + std::to_string(25 * part) +
           " %</text>\n";
  }
  for (size_t p = 0; p < policies.size(); ++p) {
    std::vector<double> waits = Waits(policies[p].result);
    std::sort(waits.begin(), waits.end());
    const char* const colour = kColours[p % std::size(kColours)];
    svg += std::string("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"") + colour +
           "\" points=\"";
    const size_t step = std::max<size_t>(1, waits.size() / 400);
    for (size_t i = 0; i < waits.size(); i += step) {
      const double part = static_cast<double>(i + 1) / static_cast<double>(waits.size());
      svg += Format("%.1f", x(waits[i])) + "," + Format("%.1f ", kBottom - 290 * part);
    }
    svg += std::string("\"/>\n<text x=\"560\" y=\"") +
           Format("%.0f", kHeight - 70 - 18 * static_cast<double>(p)) + "\" fill=\"" + colour +
           "\">" + policies[p].name + "</text>\n";
  }
  return svg + "</svg>\n";
}

}  // namespace shoal::queue
