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

#include "api/forward/log_forwarder.h"
#include "api/server/handlers.h"
#include "api/webhooks/dispatcher.h"
#include "base/file.h"
#include "controller/retention/log_keeper.h"
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
      out->Sample(total.sum / many, Label("job_id", job.id) + "," + Label("team", job.team) + "," +
                                        Label("metric", metric));
    }
  }
}

void AddHttp(const Backend& backend, MetricsText* out) {
  if (!backend.start.http_stats) return;
  const net::HttpServerStats stats = backend.start.http_stats();
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

void AddWebhooks(const Backend& backend, MetricsText* out) {
  if (backend.observability.dispatcher == nullptr) return;
  const WebhookCounters counters = backend.observability.dispatcher->counters();
  out->Family("shoal_webhooks", "gauge", "Webhooks of the server and of all teams.");
  out->Sample(static_cast<double>(counters.webhooks));
  out->Family("shoal_webhooks_failing", "gauge",
              "Webhooks whose last attempt failed, or which are disabled.");
  out->Sample(static_cast<double>(counters.failing));
  out->Family("shoal_webhook_messages_total", "counter", "Messages that receivers have accepted.");
  out->Sample(static_cast<double>(counters.delivered));
  out->Family("shoal_webhook_failures_total", "counter", "Attempts that failed.");
  out->Sample(static_cast<double>(counters.failures));
  out->Family("shoal_webhook_dropped_total", "counter", "Messages that were given up.");
  out->Sample(static_cast<double>(counters.dropped));
}

void AddLogKeeper(const Backend& backend, MetricsText* out) {
  if (backend.observability.log_keeper == nullptr) return;
  const controller::LogKeeperCounters counters = backend.observability.log_keeper->counters();
  const auto add = [out](const char* name, const char* help, uint64_t value) {
    out->Family(name, "counter", help);
    out->Sample(static_cast<double>(value));
  };
  add("shoal_logs_compressed_total", "Logs that were compressed.", counters.compressed);
  add("shoal_logs_compressed_bytes_total", "Bytes of these logs before.",
      counters.compressed_bytes);
  add("shoal_logs_archive_bytes_total", "Bytes of these logs afterwards.", counters.archive_bytes);
  add("shoal_logs_removed_jobs_total", "Jobs whose logs were removed by a team's limits.",
      counters.removed_jobs);
  add("shoal_logs_removed_bytes_total", "Bytes of these logs on the disk.", counters.removed_bytes);
  add("shoal_logs_failures_total", "Logs that could not be compressed.", counters.failures);
}

// Forwarders are those of a file, at most kMaxForwarders.
void AddForwarders(const Backend& backend, MetricsText* out) {
  if (backend.observability.forwarders.empty()) return;
  const auto add = [&](const char* name, const char* type, const char* help, auto value) {
    out->Family(name, type, help);
    for (const LogForwarder* forwarder : backend.observability.forwarders)
      out->Sample(static_cast<double>(value(forwarder->counters())),
                  Label("forwarder", forwarder->name()));
  };
  using Counters = const LogForwarderCounters&;
  add("shoal_log_forward_lines_total", "counter", "Lines of logs that the receiver has taken.",
      [](Counters counters) { return counters.lines; });
  add("shoal_log_forward_bytes_total", "counter", "Bytes of these lines.",
      [](Counters counters) { return counters.bytes; });
  add("shoal_log_forward_failures_total", "counter", "Batches that failed, in part or as a whole.",
      [](Counters counters) { return counters.failures; });
  add("shoal_log_forward_rejected_total", "counter", "Lines that the receiver does not take.",
      [](Counters counters) { return counters.rejected; });
  add("shoal_log_forward_lost_logs_total", "counter",
      "Logs that were removed before all of their lines were sent.",
      [](Counters counters) { return counters.lost_logs; });
  add("shoal_log_forward_jobs", "gauge", "Jobs with lines that may not have been sent.",
      [](Counters counters) { return counters.jobs; });
  add("shoal_log_forward_failing", "gauge", "1 while a batch is sent again.",
      [](Counters counters) { return counters.failing ? 1 : 0; });
}

// Of all teams, so for administrators only.
void AddEnded(const Backend& backend, MetricsText* out) {
  if (!backend.observability.ended_jobs) return;
  out->Family("shoal_jobs_ended_total", "counter",
              "Jobs that have ended since the server's start.");
  for (const auto& [state, count] : backend.observability.ended_jobs())
    out->Sample(static_cast<double>(count), Label("state", job::NameOf(state)));
}

void AddDisk(const Backend& backend, MetricsText* out) {
  std::error_code error;
  const auto space = std::filesystem::space(backend.home.root(), error);
  if (error) return;
  out->Family("shoal_state_disk_free_bytes", "gauge",
              "Bytes that the server may still write on the disk of its state directory.");
  out->Sample(static_cast<double>(space.available));
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
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  out->Family("process_max_fds", "gauge", "Descriptors that the server may open.");
  out->Sample(static_cast<double>(files.rlim_cur));
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
  if (call->principal.administrator) AddEnded(backend, &out);
  AddDisk(backend, &out);
  AddHttp(backend, &out);
  AddWebhooks(backend, &out);
  AddLogKeeper(backend, &out);
  AddForwarders(backend, &out);
  AddProcess(&out);
  call->answer({kOk,
                {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"},
                 {"Cache-Control", "no-store"}},
                out.Take()});
}

}  // namespace shoal::api
