#include "cli/jobs/job_runner.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "cli/jobs/engines.h"
#include "cli/jobs/open_jobs.h"
#include "cli/jobs/registry_place.h"
#include "cli/terminal/async_writer.h"
#include "cli/terminal/display.h"
#include "cli/terminal/log_pacer.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stop_signals.h"
#include "job/file/parse.h"
#include "job/spec/json.h"
#include "learn/preflight.h"

namespace shoal::cli {
namespace {

constexpr const char* kStopping =
    "stopping: letting the workers save; press Ctrl-C again to stop at once";
constexpr const char* kStoppingNow = "stopping at once";

DisplayKind KindOf(const Context& context, const RunOptions& options) {
  if (context.json) return DisplayKind::kJson;
  if (options.quiet) return DisplayKind::kQuiet;
  const char* const term = std::getenv("TERM");
  // A terminal without a name, or "dumb", may not support escape sequences.
  const bool dumb = term == nullptr || *term == 0 || std::string_view(term) == "dumb";
  return context.stdout_is_terminal && !dumb ? DisplayKind::kTerminal : DisplayKind::kPlain;
}

// Time that the cleanup of the job's engine may take after a second Ctrl-C.
constexpr std::chrono::seconds kImpatientTimeout{15};
// Time that the last lines of a job stopped by a signal wait for a stalled reader.
constexpr Duration kLastLines = std::chrono::seconds(1);
constexpr Duration kOutputPause = std::chrono::milliseconds(10);

const char* NameOfSignal(int signal) {
  return signal == SIGINT ? "Ctrl-C" : signal == SIGHUP ? "SIGHUP" : "SIGTERM";
}

// Runs one job in the foreground. Must be used on the thread that calls RunToEnd.
class ForegroundRun {
 public:
  ForegroundRun(const Context& context, controller::Jobs* jobs, job::Job job,
                const RunOptions& options)
      : jobs_(jobs),
        job_(std::move(job)),
        new_run_{job_, options.engine, options.folder, options.places},
        quiet_(KindOf(context, options) == DisplayKind::kQuiet),
        display_(MakeDisplay(KindOf(context, options), &out_, job_, RealClock::Get())),
        logs_([this] { return !out_.full(); },
              [this](const rendezvous::LogKey& key, int64_t offset, std::string_view bytes) {
                display_->OnLog(key, offset, bytes);
              },
              [this](const rendezvous::LogKey& key, int64_t offset, size_t limit) {
                return jobs_->ReadLog(id_, key, offset, limit);
              }) {
    out_.OnRoom([this] { loop_.Post([this] { CatchUp(); }); });
  }

  // `id`: a suspended job to resume; empty: a new job.
  Result<controller::JobRecord> RunToEnd(std::string id) {
    // Installed before the job exists, so no signal is missed.
    for (const int signal : WithoutIgnored({SIGINT, SIGTERM, SIGHUP}))
      loop_.WatchSignal(signal, [this, signal] { OnSignal(signal); });
    const auto on_submitted = [this](const std::string& submitted) {
      id_ = submitted;
      display_->OnSubmitted(submitted);
    };
    if (id.empty()) {
      TRY_ASSIGN(run_, jobs_->Run(&loop_, new_run_, on_submitted, MakeObserver()));
    } else {
      TRY_ASSIGN(run_, jobs_->RunResumed(&loop_, id, MakeObserver()));
      on_submitted(id);
    }
    Tick();
    loop_.Run();
    run_.reset();
    WaitFor([this] { return CatchUp(); });
    display_->OnEnd(record_, stopped_by_);
    WaitFor([this] { return out_.WaitUntilWritten(kOutputPause); });
    return record_;
  }
  // Prints the last sentence to standard output or standard error.
  void PrintSentence(const std::string& sentence, bool is_result) {
    AsyncWriter* const to = is_result ? &out_ : &errors_;
    to->Write((is_result ? "" : "shoal: ") + sentence + "\n");
    WaitFor([to] { return to->WaitUntilWritten(kOutputPause); });
  }
  // "Ctrl-C" and the like; empty if the user did not stop the job.
  const std::string& stopped_by() const { return stopped_by_; }
  // True if its tasks ended well after the stop: they have saved.
  bool saved() const { return !stopped_by_.empty() && saved_; }
  Code failed_by() const { return failed_by_; }
  // Status of the output; reports the first error.
  Status written() {
    ReportWriteError();
    return out_.status();
  }

 private:
  controller::Observer MakeObserver() {
    controller::Observer observer;
    observer.on_state = [this](job::JobState state, const std::string& why) {
      display_->OnState(state, why);
    };
    observer.on_event = [this](const rendezvous::JobEvent& event) {
      if (event.type == rendezvous::JobEvent::Type::kVerdict) {
        saved_ = event.verdict.state == job::JobState::kCancelled &&
                 rendezvous::EndedWell(event.verdict, job_.success.roles);
      }
      display_->OnEvent(event);
    };
    if (!quiet_) {  // a quiet run receives no lines
      observer.on_log = [this](const rendezvous::LogKey& key, int64_t offset,
                               std::string_view bytes) { logs_.AddBytes(key, offset, bytes); };
    }
    observer.on_note = [this](const std::string& text) { display_->OnNote(text); };
    observer.on_failed = [this](Code code) { failed_by_ = code; };
    observer.on_end = [this](const controller::JobRecord& record) {
      record_ = record;
      // The displayed duration excludes suspensions.
      if (record_.started != WallTime{})
        record_.started +=
            std::chrono::duration_cast<WallTime::duration>(jobs_->TimeSuspended(record.id));
      ended_ = RealClock::Get()->Now();
      loop_.Stop();
    };
    return observer;
  }

  bool CatchUp() { return id_.empty() || logs_.CatchUp(); }

  // Waits for the reader of the last lines of an ended job. A signal, including the one that
  // stopped the job, ends the wait.
  void WaitFor(const std::function<bool()>& done) {
    const auto enough = [this] {
      return left_ || (signals_ > 0 && RealClock::Get()->Now() - ended_ >= kLastLines);
    };
    while (!done() && !enough()) loop_.RunUntil(enough, kOutputPause);
  }

  void OnSignal(int signal) {
    left_ = ended_ != TimePoint{};
    if (run_ == nullptr) return;
    ++signals_;
    if (signals_ == 1) stopped_by_ = NameOfSignal(signal);
    display_->OnStopping(signals_ == 1 ? kStopping : kStoppingNow);
    if (signals_ == 1) {
      run_->Drain("stopped by " + stopped_by_);
    } else {
      run_->Kill("stopped by " + stopped_by_);
      // If the engine does not answer, the cleanup is left to a later command.
      if (signals_ == 2) {
        loop_.After(kImpatientTimeout, [this] {
          if (run_ != nullptr) run_->Kill("stopped by " + stopped_by_);
        });
      }
    }
  }

  void ReportWriteError() {
    const Status status = out_.status();
    if (status.ok() || std::exchange(told_unwritten_, true)) return;
    errors_.Write("shoal: " + status.message() + "; `shoal logs` has what the tasks print\n");
  }

  void Tick() {
    loop_.After(kTick, [this] {
      if (ended_ == TimePoint{}) display_->OnTick();
      ReportWriteError();
      Tick();
    });
  }

  controller::Jobs* const jobs_;
  const job::Job job_;
  const controller::NewRun new_run_;
  const bool quiet_;
  net::Loop loop_;
  AsyncWriter out_{STDOUT_FILENO};
  AsyncWriter errors_{STDERR_FILENO};
  const std::unique_ptr<Display> display_;
  LogPacer logs_;
  std::string id_;  // once there is a job
  std::unique_ptr<controller::JobRun> run_;
  controller::JobRecord record_;
  TimePoint ended_{};  // the job
  bool left_ = false;  // a signal arrived while the last lines waited for a reader
  int signals_ = 0;
  bool told_unwritten_ = false;
  std::string stopped_by_;
  bool saved_ = false;
  Code failed_by_ = Code::kOk;
};

// 130 also for a job that succeeded before the user's signal reached it, so that scripts stop.
// `failed_by`: from Observer::on_failed.
int CodeOf(job::JobState state, bool stopped, Code failed_by) {
  const bool before_it_began =
      failed_by == Code::kUnavailable || failed_by == Code::kInvalidArgument;
  if (state == job::JobState::kFailed) return before_it_began ? ExitCodeOf(failed_by) : 1;
  return state == job::JobState::kSucceeded && !stopped ? 0 : 130;
}

Result<RunEnd> RunInForeground(const Context& context, controller::Jobs* jobs, const job::Job& job,
                               const std::string& id, const RunOptions& options) {
  DiscardIfStdoutIsClosed();
  ForegroundRun foreground(context, jobs, job, options);
  const Result<controller::JobRecord> ended = foreground.RunToEnd(id);
  if (!ended.ok()) return ended.status();
  const Status shown = foreground.written();
  const std::string sentence =
      EndSentence(*ended, job, foreground.stopped_by(), foreground.saved());
  const bool good = ended->state == job::JobState::kSucceeded || foreground.saved();
  const Result<controller::JobView> view = jobs->Find(ended->id);
  const bool here = view.ok() && !view->directory.empty();  // and not a server's
  std::string version;
  if (here && options.registers_model && ended->state == job::JobState::kSucceeded)
    version = RegisterModel(job, *ended);
  const bool is_result = good && shown.ok();
  if (!is_result || (!context.json && !options.quiet))
    foreground.PrintSentence(sentence, is_result);
  if (!version.empty() && context.stderr_is_terminal && !context.json && !options.quiet)
    PrintNote("the registry keeps the model as " + version + " (docs/serving.md)");
  const int code = CodeOf(ended->state, !foreground.stopped_by().empty(), foreground.failed_by());
  const Status said = foreground.written();
  return RunEnd{code == 0 && !said.ok() ? ExitCodeOf(said.code()) : code, *ended};
}

int CodeOfRun(const Result<RunEnd>& end) {
  return end.ok() ? end->exit_code : PrintError(end.status());
}

}  // namespace

Result<RunEnd> RunJobToEnd(const Context& context, job::Job job, const RunOptions& options) {
  std::error_code error;
  const std::string here = std::filesystem::current_path(error).string();
  job::ResolvePaths({}, here, here, &job);
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  return RunInForeground(context, jobs.get(), job, "", options);
}

int RunJob(const Context& context, job::Job job, const RunOptions& options) {
  return CodeOfRun(RunJobToEnd(context, std::move(job), options));
}

int ResumeJob(const Context& context, const std::string& prefix, const RunOptions& options) {
  const auto jobs = OpenJobs(context);
  if (!jobs.ok()) return PrintError(jobs.status());
  const Result<controller::JobView> found = (*jobs)->Find(prefix);
  if (!found.ok()) return PrintError(found.status());
  const controller::JobRecord& record = found->record;
  const Result<job::Job> job = job::FromJson(record.job);
  if (!job.ok()) return PrintError(job.status().With(record.id));
  // Checked first, so that it stays suspended: a job that failed because of an unmounted disk could
  // not be resumed. The files of a server's job are not here.
  if (record.state == job::JobState::kSuspended && !found->directory.empty()) {
    const Status readable = learn::CheckDataFiles(*job, WhereDataIs(record.engine, *job));
    if (!readable.ok()) return PrintError(InvalidArgument(readable.message()).With(record.id));
  }
  return CodeOfRun(
      RunInForeground(context, jobs->get(), *job, record.id, {options.quiet, record.engine}));
}

}  // namespace shoal::cli
