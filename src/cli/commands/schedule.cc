// `shoal schedule FILE`: adds, lists, runs and removes recurring runs of jobs on a cluster.
#include "cli/commands/schedule.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "api/client/login_file.h"
#include "api/client/remote_schedules.h"
#include "base/file.h"
#include "cli/commands/commands.h"
#include "cli/jobs/engines.h"
#include "cli/jobs/job_text.h"
#include "cli/jobs/load_job.h"
#include "cli/terminal/report.h"
#include "import/import.h"
#include "job/file/parse.h"
#include "job/file/write_yaml.h"

namespace shoal::cli {
namespace {

namespace fs = std::filesystem;

struct ScheduleArguments {
  std::string file;
  std::vector<std::string> set;
  std::string name;
  std::string engine;
  bool list = false;
  std::string remove;
  bool now = false;
  std::string run;
  std::string team;
  std::string directory;
  bool engine_given = false;
};

using Server = std::unique_ptr<api::RemoteSchedules>;

// The schedules of the server that is chosen; null without one.
Result<Server> OpenServer(const Context& context, const ScheduleArguments& arguments) {
  TRY_ASSIGN(const std::optional<api::Login> login, api::ChooseServer(context.server));
  if (!login) return Server();
  return api::MakeRemoteSchedules(*login, arguments.team,
                                  [](const std::string& sentence) { PrintNote(sentence); });
}

// Hands the text of the file to the server, which makes the job of each run from it.
Status ScheduleOnServer(const Context& context, const ScheduleArguments& arguments,
                        api::RemoteSchedules* server) {
  controller::NewFile file;
  file.set = arguments.set;
  if (!arguments.name.empty()) file.set.push_back("name=" + arguments.name);
  TRY_ASSIGN(file.text, job::ReadJobFile(arguments.file));
  TRY_ASSIGN(file.work_dir, FolderOfFile(arguments.file, arguments.directory));
  if (!importer::ListJobs(file.text).empty()) {  // of another system, such as a CronJob
    TRY_ASSIGN(const LoadedJob loaded, LoadJob(arguments.file, file.set, arguments.directory));
    PrintUnusedFields(loaded, arguments.engine);
    file.text = job::WriteYaml(loaded.job());
    file.set.clear();
  }
  job::FieldLocations places;
  TRY_ASSIGN(job::Job job, job::ParseJob(file.text, arguments.file, file.set, &places));
  job::ResolvePaths(places, file.work_dir, file.work_dir, &job);
  TRY(CheckJobForServer(job, places));
  if (job.schedule.cron.empty())
    return InvalidArgument(arguments.file +
                           " has no schedule; write schedule: {cron: 30 2 * * *}, or add --set "
                           "'schedule.cron=30 2 * * *'");
  file.files = {job.files};
  if (arguments.engine_given) file.engine = arguments.engine;
  TRY_ASSIGN(const api::RemoteSchedule put, server->PutFile(job.name, file));
  if (context.json)
    return PrintOut(ToText(json::object{{"name", job.name},
                                        {"new", put.fresh},
                                        {"cron", job.schedule.cron},
                                        {"next", put.next}}) +
                    "\n");
  return PrintOut(job.name + (put.fresh ? " is scheduled: " : " is rescheduled: ") +
                  job.schedule.cron + ", " + job.schedule.time_zone +
                  (job.schedule.enabled ? ", next at " + put.next : ", but not enabled") + "\n");
}

std::string WorkingDirectory() {
  std::error_code error;
  return fs::current_path(error).string();
}

fs::path StoredJobPath(const controller::StateHome& home, const std::string& name) {
  return home.root() / "schedules" / (name + ".yaml");
}

// Writes the file that each run reads; private, since it may contain secrets.
Status StoreJobFile(const fs::path& path, job::Job job) {
  job.schedule = {};  // the scheduler has it now
  TRY(MakeDirectories(path.parent_path(), 0700));
  return WriteFileAtomically(
      path, "# Kept by `shoal schedule` for the runs of this job.\n" + job::WriteYaml(job), 0600);
}

// Restores the previous file.
void RestoreJobFile(const fs::path& path, const Result<std::string>& before) {
  std::error_code error;
  if (before.ok()) {
    (void)WriteFileAtomically(path, *before, 0600);
  } else {
    fs::remove(path, error);
  }
}

// Validates the job, stores its file for the runs and registers the schedule; restores the previous
// file if that fails.
Status ScheduleFile(const Context& context, const ScheduleArguments& arguments) {
  std::vector<std::string> overrides = arguments.set;
  if (!arguments.name.empty()) overrides.push_back("name=" + arguments.name);
  TRY_ASSIGN(const LoadedJob loaded, LoadJob(arguments.file, overrides));
  const job::Job& job = loaded.job();
  TRY(CheckJob(job, learn::DataLocation::kRemote, loaded.imported.places));
  PrintUnusedFields(loaded, arguments.engine);
  if (job.schedule.cron.empty())
    return InvalidArgument(arguments.file +
                           " has no schedule; write schedule: {cron: 30 2 * * *}, or add --set "
                           "'schedule.cron=30 2 * * *'");
  if (job.schedule.concurrency == job::Concurrency::kReplace ||
      job.schedule.missed == job::MissedRuns::kSkip || job.triggers != job::Triggers())
    return InvalidArgument(arguments.file +
                           ": concurrency: replace, missed: skip, after, matrix and sweep are for "
                           "the schedules of a server; name one with --server, or leave them out");
  const auto schedules = MakeSchedules(arguments.engine, job.marathon);
  if (!schedules.ok())
    return NoSchedules(arguments.engine, arguments.file, job.schedule, schedules.status());
  TRY_ASSIGN(const fs::path root, controller::FindStateHome());
  const controller::StateHome home(fs::absolute(root));
  const fs::path kept = StoredJobPath(home, job.name);
  const Result<std::string> before = ReadFile(kept, job::kMaxFileBytes);
  TRY(StoreJobFile(kept, job));
  const Result<bool> fresh = (*schedules)->Put(job, ScheduledRunOf(job, home, loaded.folder));
  if (!fresh.ok()) {
    RestoreJobFile(kept, before);
    return fresh.status();
  }
  const std::string text = job.schedule.cron + ", " + job.schedule.time_zone;
  return PrintOut(
      context.json
          ? ToText(json::object{{"name", job.name}, {"new", *fresh}, {"cron", job.schedule.cron}}) +
                "\n"
          : job.name + (*fresh ? " is scheduled: " : " is rescheduled: ") + text +
                (job.schedule.enabled ? "" : ", but not enabled") + "\n");
}

json::object ToJson(const engine::ScheduleStatus& one) {
  return {{"name", one.name},
          {"cron", one.cron},
          {"time_zone", one.time_zone},
          {"enabled", one.enabled},
          {"next", one.next},
          {"active", json::array(one.active.begin(), one.active.end())},
          {"successes", one.successes},
          {"failures", one.failures},
          {"last_success", one.last_success},
          {"last_failure", one.last_failure}};
}

Status List(const Context& context, engine::Schedules* schedules) {
  TRY_ASSIGN(const std::vector<engine::ScheduleStatus> list, schedules->List());
  if (context.json) {
    std::string out;
    for (const engine::ScheduleStatus& one : list) out += ToText(ToJson(one)) + "\n";
    return PrintOut(out);
  }
  if (list.empty()) {
    PrintNote("no job is scheduled; `shoal schedule FILE` schedules one");
    return Status::Ok();
  }
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "TIMES", "ZONE", "NEXT", "RUNS", "GOOD", "FAILED", "LAST GOOD", "LAST FAILED"}};
  for (const engine::ScheduleStatus& one : list) {
    rows.push_back({one.name, one.cron.empty() ? "none" : one.cron, one.time_zone,
                    one.enabled ? one.next : "not enabled", std::to_string(one.active.size()),
                    std::to_string(one.successes), std::to_string(one.failures), one.last_success,
                    one.last_failure});
  }
  return PrintOut(Table(rows));
}

Status Remove(const ScheduleArguments& arguments, engine::Schedules* schedules) {
  TRY(schedules->Remove(arguments.remove, arguments.now));
  TRY_ASSIGN(const fs::path root, controller::FindStateHome());
  std::error_code error;
  fs::remove(StoredJobPath(controller::StateHome(root), arguments.remove), error);
  return PrintOut(arguments.remove + " is no longer scheduled\n");
}

Status RunNow(const Context& context, const ScheduleArguments& arguments,
              engine::Schedules* schedules) {
  TRY_ASSIGN(const std::string run, schedules->RunNow(arguments.run));
  return PrintOut(context.json ? ToText(json::object{{"name", arguments.run}, {"run", run}}) + "\n"
                               : arguments.run + " started as run " + run +
                                     "; `shoal jobs` shows it after its start\n");
}

Status Schedule(const Context& context, const ScheduleArguments& arguments) {
  const int wishes = (arguments.file.empty() ? 0 : 1) + (arguments.list ? 1 : 0) +
                     (arguments.remove.empty() ? 0 : 1) + (arguments.run.empty() ? 0 : 1);
  if (wishes != 1)
    return InvalidArgument("got " + std::to_string(wishes) +
                           " of FILE, --list, --remove and --run, expected exactly one; see `shoal "
                           "schedule --help`");
  if (arguments.now && arguments.remove.empty())
    return InvalidArgument("got --now without --remove, expected both");
  if (!arguments.list) DiscardIfStdoutIsClosed();
  TRY_ASSIGN(const Server server, OpenServer(context, arguments));
  if (server != nullptr) {
    if (!arguments.file.empty()) return ScheduleOnServer(context, arguments, server.get());
    if (arguments.list) return List(context, server.get());
    if (!arguments.run.empty()) return RunNow(context, arguments, server.get());
    TRY(server->Remove(arguments.remove, arguments.now));
    return PrintOut(arguments.remove + " is no longer scheduled\n");
  }
  if (!arguments.team.empty())
    return InvalidArgument("got --team without a server, expected one; name it with --server");
  if (!arguments.file.empty()) return ScheduleFile(context, arguments);
  TRY_ASSIGN(const auto schedules, MakeSchedules(arguments.engine, {}));
  if (arguments.list) return List(context, schedules.get());
  if (!arguments.remove.empty()) return Remove(arguments, schedules.get());
  return RunNow(context, arguments, schedules.get());
}

constexpr const char* kScheduleFooter = R"help(Examples:
  shoal schedule nightly.yaml                      with a server: it runs the job at its times, on any engine
  shoal schedule nightly.yaml --set schedule.concurrency=replace --team research
  shoal schedule nightly.yaml --engine marathon    add or replace; section 'schedule' sets the times
  shoal schedule job.yaml --engine marathon --set 'schedule.cron=30 2 * * 1-5'
  shoal plan nightly.yaml --engine marathon        print the request, without secrets
  shoal schedule --list --engine marathon
  shoal schedule --run nightly --engine marathon
  shoal schedule --remove nightly --engine marathon

A server (--server, `shoal login`) runs scheduled jobs itself (docs/triggers.md). Without one, at each
scheduled time the cluster's scheduler (Metronome, beside Marathon) runs `shoal run` with a
copy of the job taken now. `shoal jobs`, `shoal logs` and the other commands show these runs like
all others. Environment: SHOAL_METRONOME_URL; SHOAL_MARATHON_URL and its credentials as for `shoal
run`.)help";

}  // namespace

engine::ScheduledRun ScheduledRunOf(const job::Job& job, const controller::StateHome& home,
                                    const std::string& folder) {
  return {StoredJobPath(home, job.name).string(), home.root().string(), folder};
}

Status NoSchedules(const std::string& engine, const std::string& file,
                   const job::Schedule& schedule, const Status& why) {
  if (why.code() != Code::kUnimplemented) return why;
  std::error_code error;
  std::string line = schedule.cron + " cd '" + WorkingDirectory() + "' && '" +
                     fs::read_symlink("/proc/self/exe", error).string() +
                     "' run --quiet --engine " + engine + " '" + file + "'";
  for (size_t at = line.find('%'); at != std::string::npos; at = line.find('%', at + 2))
    line.insert(at, "\\");  // cron's end of a line
  return Unimplemented(
      why.message() + "; add this line with crontab -e (it uses the machine's time zone)\n" + line);
}

void AddSchedule(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<ScheduleArguments>();
  CLI::App* sub = app.add_subcommand("schedule", "Run a job at recurring times");
  sub->add_option("FILE", arguments->file, "Job file with a section 'schedule'");
  sub->add_option("--set", arguments->set, "Override a field of the file: PATH=VALUE (repeatable)")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  sub->add_option("--name", arguments->name, "Name of the job")->type_name("NAME");
  sub->add_flag("--list", arguments->list, "List the scheduled jobs");
  sub->add_option("--remove", arguments->remove, "Remove the schedule of a job")->type_name("NAME");
  sub->add_flag("--now", arguments->now, "With --remove: active runs save and end");
  sub->add_option("--run", arguments->run, "Start a run of a scheduled job now")->type_name("NAME");
  sub->add_option("--team", arguments->team, "With a server: team of the job [your only team]")
      ->type_name("TEAM");
  AddDirectoryOption(sub, &arguments->directory);
  AddEngineOption(sub, &arguments->engine);
  sub->footer(kScheduleFooter);
  sub->callback([arguments, chosen, engine = sub->get_option("--engine")] {
    arguments->engine_given = engine->count() > 0;
    *chosen = [arguments](const Context& context) {
      const Status done = Schedule(context, *arguments);
      return done.ok() ? 0 : PrintError(done);
    };
  });
}

}  // namespace shoal::cli
