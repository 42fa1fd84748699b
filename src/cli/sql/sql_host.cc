#include "cli/sql/sql_host.h"

#include <unistd.h>

#include <climits>
#include <csignal>
#include <utility>

#include "cli/jobs/job_runner.h"
#include "cli/jobs/open_jobs.h"
#include "cli/sql/grid_text.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stop_signals.h"
#include "controller/files/expand_data.h"

namespace shoal::cli {
namespace {

constexpr int kEndedListed = 100;

volatile std::sig_atomic_t signals_seen = 0;

void OnSignal(int signal) {
  if (signals_seen != 0) ::_exit(128 + signal);
  signals_seen = 1;
}

// Signals that this process handles; asked once, before any of them is handled.
const std::vector<int>& HandledSignals() {
  static const std::vector<int> signals = WithoutIgnored({SIGINT, SIGTERM, SIGHUP});
  return signals;
}

void HandleSignals(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int signal : HandledSignals()) ::sigaction(signal, &action, nullptr);
}

sql::ListedJob Listed(const controller::JobRecord& record) {
  sql::ListedJob listed;
  listed.id = record.id;
  listed.state = job::NameOf(record.state);
  listed.submitted = record.submitted;
  if (record.state != job::JobState::kSucceeded) listed.reason = record.reason;
  const json::object* const learn = FindObject(record.job, "learn");
  const json::object* const algorithm =
      learn == nullptr ? nullptr : FindObject(*learn, "algorithm");
  if (algorithm != nullptr) listed.algorithm = GetStringOr(*algorithm, "text", "");
  if (const json::object* const outputs = FindObject(record.job, "outputs"))
    listed.model = GetStringOr(*outputs, "model", "");
  return listed;
}

}  // namespace

SqlHost::SqlHost(const Context& context, SqlHostOptions options)
    : context_(context), options_(std::move(options)) {
  signals_seen = 0;
  HandleSignals(OnSignal);
}

SqlHost::~SqlHost() { HandleSignals(SIG_DFL); }

Result<sql::FinishedJob> SqlHost::RunJob(const job::Job& job, const std::string& engine) {
  job::Job expanded = job;
  controller::ExpandData(&expanded);
  in_job_ = true;
  if (Stopped()) {
    in_job_ = false;
    return Cancelled("stopped");
  }
  const Result<RunEnd> end =
      RunJobToEnd(context_, std::move(expanded),
                  {.quiet = options_.quiet,
                   .engine = engine.empty() ? options_.engine : engine,
                   .registers_model = false});  // MLSQL numbers its models itself
  in_job_ = false;
  HandleSignals(OnSignal);  // the job's loop had its own
  if (!end.ok()) return end.status();
  sql::FinishedJob finished;
  finished.id = end->record.id;
  finished.state = end->record.state;
  if (finished.state == job::JobState::kSucceeded && end->exit_code != 0)
    finished.state = job::JobState::kCancelled;  // a signal, or output that could not be written
  finished.reason = end->record.reason;
  finished.started = end->record.started;
  finished.ended = end->record.ended;
  return finished;
}

Result<std::vector<sql::ListedJob>> SqlHost::ListJobs() {
  TRY_ASSIGN(const auto jobs, OpenJobs(context_));
  TRY_ASSIGN(auto views, jobs->List({.ended = false, .limit = INT_MAX}));
  TRY_ASSIGN(auto ended, jobs->List({.unfinished = false, .limit = kEndedListed}));
  for (auto& view : ended) views.push_back(std::move(view));
  std::vector<sql::ListedJob> listed;
  for (const auto& view : views) listed.push_back(Listed(view.record));
  return listed;
}

Result<std::string> SqlHost::StopJob(const std::string& prefix) {
  TRY_ASSIGN(const auto jobs, OpenJobs(context_));
  TRY_ASSIGN(const controller::JobView found, jobs->Find(prefix));
  TRY(jobs->Stop(found.record.id, controller::StopMode::kDrain, "stopped by !kill").status());
  return found.record.id;
}

Status SqlHost::Show(const sql::Grid& grid) {
  return PrintOut(context_.json ? GridLine(grid) : GridText(grid));
}

void SqlHost::Note(const std::string& sentence) {
  if (!options_.quiet) PrintNote(sentence);
}

bool SqlHost::Stopped() { return signals_seen != 0; }

void SqlHost::Interrupt() {
  if (in_job_) {
    ::kill(::getpid(), SIGINT);
  } else {
    signals_seen = 1;
  }
}

void SqlHost::ForgetStop() { signals_seen = 0; }

}  // namespace shoal::cli
