// `shoal logs JOB [TASK]`: prints and follows the output of tasks.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "base/output_file.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "cli/jobs/open_jobs.h"
#include "cli/jobs/time_argument.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stop_signals.h"
#include "controller/files/log_lines.h"
#include "controller/files/log_store.h"
#include "net/event_loop.h"

namespace shoal::cli {
namespace {

using controller::LineFilter;
using controller::LineScanner;
using controller::LogInfo;
using controller::LogKey;
using controller::LogLine;
using controller::LogSelection;

struct LogsArguments {
  std::string job;
  std::string task;
  std::string role;
  int index = -1;  // all
  bool follow = false;
  int lines = -1;   // all
  int attempt = 0;  // 1-based; 0: the latest
  std::string grep;
  bool ignore_case = false;
  std::string since;
  std::string until;
  bool timestamps = false;
  bool all_jobs = false;
  std::string team;
};

constexpr size_t kPiece = size_t{256} << 10;

// Prints the output of tasks: the bytes of a single task unchanged, of several tasks line by line
// with the task's name; as JSON one object per line.
class Printer {
 public:
  Printer(bool json, bool single) : json_(json), single_(single) {}
  // False after the end of the reader or a write error.
  bool Bytes(std::string_view bytes) { return printed_.Write(bytes); }
  // `timed`: with the time, "-" where it is not known.
  // `job`: of a line among those of other jobs; otherwise empty.
  bool Line(const LogKey& key, const LogLine& line, bool timed, std::string_view job = {}) {
    const std::string text = WithoutFill(std::string(line.text));
    if (json_) {
      json::object object;
      if (!job.empty()) object["job"] = job;
      object["role"] = key.role;
      object["index"] = key.index;
      object["attempt"] = key.attempt;
      if (timed) object["time"] = line.time ? json::value(FormatWall(*line.time)) : nullptr;
      object["text"] = ValidUtf8(text);
      out_ += ToText(object) + "\n";
      return out_.size() < kBuffer || Flush();
    }
    const std::string time = !timed ? "" : (line.time ? FormatWall(*line.time) : "-") + " ";
    const std::string of_job = job.empty() ? "" : std::string(job) + " ";
    const std::string name = single_ ? "" : fmt::format("{}-{} | ", key.role, key.index);
    out_ += time + of_job + name + text + "\n";
    return out_.size() < kBuffer || Flush();
  }
  // False as above. Before it, lines may be kept back.
  bool Flush() {
    const bool more = printed_.Write(out_);
    out_.clear();
    return more;
  }
  Status status() const { return printed_.status(); }

 private:
  // A line in place of lost ones is padded to their length (rendezvous::GapLine).
  static std::string WithoutFill(std::string line) {
    if (line.starts_with("[shoal: ")) line.resize(line.find_last_not_of(' ') + 1);
    return line;
  }
  static constexpr size_t kBuffer = size_t{64} << 10;
  const bool json_;
  const bool single_;
  std::string out_;
  OutputStream printed_{STDOUT_FILENO};
};

// The selected lines of the logs of one job.
class Reader {
 public:
  Reader(controller::Jobs* jobs, std::string id, LineFilter filter, bool timestamps,
         Printer* printer, bool whole)
      : jobs_(jobs),
        id_(std::move(id)),
        filter_(std::move(filter)),
        timestamps_(timestamps),
        printer_(printer),
        whole_(whole) {}

  // Where the output of a log begins: with the last `lines` selected lines, or -1 with the first
  // one.
  Result<int64_t> Begin(const LogKey& key, int lines) {
    int64_t begin = 0;
    if (filter_.since) {
      TRY_ASSIGN(begin, controller::OffsetSince(TimesOf(key), *filter_.since));
    }
    if (lines < 0) return begin;
    if (!filter_.any()) return jobs_->TailOffset(id_, key, lines);
    std::deque<int64_t> last;
    LineScanner scanner(filter_, false, TimesOf(key));
    const auto found = [&](const LogLine& line) {
      last.push_back(line.offset);
      if (last.size() > static_cast<size_t>(lines)) last.pop_front();
      return true;
    };
    int64_t end = begin;
    TRY(Scan(key, &end, [&](int64_t offset, std::string_view bytes) {
      return scanner.Add(offset, bytes, found);
    }));
    TRY(scanner.Finish(found).status());
    return last.empty() ? end : last.front();
  }

  // Prints one log from an offset to its present end.
  Status Print(const LogKey& key, int64_t from) {
    return Scan(key, &from,
                [&](int64_t offset, std::string_view bytes) { return Add(key, offset, bytes); });
  }

  // Prints the selected lines of these bytes. False after the end of the reader of the output.
  Result<bool> Add(const LogKey& key, int64_t offset, std::string_view bytes) {
    if (whole_) return printer_->Bytes(bytes);
    auto found = scanners_.find(key);
    if (found == scanners_.end())
      found = scanners_.try_emplace(key, filter_, timestamps_, TimesOf(key)).first;
    TRY_ASSIGN(const bool more, found->second.Add(offset, bytes, OnLine(key)));
    return printer_->Flush() && more;
  }

  // Prints unfinished last lines; returns whether everything was written.
  Status Finish() {
    for (auto& [key, scanner] : scanners_) TRY(scanner.Finish(OnLine(key)).status());
    printer_->Flush();
    return printer_->status();
  }

 private:
  LineScanner::TimesFrom TimesOf(const LogKey& key) const {
    return [this, key](int64_t from) { return jobs_->ReadLogTimes(id_, key, from); };
  }
  LineScanner::OnLine OnLine(const LogKey& key) {
    return [this, key](const LogLine& line) { return printer_->Line(key, line, timestamps_); };
  }
  template <typename OnPiece>
  Status Scan(const LogKey& key, int64_t* offset, OnPiece on_piece) {
    while (true) {
      TRY_ASSIGN(const std::string bytes, jobs_->ReadLog(id_, key, *offset, kPiece));
      if (bytes.empty()) return Status::Ok();
      TRY_ASSIGN(const bool more, on_piece(*offset, bytes));
      if (!more) return Status::Ok();
      *offset += static_cast<int64_t>(bytes.size());
    }
  }

  controller::Jobs* const jobs_;
  const std::string id_;
  const LineFilter filter_;
  const bool timestamps_;
  Printer* const printer_;
  const bool whole_;  // bytes instead of lines
  std::map<LogKey, LineScanner> scanners_;
};

// Follows until the job has ended, `until` has come, or Ctrl-C.
Status FollowLogs(controller::Jobs* jobs, const std::string& id, const LogSelection& selection,
                  std::map<LogKey, int64_t> from, std::optional<WallTime> until, Reader* reader) {
  net::Loop loop;
  for (const int signal : WithoutIgnored({SIGINT, SIGTERM, SIGHUP}))
    loop.WatchSignal(signal, [&loop] { loop.Stop(); });
  if (until) {
    const Duration left = *until - RealClock::Get()->Wall();
    loop.After(std::max(left, Duration(0)), [&loop] { loop.Stop(); });
  }
  Status ended;
  TRY_ASSIGN(const auto following,
             jobs->FollowLogs(
                 &loop, id, selection, std::move(from),
                 [&](const LogKey& key, int64_t offset, std::string_view bytes) {
                   const Result<bool> more = reader->Add(key, offset, bytes);
                   if (!more.ok()) ended = more.status();
                   if (!more.ok() || !*more) loop.Stop();
                 },
                 [&](const Status& status) {
                   ended = status;
                   loop.Stop();
                 }));
  loop.Run();
  TRY(reader->Finish());
  return ended;
}

Result<LogSelection> SelectionOf(const LogsArguments& arguments) {
  LogSelection selection;
  if (!arguments.task.empty() && (!arguments.role.empty() || arguments.index >= 0))
    return InvalidArgument("got the task " + arguments.task +
                           " and --role or --index; name tasks in one way");
  if (!arguments.task.empty()) {
    TRY_ASSIGN(selection, controller::ParseLogSelection(arguments.task));
  }
  if (arguments.role.empty() && arguments.index >= 0)
    return InvalidArgument("--index counts the tasks of a role; add --role ROLE");
  if (!arguments.role.empty()) selection.role = arguments.role;
  if (arguments.index >= 0) selection.index = arguments.index;
  if (arguments.attempt > 0) selection.attempt = arguments.attempt - 1;
  return selection;
}

Result<LineFilter> FilterOf(const LogsArguments& arguments) {
  LineFilter filter;
  if (!arguments.grep.empty()) {
    TRY_ASSIGN(controller::LinePattern pattern,
               controller::LinePattern::Compile(arguments.grep, arguments.ignore_case));
    filter.grep = std::make_shared<const controller::LinePattern>(std::move(pattern));
  }
  if (arguments.ignore_case && arguments.grep.empty())
    return InvalidArgument("--ignore-case says how --grep compares; add --grep RE");
  const WallTime now = RealClock::Get()->Wall();
  if (!arguments.since.empty()) {
    TRY_ASSIGN(filter.since, ParseTimeArgument("--since", arguments.since, now));
  }
  if (!arguments.until.empty()) {
    TRY_ASSIGN(filter.until, ParseTimeArgument("--until", arguments.until, now));
  }
  if (filter.since && filter.until && *filter.since >= *filter.until)
    return InvalidArgument("--since " + arguments.since + " is not before --until " +
                           arguments.until);
  return filter;
}

// Lines of all jobs.
Status SearchLogs(const Context& context, const LogsArguments& arguments) {
  if (arguments.follow)
    return InvalidArgument("--all-jobs does not go with --follow; name a job to follow it");
  TRY_ASSIGN(const LogSelection selection, SelectionOf(arguments));
  TRY_ASSIGN(const LineFilter filter, FilterOf(arguments));
  if (!filter.any())
    return InvalidArgument(
        "--all-jobs would print every line of every job; add --grep, --since "
        "or --until");
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  controller::LogSearchRequest request;
  request.team = arguments.team;
  request.selection = selection;
  request.grep = arguments.grep;
  request.ignore_case = arguments.ignore_case;
  request.since = filter.since;
  request.until = filter.until;
  request.times = arguments.timestamps;
  if (arguments.lines >= 0) request.limit = arguments.lines;
  Printer printer(context.json, false);
  TRY(jobs->SearchLogs(request, [&](const controller::FoundLine& found) {
    return printer.Line(found.key, found.line, arguments.timestamps, found.job);
  }));
  printer.Flush();
  return printer.status();
}

Status PrintLogs(const Context& context, const LogsArguments& arguments) {
  if (arguments.all_jobs && !arguments.job.empty())
    return InvalidArgument("got the job " + arguments.job + " and --all-jobs; leave one out");
  if (arguments.all_jobs) return SearchLogs(context, arguments);
  if (arguments.job.empty())
    return InvalidArgument("expected the name of a job, or --all-jobs; `shoal jobs` lists them");
  if (!arguments.team.empty())
    return InvalidArgument("--team selects among all jobs; add --all-jobs");
  TRY_ASSIGN(const LogSelection selection, SelectionOf(arguments));
  TRY_ASSIGN(const LineFilter filter, FilterOf(arguments));
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const controller::JobView found, jobs->Find(arguments.job));
  const std::string& id = found.record.id;
  const bool ended = job::IsFinal(found.record.state);
  const Result<std::vector<LogInfo>> chosen = jobs->SelectLogs(id, selection);
  if (!chosen.ok() && (ended || !arguments.follow)) return chosen.status();
  const bool single = selection.index.has_value();
  Printer printer(context.json, single);
  const bool whole = single && !context.json && !filter.any() && !arguments.timestamps;
  Reader reader(jobs.get(), id, filter, arguments.timestamps, &printer, whole);
  std::map<LogKey, int64_t> from;
  for (const LogInfo& log : chosen.ok() ? *chosen : std::vector<LogInfo>{}) {
    TRY_ASSIGN(from[log.key], reader.Begin(log.key, arguments.lines));
  }
  if (arguments.follow && !ended)
    return FollowLogs(jobs.get(), id, selection, std::move(from), filter.until, &reader);
  for (const auto& [key, offset] : from) {
    TRY(reader.Print(key, offset));
  }
  return reader.Finish();
}

constexpr const char* kLogsFooter = R"help(Examples:
  shoal logs mnist-7f3a9c                 all tasks, each line prefixed with the task's name
  shoal logs mnist worker-0               one task, byte for byte
  shoal logs -f -n 20 mnist worker        the workers' last 20 lines, then new output
  shoal logs mnist worker-1 --attempt 1   the first attempt of a restarted task
  shoal logs mnist --grep 'loss=nan|Error' --timestamps
                                          lines with either word, and when they were printed
  shoal logs mnist --role worker --index 3 --since 2h --until 10m
                                          printed between two hours and ten minutes ago
  shoal logs --all-jobs --grep 'CUDA error' --since 24h -n 50
                                          at most 50 lines of the jobs of the last day

RE is a regular expression in RE2's syntax, searched in each line. Times are of this machine's time
zone, or as long ago as 90s, 10m or 2h. With --grep, --since or --until, -n counts selected lines.
Logs are kept after the tasks and the job have ended. -f returns when the job ends.)help";

}  // namespace

void AddLogs(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<LogsArguments>();
  CLI::App* sub = app.add_subcommand("logs", "Print the output of a job's tasks");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix");
  sub->add_option("TASK", arguments->task, "Task (worker-0) or role (worker) [all]");
  sub->add_option("--role", arguments->role, "Only tasks of this role")->type_name("ROLE");
  sub->add_option("--index", arguments->index, "Only the task with this number")
      ->check(CLI::Range(0, 1'000'000).description(""))
      ->type_name("I");
  sub->add_option("--grep", arguments->grep, "Only lines that the regular expression matches")
      ->type_name("RE");
  sub->add_flag("--ignore-case", arguments->ignore_case, "Compare letters without their case");
  sub->add_option("--since", arguments->since, "Only lines printed at or after this time")
      ->type_name("TIME");
  sub->add_option("--until", arguments->until, "Only lines printed before this time")
      ->type_name("TIME");
  sub->add_flag("--all-jobs", arguments->all_jobs, "Lines of all jobs, newest job first");
  sub->add_option("--team", arguments->team, "With --all-jobs: only jobs of this team")
      ->type_name("TEAM");
  sub->add_flag("--timestamps", arguments->timestamps, "Print each line's time, in UTC");
  sub->add_flag("-f,--follow", arguments->follow, "Follow new output until the job ends");
  sub->add_option("-n,--lines", arguments->lines, "Start with the last N lines of each task")
      ->check(CLI::Range(0, 1'000'000'000).description(""))
      ->type_name("N");
  sub->add_option("--attempt", arguments->attempt, "Attempt number K instead of the latest")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("K");
  sub->footer(kLogsFooter);
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      const Status status = PrintLogs(context, *arguments);
      return status.ok() ? 0 : PrintError(status);
    };
  });
}

}  // namespace shoal::cli
