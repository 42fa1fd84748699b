// `GET /metrics`: the text format 0.0.4 of Prometheus. Computed for each request from the store and
// the newest series of the running jobs of the user's teams; labels are bounded.

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "api/server/handlers.h"
#include "base/file.h"
#include "controller/series/series_files.h"
#include "controller/series/series_reader.h"

namespace shoal::api {
namespace {

using controller::JobState;
using controller::JobSummary;

constexpr int kOk = 200;
constexpr int kMaxJobs = 1000;
constexpr size_t kMaxJobsWithValues = 100;
constexpr size_t kMaxMetricsOfJob = 32;

// A line feed, a quote and a backslash are escaped.
std::string Label(std::string_view name, std::string_view value) {
  std::string text(name);
  text += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + '"';
}

// Families of metrics, each with its help and type once.
class MetricsText {
 public:
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void Sample(double value, std::string_view labels = {}) {
    if (labels.empty()) text_ += fmt::format("{} {:.17g}\n", name_, value);
    if (!labels.empty()) text_ += fmt::format("{}{{{}}} {:.17g}\n", name_, labels, value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

void AddJobStates(const std::vector<JobSummary>& jobs, MetricsText* out) {
  std::map<JobState, int> counts;
  for (const JobState state : {JobState::kPending, JobState::kAdmitted, JobState::kStarting,
                               JobState::kRunning, JobState::kSuspended, JobState::kFinishing})
    counts[state] = 0;
  for (const JobSummary& job : jobs) ++counts[job.state];
  out->Family("shoal_jobs", "gauge", "Unfinished jobs of the token's teams by state.");
  for (const auto& [state, count] : counts) out->Sample(count, Label("state", job::NameOf(state)));
}

void AddQueueAge(const std::vector<JobSummary>& jobs, WallTime now, MetricsText* out) {
  double oldest = 0;
  for (const JobSummary& job : jobs) {
    const double age = std::chrono::duration<double>(now - job.submitted).count();
    if (job.state == JobState::kPending) oldest = std::max(oldest, age);
  }
  out->Family("shoal_queue_oldest_seconds", "gauge",
              "Time since the submission of the oldest pending job; 0 without one.");
  out->Sample(oldest);
}

struct Total {
  double sum = 0;
  int tasks = 0;
};

void AddLastValues(const Backend& backend, const std::vector<JobSummary>& jobs, MetricsText* out) {
  out->Family("shoal_job_progress", "gauge",
              "Newest number that the tasks of a running job reported: their sum for speeds, "
              "cpu_cores and memory_bytes, else their mean.");
  size_t shown = 0;
  for (const JobSummary& job : jobs) {
    if (job.state != JobState::kRunning || ++shown > kMaxJobsWithValues) continue;
    const auto series = controller::ListSeries(controller::SeriesDir(backend.home.job_dir(job.id)));
    if (!series.ok()) continue;
    std::map<std::string, Total> totals;
    for (const controller::SeriesInfo& info : *series) {
      const std::string metric(controller::MetricOf(info.name));
      const bool room = totals.size() < kMaxMetricsOfJob || totals.contains(metric);
      if (!info.has_last || !room) continue;
      totals[metric].sum += info.last;
      ++totals[metric].tasks;
    }
    for (const auto& [metric, total] : totals) {
      const double many = controller::IsSummedMetric(metric) ? 1 : total.tasks;
      out->Sample(total.sum / many, Label("job", job.id) + "," + Label("team", job.team) + "," +
                                        Label("metric", metric));
    }
  }
}

void AddHttp(const Backend& backend, MetricsText* out) {
  if (!backend.http_stats) return;
  const net::HttpServerStats stats = backend.http_stats();
  out->Family("shoal_http_requests_total", "counter", "Requests that the server has received.");
  out->Sample(static_cast<double>(stats.requests));
  out->Family("shoal_http_bad_requests_total", "counter",
              "Requests refused before their handler: malformed, too slow or too large.");
  out->Sample(static_cast<double>(stats.bad_requests));
  out->Family("shoal_http_refused_connections_total", "counter",
              "Connections refused over a limit.");
  out->Sample(static_cast<double>(stats.refused_connections));
  out->Family("shoal_http_connections", "gauge", "Open connections.");
  out->Sample(static_cast<double>(stats.connections));
}

void AddProcess(MetricsText* out) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  out->Family("process_cpu_seconds_total", "counter", "Processor time of the server.");
  out->Sample(seconds(usage.ru_utime) + seconds(usage.ru_stime));
  long pages = 0, resident = 0;
  const auto statm = ReadFile("/proc/self/statm", 4096);
  if (statm.ok() && std::sscanf(statm->c_str(), "%ld %ld", &pages, &resident) == 2) {
    out->Family("process_resident_memory_bytes", "gauge", "Resident memory of the server.");
    out->Sample(static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  std::error_code error;
  size_t open = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error))
    ++open;
  out->Family("process_open_fds", "gauge", "Open descriptors of the server.");
  out->Sample(static_cast<double>(open));
}

}  // namespace

void AnswerMetrics(const Backend& backend, const CallPtr& call) {
  controller::JobFilter filter;
  filter.states = {JobState::kPending, JobState::kAdmitted,  JobState::kStarting,
                   JobState::kRunning, JobState::kSuspended, JobState::kFinishing};
  if (!call->principal.administrator)
    for (const auto& [team, role] : call->principal.teams) filter.teams.push_back(team);
  const auto page = backend.store->ListPage(filter, "", kMaxJobs);
  if (!page.ok()) return call->answer(Problem(page.status()));
  MetricsText out;
  AddJobStates(page->jobs, &out);
  AddQueueAge(page->jobs, backend.clock->Wall(), &out);
  AddLastValues(backend, page->jobs, &out);
  AddHttp(backend, &out);
  AddProcess(&out);
  call->answer({kOk,
                {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"},
                 {"Cache-Control", "no-store"}},
                out.Take()});
}

}  // namespace shoal::api
