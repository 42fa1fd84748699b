// What a job file may leave out: names, the framework's own roles, the success rule.
#include <algorithm>
#include <cctype>

#include "job/decode.h"

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
void AddShoalRoles(Draft* draft) {
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

bool RestartsWhole(Framework framework) {
  return framework == Framework::kPytorch || framework == Framework::kMpi ||
         framework == Framework::kHorovod || framework == Framework::kRabit;
}

std::vector<std::string> Leaders(const Job& job) {
  if (job.FindRole("worker") != nullptr) return {"worker"};
  std::vector<std::string> leaders;
  for (const Role& role : job.roles) {
    if (role.follows.empty()) leaders.push_back(role.name);
  }
  return leaders;
}

}  // namespace

void Complete(Draft* draft) {
  Job& job = draft->job;
  if (job.name.empty()) job.name = NameFromFile(job.file);
  if (job.roles.empty() && !draft->Has("roles")) {
    job.roles.emplace_back().name = job.framework == Framework::kShoal ? "worker" : "task";
  }
  if (job.framework == Framework::kShoal) AddShoalRoles(draft);
  for (Role& role : job.roles) {
    if (!draft->Has("roles." + role.name + ".restart.scope") && RestartsWhole(job.framework)) {
      role.restart.scope = RestartScope::kJob;
    }
  }
  if (job.success.roles.empty()) job.success.roles = Leaders(job);
  for (DataSource& data : job.data) {
    const std::vector<std::string> leaders = Leaders(job);
    if (data.shard_by.empty() && !leaders.empty()) data.shard_by = leaders.front();
  }
}

}  // namespace shoal::job
