#include "rendezvous/coordinator/launcher_commands.h"

#include "framework/framework_environment.h"
#include "job/execution/job_dir.h"

namespace shoal::rendezvous {

json::object WelcomeFields(const CoordinatorCore& core, int task, bool lease,
                           const std::string& job_id) {
  json::array ports;
  for (const job::Port& port : core.role_of(task).ports) {
    ports.push_back({{"name", port.name}, {"plain", port.plain}});
  }
  return {{"role", core.role_of(task).name},
          {"index", core.tasks().index_of(task)},
          {"job", job_id},
          {"lease", lease},
          {"ports", std::move(ports)}};
}

namespace {

// What commands of a task call this program: its path, where the task has it at the same; empty if
// that is not known.
std::string ProgramFor(const JobLocation& location) {
  return location.no_shared_filesystem && !location.program.empty() ? kOwnProgram
                                                                    : location.program;
}

// Prestart steps that the program's processes run before they become it: stage files
// (launcher/stage_files.h), acquire GPUs, write files for mpirun (framework_services/mpi_launch.h).
void AddPrestartSteps(const JobLocation& location, const job::Job& job, const job::Role& role,
                      StartMessage* start) {
  const bool files = !job.files.empty();
  const bool mpi = job.framework == job::Framework::kMpi && role.name == "launcher";
  const int gpus = role.resources.gpu;
  const std::string program = ProgramFor(location);
  if (program.empty() || (!files && gpus == 0 && !mpi)) {
    start->work_dir = job.files;
    return;
  }
  std::vector<std::string> words = {program, "prepare"};
  if (files) words.emplace_back("--files");
  if (gpus > 0) words.insert(words.end(), {"--gpus", std::to_string(gpus)});
  if (mpi) words.emplace_back("--mpi");
  words.emplace_back("--");
  start->argv.insert(start->argv.begin(), words.begin(), words.end());
  if (!files || start->ready.command.empty()) return;
  words = {program, "prepare", "--files", "--if-there", "--"};
  start->ready.command.insert(start->ready.command.begin(), words.begin(), words.end());
}

}  // namespace

namespace {

// Output paths in no-shared-filesystem mode: below the task's own output directory, from which they
// are uploaded.
job::Job WithOwnOutputs(job::Job job) {
  for (auto& [name, directory] : job.outputs) directory = std::string(kOutputMark) + "/" + name;
  return job;
}

// Whether the role requests cluster devices by name (parts of GPUs, shared ones), which the
// cluster's runtime makes visible in the container.
bool HasDevicesOfCluster(const job::Job& job, const job::Role& role) {
  return std::ranges::any_of(job.kubernetes.resources, [&](const std::string& text) {
    const std::string of = text.substr(0, text.find('='));  // [ROLE:]DOMAIN/NAME
    const size_t colon = of.find(':');
    const bool mine = colon == std::string::npos || of.substr(0, colon) == role.name;
    return mine && of.find('/') != std::string::npos;
  });
}

}  // namespace

Result<StartMessage> MakeStartMessage(const CoordinatorCore& core,
                                      const framework::ClusterDescription& cluster, int task,
                                      int attempt, const JobLocation& location) {
  const job::Role& role = core.role_of(task);
  framework::TaskContext context;
  context.job_id = location.id;
  context.role = role.name;
  context.index = core.tasks().index_of(task);
  context.attempt = attempt;
  if (role.elastic()) context.initial_replicas = core.tasks().initial_members(task);
  if (!location.no_shared_filesystem)
    context.checkpoint_dir = job::JobDir(location.dir).checkpoints().string();
  auto env = location.no_shared_filesystem && !core.job().outputs.empty()
                 ? framework::RenderEnvironment(WithOwnOutputs(core.job()), cluster, context)
                 : framework::RenderEnvironment(core.job(), cluster, context);
  if (!env.ok()) return env.status().With("its environment cannot be made");
  const std::string program = ProgramFor(location);
  StartMessage start;
  start.attempt = attempt;
  start.argv = core.job().CommandOf(role);
  for (std::string& arg : start.argv) {
    if (arg == kOwnProgram && !program.empty()) arg = program;
  }
  // Programs read their part of the data by it: `$SHOAL_PROGRAM data read NAME`.
  if (!core.job().data.empty() && !program.empty()) (*env)["SHOAL_PROGRAM"] = program;
  // A task without GPUs sees none; one with GPUs gets their names when it starts.
  const bool given = location.no_shared_filesystem && HasDevicesOfCluster(core.job(), role);
  if (role.resources.gpu == 0 && !given) env->try_emplace("CUDA_VISIBLE_DEVICES", "");
  start.env.assign(env->begin(), env->end());
  if (role.processes > 1) {
    TRY_ASSIGN(const auto processes,
               framework::RenderProcesses(core.job(), cluster, context, *env));
    for (const framework::Environment& one : processes) {
      start.processes.emplace_back(one.begin(), one.end());
    }
  }
  start.ready = role.ready;
  start.port = core.PortOf(task, role.ready.port);
  for (std::string& arg : start.ready.command) {
    if (arg == kOwnProgram && !program.empty()) arg = program;
  }
  for (const job::LogRule& rule : role.on_log) start.on_log.push_back(rule.line);
  AddPrestartSteps(location, core.job(), role, &start);
  start.cpu = role.resources.cpu;
  start.memory_bytes = role.resources.memory_bytes;
  start.watch_ms = ActivitySampleInterval(core.job().limits.stall).count();
  start.grace_ms = core.job().limits.stop_grace.count();
  return start;
}

void SendLauncherCommand(const CoordinatorCore& core, const Action& action,
                         const std::string& job_id, Connection* connection) {
  switch (action.kind) {
    case Action::Kind::kWelcome:
      return connection->Send("welcome", WelcomeFields(core, action.task, action.lease, job_id));
    case Action::Kind::kWait:
      return connection->Send("wait", {{"text", action.text}});
    case Action::Kind::kRefuse:
      connection->Send("refuse", {{"text", action.text}, {"excluded", action.excluded}});
      return connection->Close(action.text);
    case Action::Kind::kDrain:
      return connection->Send("drain", {{"attempt", action.attempt},
                                        {"grace_ms", action.grace.count()},
                                        {"signal", action.signal},
                                        {"text", action.text}});
    case Action::Kind::kKill:
      return connection->Send(
          "kill",
          {{"attempt", action.attempt}, {"abandon", action.abandon}, {"text", action.text}});
    case Action::Kind::kInspect:
      return connection->Send("inspect", {{"attempt", action.attempt}});
    case Action::Kind::kAck:
      return connection->Send("ack", {{"attempt", action.attempt}});
    case Action::Kind::kRelease:
      return connection->Send("release", {});
    default:
      return;
  }
}

std::optional<Millis> ParseIdleTime(const json::object& message) {
  const int64_t still = GetIntOr(message, "still_ms", -1);
  return still < 0 ? std::nullopt : std::optional(Millis(still));
}

LauncherHeartbeat ParseHeartbeat(MemberId member, const json::object& message) {
  return {member, static_cast<int>(GetIntOr(message, "attempt", -1)), ParseIdleTime(message),
          GetBoolOr(message, "storing", false)};
}

Result<Event> ParseLauncherEvent(MemberId member, const std::string& type,
                                 const json::object& message) {
  if (type == "leased") {
    TRY_ASSIGN(LeasedMessage leased, LeasedFromJson(message));
    return Event(PortsLeased{member, std::move(leased.host), std::move(leased.ports)});
  }
  if (type != "stolen" && type != "ready" && type != "evidence")
    return InvalidArgument("this type of message is unknown");
  TRY_ASSIGN(const int64_t number, GetInt(message, "attempt"));
  const auto attempt = static_cast<int>(number);
  if (type == "ready") return Event(ProgramReady{member, attempt});
  if (type == "stolen")
    return Event(PortConflict{member, attempt, CleanText(GetStringOr(message, "text", ""), 300)});
  const json::value* body = message.if_contains("body");
  if (body == nullptr || !body->is_object()) return InvalidArgument("field 'body' is missing");
  return Event(StallDiagnostics{member, attempt, ParseIdleTime(message), body->get_object()});
}

Result<Event> ParseControllerEvent(const std::string& type, const json::object& message) {
  const std::string reason = CleanText(GetStringOr(message, "reason", ""), 500);
  if (type == "ack_verdict") return Event(VerdictAcknowledged{});
  if (type == "command") {
    const std::string mode = GetStringOr(message, "mode", "");
    if (mode == "drain") return Event(Command{StopMode::kDrain, reason});
    if (mode == "stop") return Event(Command{StopMode::kStop, reason});
    if (mode == "kill") return Event(Command{StopMode::kKill, reason});
    if (mode == "suspend") return Event(Suspend{reason});
    return InvalidArgument("field 'mode': expected drain, stop, kill or suspend");
  }
  if (type == "scale") {
    TRY_ASSIGN(const std::string role, GetString(message, "role"));
    TRY_ASSIGN(const int64_t replicas, GetInt(message, "replicas"));
    if (replicas < 0 || replicas > job::kMaxReplicas) {
      return InvalidArgument("field 'replicas' is out of its range");
    }
    return Event(Scale{CleanText(role, 100), static_cast<int>(replicas), reason});
  }
  if (type != "lost" && type != "refused") {
    return InvalidArgument("this type of message is unknown");
  }
  TRY_ASSIGN(const std::string role, GetString(message, "role"));
  const int index = static_cast<int>(GetIntOr(message, "index", -1));
  if (type == "refused") return Event(LauncherRefused{role, index, reason});
  const int incarnation = static_cast<int>(GetIntOr(message, "incarnation", 0));
  return Event(LauncherLost{role, index, incarnation, reason});
}

LogKey LogKeyOf(const CoordinatorCore& core, int task, int attempt) {
  return {core.role_of(task).name, core.tasks().index_of(task), attempt};
}

Result<LogKey> ParseAttempt(const CoordinatorCore& core, const json::object& message) {
  TRY_ASSIGN(const int64_t index, GetInt(message, "index"));
  TRY_ASSIGN(const int64_t attempt, GetInt(message, "attempt"));
  const auto task = core.Find(GetStringOr(message, "role", ""), static_cast<int>(index));
  if (!task || attempt < 0 || attempt > core.attempt_of(*task))
    return InvalidArgument("an attempt that was never started");
  return LogKeyOf(core, *task, static_cast<int>(attempt));
}

Result<LogKey> StartedLog(const CoordinatorCore& core, MemberId member, int64_t attempt) {
  const auto task = core.TaskOf(member);
  if (!task) return FailedPrecondition("log lines came before the welcome");
  if (attempt < 0 || attempt > core.attempt_of(*task)) {
    return InvalidArgument("log lines of an attempt that was never started");
  }
  return LogKeyOf(core, *task, static_cast<int>(attempt));
}

}  // namespace shoal::rendezvous
