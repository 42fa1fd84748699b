// `shoal logs JOB [TASK]`: prints and follows the output of tasks.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <map>
#include <memory>

#include "base/output_file.h"
#include "base/utf8.h"
#include "cli/commands/commands.h"
#include "cli/jobs/open_jobs.h"
#include "cli/terminal/line_splitter.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/report.h"
#include "cli/terminal/stop_signals.h"
#include "controller/files/log_store.h"
#include "net/event_loop.h"

namespace shoal::cli {
namespace {

using controller::LogInfo;
using controller::LogKey;
using controller::LogSelection;

struct LogsArguments {
  std::string job;
  std::string task;
  bool follow = false;
  int lines = -1;   // all
  int attempt = 0;  // 1-based; 0: the latest
};

constexpr size_t kPiece = size_t{256} << 10;

// Prints the output of tasks: the bytes of a single task unchanged, of several tasks line by line
// with the task's name; as JSON one object per line.
class Printer {
 public:
  Printer(bool json, bool single)
      : json_(json), single_(single), splitter_([this](const LogKey& key, const std::string& line) {
          out_ += json_ ? ToText(json::object{{"role", key.role},
                                              {"index", key.index},
                                              {"attempt", key.attempt},
                                              {"text", ValidUtf8(line)}})
                        : fmt::format("{}-{} | {}", key.role, key.index, line);
          out_ += '\n';
        }) {}
  // False after the end of the reader or a write error.
  bool Add(const LogKey& key, std::string_view bytes) {
    if (single_ && !json_) return printed_.Write(bytes);
    splitter_.Add(key, bytes);
    return Flush();
  }
  // Prints the rest; returns whether everything was written.
  Status Finish() {
    splitter_.Finish();
    Flush();
    return printed_.status();
  }

 private:
  bool Flush() {
    const bool more = printed_.Write(out_);
    out_.clear();
    return more;
  }
  const bool json_;
  const bool single_;
  LineSplitter splitter_;
  std::string out_;
  OutputStream printed_{STDOUT_FILENO};
};

Status PrintOnce(controller::Jobs* jobs, const std::string& id, const std::vector<LogInfo>& chosen,
                 const std::map<LogKey, int64_t>& from, Printer* printer) {
  for (const LogInfo& log : chosen) {
    int64_t offset = from.at(log.key);
    while (true) {
      TRY_ASSIGN(const std::string bytes, jobs->ReadLog(id, log.key, offset, kPiece));
      if (bytes.empty()) break;
      if (!printer->Add(log.key, bytes)) return printer->Finish();
      offset += static_cast<int64_t>(bytes.size());
    }
  }
  return printer->Finish();
}

// Follows until the job has ended or Ctrl-C.
Status FollowLogs(controller::Jobs* jobs, const std::string& id, const LogSelection& selection,
                  std::map<LogKey, int64_t> from, Printer* printer) {
  net::Loop loop;
  for (const int signal : WithoutIgnored({SIGINT, SIGTERM, SIGHUP}))
    loop.WatchSignal(signal, [&loop] { loop.Stop(); });
  Status ended;
  TRY_ASSIGN(const auto following, jobs->FollowLogs(
                                       &loop, id, selection, std::move(from),
                                       [&](const LogKey& key, int64_t, std::string_view bytes) {
                                         if (!printer->Add(key, bytes)) loop.Stop();
                                       },
                                       [&](const Status& status) {
                                         ended = status;
                                         loop.Stop();
                                       }));
  loop.Run();
  TRY(printer->Finish());
  return ended;
}

Status PrintLogs(const Context& context, const LogsArguments& arguments) {
  TRY_ASSIGN(const auto jobs, OpenJobs(context));
  TRY_ASSIGN(const controller::JobView found, jobs->Find(arguments.job));
  const std::string& id = found.record.id;
  LogSelection selection;
  if (!arguments.task.empty()) {
    TRY_ASSIGN(selection, controller::ParseLogSelection(arguments.task));
  }
  if (arguments.attempt > 0) selection.attempt = arguments.attempt - 1;
  const bool ended = job::IsFinal(found.record.state);
  Result<std::vector<LogInfo>> chosen = jobs->SelectLogs(id, selection);
  if (!chosen.ok() && (ended || !arguments.follow)) return chosen.status();
  std::map<LogKey, int64_t> from;
  for (const LogInfo& log : chosen.ok() ? *chosen : std::vector<LogInfo>{}) {
    int64_t& offset = from[log.key];
    if (arguments.lines >= 0) {
      TRY_ASSIGN(offset, jobs->TailOffset(id, log.key, arguments.lines));
    }
  }
  Printer printer(context.json, selection.index.has_value());
  if (arguments.follow && !ended)
    return FollowLogs(jobs.get(), id, selection, std::move(from), &printer);
  return PrintOnce(jobs.get(), id, *chosen, from, &printer);
}

constexpr const char* kLogsFooter = R"help(Examples:
  shoal logs mnist-7f3a9c                 all tasks, each line prefixed with the task's name
  shoal logs mnist worker-0               one task, byte for byte
  shoal logs -f -n 20 mnist worker        the workers' last 20 lines, then new output
  shoal logs mnist worker-1 --attempt 1   the first attempt of a restarted task

Logs are kept after the tasks and the job have ended. -f returns when the job ends.)help";

}  // namespace

void AddLogs(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<LogsArguments>();
  CLI::App* sub = app.add_subcommand("logs", "Print the output of a job's tasks");
  sub->add_option("JOB", arguments->job, "Name of the job, or an unambiguous prefix")->required();
  sub->add_option("TASK", arguments->task, "Task (worker-0) or role (worker) [all]");
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
