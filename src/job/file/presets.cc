// Defaults of omitted fields: names, the framework's own roles, the success rule.
#include <algorithm>
#include <cctype>

#include "job/file/decode.h"
#include "job/spec/framework.h"

namespace shoal::job {
namespace {

// "/x/My job.yaml" → "My-job".
std::string NameFromFile(const std::string& file) {
  const size_t slash = file.rfind('/');
  std::string stem = slash == std::string::npos ? file : file.substr(slash + 1);
  const size_t dot = stem.rfind('.');
  if (dot != std::string::npos && dot > 0) stem.resize(dot);
  std::string name;
  for (const char c : stem.substr(0, 63)) {
    const bool good = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (good || !name.empty()) name += good || c == '-' || c == '_' || c == '.' ? c : '-';
  }
  return name.empty() ? "job" : name;
}

Role* Find(Job* job, const std::string& name) {
  for (Role& role : job->roles) {
    if (role.name == name) return &role;
  }
  return nullptr;
}

// Framework shoal: `server` holds the model and follows `worker`, which trains.
void AddShoalRoles(JobDraft* draft) {
  Job& job = draft->job;
  Role* worker = Find(&job, "worker");
  if (worker != nullptr && !draft->Has("roles.worker.command")) {
    worker->command = {"@shoal", "learn", "worker"};
  }
  Role* server = Find(&job, "server");
  if (server == nullptr) return;
  if (!draft->Has("roles.server.command")) server->command = {"@shoal", "learn", "server"};
  if (!draft->Has("roles.server.ports")) server->ports = {{"ps", false}};
  if (!draft->Has("roles.server.follows") && worker != nullptr) server->follows = "worker";
}

// Default of `follows` by framework and role: the first of `leaders` that the job has.
struct Follower {
  Framework framework;
  std::string_view role;
  std::vector<std::string> leaders;
};

const std::vector<Follower>& Followers() {
  static const std::vector<Follower> followers = {
      {Framework::kTensorflow, "worker", {"chief", "master"}},
      {Framework::kTensorflow, "ps", {"worker", "chief", "master"}},
      {Framework::kTensorflow, "evaluator", {"worker", "chief", "master"}},
      {Framework::kPsLite, "scheduler", {"worker"}},
      {Framework::kPsLite, "server", {"worker"}},
      {Framework::kSpark, "master", {"driver"}},
      {Framework::kSpark, "worker", {"driver"}},
      {Framework::kMpi, "worker", {"launcher"}},
  };
  return followers;
}

// True if `role` is `other` or follows it, directly or through other roles.
bool ComesAfter(const Job& job, const std::string& role, const std::string& other) {
  const std::string* at = &role;
  for (size_t steps = 0; steps <= job.roles.size() && !at->empty(); ++steps) {
    if (*at == other) return true;
    const Role* found = job.FindRole(*at);
    if (found == nullptr) return false;
    at = &found->follows;
  }
  return false;
}

bool DecidesSuccess(const Job& job, const std::string& role) {
  const std::vector<std::string>& roles = job.success.roles;
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

// A role in the file's success rule gets no default `follows`.
void AddFollowers(JobDraft* draft) {
  Job& job = draft->job;
  for (const Follower& follower : Followers()) {
    if (follower.framework != job.framework) continue;
    Role* role = Find(&job, std::string(follower.role));
    if (role == nullptr || draft->Has("roles." + role->name + ".follows") ||
        DecidesSuccess(job, role->name)) {
      continue;
    }
    for (const std::string& leader : follower.leaders) {
      if (Find(&job, leader) == nullptr || ComesAfter(job, leader, role->name)) continue;
      role->follows = leader;
      break;
    }
  }
}

void AddPorts(JobDraft* draft) {
  Job& job = draft->job;
  const std::vector<std::string> ranked = RankedRoles(job);
  for (Role& role : job.roles) {
    if (CountsRanks(job.framework) &&
        std::find(ranked.begin(), ranked.end(), role.name) == ranked.end()) {
      continue;
    }
    const std::string_view port = PresetPort(job.framework, role.name);
    if (port.empty() || draft->Has("roles." + role.name + ".ports")) continue;
    role.ports = {{std::string(port), false}};
  }
}

// ps-lite's scheduler is a task of the job and runs the job's own program.
void AddScheduler(Job* job) {
  if (job->framework != Framework::kPsLite || job->FindRole("scheduler") != nullptr) return;
  const Role* model = job->FindRole("server");
  if (model == nullptr) model = job->FindRole("worker");
  if (model == nullptr) return;
  Role scheduler;
  scheduler.name = "scheduler";
  scheduler.env = model->env;
  if (job->command.empty()) {
    scheduler.command = model->command;
    scheduler.args = model->args;
  }
  job->roles.insert(job->roles.begin(), std::move(scheduler));
}

// The rendezvous service of a framework's ranks (rabit's tracker, Horovod's store) is a task of the
// job that runs a program of Shoal. It stops after the workers and restarts with them
// (docs/adr/0060).
struct RendezvousRole {
  Framework framework;
  const char* role;
  const char* command;
};

constexpr RendezvousRole kRendezvousRoles[] = {
    {Framework::kRabit, "tracker", "rabit-tracker"},
    {Framework::kHorovod, "rendezvous", "horovod-rendezvous"}};

void AddRendezvousRole(JobDraft* draft, const RendezvousRole& rendezvous) {
  Job& job = draft->job;
  if (job.framework != rendezvous.framework) return;
  const std::string name = rendezvous.role;
  const std::vector<std::string> ranked = RankedRoles(job);
  if (Find(&job, name) == nullptr) job.roles.emplace(job.roles.begin())->name = name;
  Role* role = Find(&job, name);
  if (!draft->Has("roles." + name + ".command")) role->command = {"@shoal", rendezvous.command};
  if (!draft->Has("roles." + name + ".ports")) role->ports = {{name, false}};
  if (draft->Has("roles." + name + ".follows")) return;
  const auto leader = std::find_if(ranked.rbegin(), ranked.rend(),
                                   [&](const std::string& one) { return one != name; });
  if (leader != ranked.rend()) role->follows = *leader;
}

// Role `launcher` runs the user's command with mpirun; the tasks of `worker` are the hosts on which
// mpirun starts the ranks (docs/adr/0070).
void AddMpiRoles(JobDraft* draft) {
  Job& job = draft->job;
  if (job.framework != Framework::kMpi) return;
  if (Find(&job, "launcher") == nullptr) job.roles.emplace(job.roles.begin())->name = "launcher";
  // MPICH's mpiexec exits with 9 both for a rank killed by signal 9 and for a rank that exited with
  // 9.
  Role* launcher = Find(&job, "launcher");
  if (launcher->restart.when == RestartWhen::kTransient && !draft->Has("roles.launcher.on_log")) {
    launcher->on_log = {
        {"*APPLICATION TERMINATED WITH THE EXIT STRING: *(signal *)*", EndAction::kRetry}};
  }
  Role* worker = Find(&job, "worker");
  if (worker == nullptr) return;
  if (!draft->Has("roles.worker.command")) worker->command = {"@shoal", "mpi-worker"};
  const bool there = std::any_of(worker->ports.begin(), worker->ports.end(),
                                 [](const Port& port) { return port.name == "mpi"; });
  if (!there) worker->ports.push_back({"mpi", false});
}

// A Spark standalone cluster inside the job: `master` and `worker` run Spark's own programs,
// `driver` the user's. Their scratch directory receives the files that Spark writes by default
// beside its own.
void AddSparkRoles(JobDraft* draft) {
  Job& job = draft->job;
  if (job.framework != Framework::kSpark) return;
  if (job.FindRole("master") == nullptr) job.roles.emplace(job.roles.begin())->name = "master";
  const auto run = [&](const char* name, const char* line) {
    Role* role = Find(&job, name);
    if (role == nullptr || draft->Has("roles." + role->name + ".command")) return;
    role->command = {"sh", "-c", line};
  };
  run("master",
      "exec \"${SPARK_HOME:+$SPARK_HOME/bin/}spark-class\" org.apache.spark.deploy.master.Master");
  run("worker",
      "exec \"${SPARK_HOME:+$SPARK_HOME/bin/}spark-class\" org.apache.spark.deploy.worker.Worker "
      "-d \"$SHOAL_SCRATCH\" \"$MASTER\"");
}

// Default roles of the success rule.
std::vector<std::string> LeaderRoles(const Job& job) {
  if (CountsRanks(job.framework)) return RankedRoles(job);
  if (job.framework == Framework::kTensorflow) {
    for (const char* chief : {"chief", "master"}) {
      const Role* role = job.FindRole(chief);
      if (role != nullptr && role->follows.empty()) return {chief};
    }
  }
  if (job.framework == Framework::kSpark && job.FindRole("driver") != nullptr) return {"driver"};
  if (job.framework == Framework::kMpi && job.FindRole("launcher") != nullptr) return {"launcher"};
  if (job.FindRole("worker") != nullptr) return {"worker"};
  std::vector<std::string> leaders;
  for (const Role& role : job.roles) {
    if (role.follows.empty()) leaders.push_back(role.name);
  }
  return leaders;
}

// TensorFlow's workers with parameter servers proceed independently, with worker 0 as their chief;
// after its end the other workers may wait for it forever (docs/adr/0050).
void AddSuccess(Job* job) {
  job->success.roles = LeaderRoles(*job);
  if (job->framework == Framework::kTensorflow && job->success.rule == SuccessRule::kAll &&
      job->success.roles == std::vector<std::string>{"worker"} && job->FindRole("ps") != nullptr) {
    job->success.rule = SuccessRule::kFirst;
  }
}

}  // namespace

void ApplyDefaults(JobDraft* draft) {
  Job& job = draft->job;
  if (job.name.empty()) job.name = NameFromFile(job.file);
  if (job.roles.empty() && !draft->Has("roles")) {
    job.roles.emplace_back().name = job.framework == Framework::kShoal ? "worker" : "task";
  }
  if (job.framework == Framework::kShoal) AddShoalRoles(draft);
  AddScheduler(&job);
  for (const RendezvousRole& rendezvous : kRendezvousRoles) AddRendezvousRole(draft, rendezvous);
  AddSparkRoles(draft);
  AddMpiRoles(draft);
  AddFollowers(draft);
  AddPorts(draft);
  for (Role& role : job.roles) {
    if (!draft->Has("roles." + role.name + ".restart.scope") && RestartsAllTasks(job.framework)) {
      role.restart.scope = RestartScope::kJob;
    }
  }
  if (job.success.roles.empty()) AddSuccess(&job);
  for (DataSource& data : job.data) {
    const std::vector<std::string> leaders = LeaderRoles(job);
    if (data.shard_by.empty() && !leaders.empty()) data.shard_by = leaders.front();
  }
}

}  // namespace shoal::job
