#include "engine/docker/container_spec.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "engine/docker/decode.h"
#include "engine/process/task_process.h"
#include "host/cgroup/container_cgroup.h"
#include "job/execution/plan.h"

namespace shoal::engine::docker {
namespace {

// The task's process acquires no devices: it sees only its own.
constexpr const char* kGpusGivenVariable = "SHOAL_GPUS_GIVEN";
constexpr int64_t kDefaultShm = int64_t{1}
                                << 30;  // Docker's default of 64 MiB breaks PyTorch's data loaders

std::string WithIncarnation(std::string text, int incarnation) {
  const std::string mark = kIncarnationPlaceholder;
  const std::string number = std::to_string(incarnation);
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at))
    text.replace(at, mark.size(), number);
  return text;
}

json::array Argv(const SpecOptions& options, const DesiredTask& task, int incarnation) {
  json::array argv;
  for (const std::string& word : task.argv) argv.emplace_back(WithIncarnation(word, incarnation));
  if (!options.launcher.empty() && task.argv[0] == options.program) argv[0] = kLauncherTarget;
  return argv;
}

bool RunsAsOurselves(const SpecOptions& options, const DesiredJob& job) {
  return job.container.user.empty() || job.container.user == options.user;
}

json::array Environment(const SpecOptions& options, const TaskSpecInput& input) {
  std::map<std::string, std::string> variables;
  for (const std::string& entry : options.environment) {
    const size_t is = entry.find('=');
    if (is != std::string::npos) variables[entry.substr(0, is)] = entry.substr(is + 1);
  }
  // The image's passwd need not contain this user id.
  if (RunsAsOurselves(options, *input.job) && !options.user_name.empty()) {
    variables["USER"] = options.user_name;
    variables["LOGNAME"] = options.user_name;
  }
  for (const auto& [name, value] : input.task->env) variables[name] = value;
  variables[host::kTaskCgroupVariable] = "1";
  // Listen on the address in the job's network; the other tasks find it in coordinator.json.
  if (input.job->container.own_network && input.task->kind() == TaskKind::kCoordinator)
    variables["SHOAL_COORDINATOR_HOST"] = "own";
  if (!input.gpus.empty()) variables[kGpusGivenVariable] = "1";
  variables[kJobVariable] = input.job->job_id;
  variables[kDirVariable] = input.job->job_dir;
  variables[kTaskVariable] = TaskVariable(input.task->role, input.task->index, input.incarnation);
  json::array env;
  for (const auto& [name, value] : variables) env.emplace_back(name + "=" + value);
  return env;
}

std::vector<Mount> Mounts(const SpecOptions& options, const DesiredJob& job) {
  std::vector<Mount> mounts;
  if (!options.launcher.empty()) mounts.push_back({options.launcher, kLauncherTarget, true});
  if (!job.job_dir.empty()) mounts.push_back({job.job_dir, job.job_dir, false});
  mounts.insert(mounts.end(), job.container.mounts.begin(), job.container.mounts.end());
  return mounts;
}

bool IsWithin(const std::string& path, const std::string& directory) {
  if (!path.starts_with(directory)) return false;
  return path.size() == directory.size() || directory.ends_with('/') ||
         path[directory.size()] == '/';
}

// The task's directory if the container has it; else the image's WORKDIR.
std::string WorkDir(const std::string& wish, const std::vector<Mount>& mounts) {
  const bool there = std::any_of(mounts.begin(), mounts.end(),
                                 [&](const Mount& mount) { return IsWithin(wish, mount.target); });
  return there ? wish : "";
}

void AddLimits(const TaskSpecInput& input, json::object* host) {
  const job::Resources& resources = input.task->resources;
  if (resources.memory_bytes > 0) {
    (*host)["Memory"] = resources.memory_bytes;
    (*host)["MemorySwap"] = resources.memory_bytes;  // equal to the limit: no swap
  }
  constexpr double kNano = 1e9;
  if (resources.cpu > 0) (*host)["NanoCpus"] = std::llround(resources.cpu * kNano);
  const ContainerSettings& container = input.job->container;
  if (container.pids > 0) (*host)["PidsLimit"] = container.pids;
  (*host)["ShmSize"] = container.shm_bytes > 0 ? container.shm_bytes : kDefaultShm;
  if (resources.gpu == 0) return;
  json::array uuids;
  for (const std::string& uuid : input.gpus) uuids.emplace_back(uuid);
  (*host)["DeviceRequests"] = json::array{{{"Driver", "nvidia"},
                                           {"DeviceIDs", std::move(uuids)},
                                           {"Capabilities", json::array{json::array{"gpu"}}}}};
}

json::object HostConfig(const SpecOptions& options, const TaskSpecInput& input,
                        const std::vector<Mount>& mounts) {
  json::array binds;
  for (const Mount& mount : mounts) {
    binds.push_back({{"Type", "bind"},
                     {"Source", mount.source},
                     {"Target", mount.target},
                     {"ReadOnly", mount.read_only}});
  }
  json::object host{
      {"Mounts", std::move(binds)},
      {"NetworkMode", input.job->container.own_network ? NetworkName(input.job->job_id) : "host"},
      {"RestartPolicy", {{"Name", "no"}}},
      {"SecurityOpt", json::array{"no-new-privileges"}},
      // Task output goes to the job's own log; this bounded log is for Docker's tools.
      {"LogConfig", {{"Type", "json-file"}, {"Config", {{"max-size", "16m"}, {"max-file", "2"}}}}}};
  if (!options.groups.empty() && RunsAsOurselves(options, *input.job)) {
    json::array groups;
    for (const std::string& group : options.groups) groups.emplace_back(group);
    host["GroupAdd"] = std::move(groups);
  }
  if (input.job->image.empty()) {
    host["ReadonlyRootfs"] = true;
    host["Tmpfs"] = {{"/tmp", "rw,nosuid,nodev,mode=1777"}};
  }
  AddLimits(input, &host);
  return host;
}

// Replaces values of variables that look like secrets, and secrets in URLs, by ***.
std::string HideAndPrint(json::object body) {
  if (json::value* env = body.if_contains("Env"); env != nullptr) {
    for (json::value& entry : env->as_array()) {
      const std::string text(entry.as_string());
      const std::string name = text.substr(0, text.find('='));
      entry = job::LooksSecret(name) ? name + "=***" : job::HideSecrets(text);
    }
  }
  return ToPrettyText(body);
}

}  // namespace

std::string ContainerName(const std::string& job, const std::string& role, int index,
                          int incarnation) {
  return "shoal-" + job + "-" + role + "-" + std::to_string(index) + "-" +
         std::to_string(incarnation);
}

std::string ImageOf(const DesiredJob& job) {
  return job.image.empty() ? std::string(kEmptyRepository) + ":" + kEmptyTag : job.image;
}

std::string NetworkName(const std::string& job) { return "shoal-" + job; }

json::object MakeNetwork(const std::string& job) {
  return {{"Name", NetworkName(job)},
          {"CheckDuplicate", true},
          {"Driver", "bridge"},
          {"Labels", {{kJobLabel, job}}}};
}

json::object MakeContainer(const SpecOptions& options, const TaskSpecInput& input) {
  const std::vector<Mount> mounts = Mounts(options, *input.job);
  const std::string& user = input.job->container.user;
  json::object labels{{kJobLabel, input.job->job_id},
                      {kRoleLabel, input.task->role},
                      {kIndexLabel, std::to_string(input.task->index)},
                      {kIncarnationLabel, std::to_string(input.incarnation)},
                      {kOrderLabel, std::to_string(input.order)}};
  if (!input.gpus.empty()) {
    std::string uuids;
    for (const std::string& uuid : input.gpus) uuids += (uuids.empty() ? "" : ",") + uuid;
    labels[kGpuLabel] = uuids;
  }
  json::object body{{"Image", ImageOf(*input.job)},
                    {"Entrypoint", Argv(options, *input.task, input.incarnation)},
                    {"Cmd", json::array()},
                    {"Env", Environment(options, input)},
                    {"User", user.empty() ? options.user : user},
                    {"Labels", std::move(labels)},
                    {"HostConfig", HostConfig(options, input, mounts)}};
  if (input.job->container.own_network) {
    const std::string name = input.task->role + "-" + std::to_string(input.task->index);
    body["NetworkingConfig"] = {
        {"EndpointsConfig", {{NetworkName(input.job->job_id), {{"Aliases", json::array{name}}}}}}};
  }
  // A daemon that shuts down sends it to all containers. SIGTERM would make the coordinator end the
  // job; after SIGKILL it is started again and continues.
  if (input.task->kind() == TaskKind::kCoordinator) body["StopSignal"] = "SIGKILL";
  std::string work_dir = WorkDir(input.task->work_dir, mounts);
  if (!input.job->container.work_dir.empty()) work_dir = input.job->container.work_dir;
  if (!work_dir.empty()) body["WorkingDir"] = work_dir;
  return body;
}

Status CheckContainers(const DesiredJob& job) {
  const std::string& image = job.image;
  const bool odd = std::any_of(image.begin(), image.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '?' || c == '#' || c == '%';
  });
  if (odd)
    return InvalidArgument("image: got \"" + image + "\", expected NAME, NAME:TAG or NAME@DIGEST");
  if (image.empty() && job.container.programs) {
    return InvalidArgument("job " + job.job_id +
                           " names no image, and its programs are not in an empty one; add `image: "
                           "NAME` to the job file, or run it with --engine local");
  }
  if (!job.job_dir.empty() && job.job_dir[0] != '/')
    return InvalidArgument("job " + job.job_id +
                           ": its directory must be an absolute path: got \"" + job.job_dir + "\"");
  for (const Mount& mount : job.container.mounts) {
    for (const std::string& path : {mount.source, mount.target}) {
      if (path.empty() || path[0] != '/')
        return InvalidArgument("volume: got \"" + path + "\", expected an absolute path");
    }
  }
  return Status::Ok();
}

Result<std::string> FindLauncher(const std::string& program) {
  std::string path = program + "-task";
  if (const char* variable = std::getenv("SHOAL_LAUNCHER"); variable != nullptr && *variable != 0)
    path = variable;
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(path, error);
  if (!error && ::access(whole.c_str(), X_OK) == 0) return whole.string();
  return NotFound("the launcher that is put into containers is not at " + path +
                  "; build it (ninja shoal-task), or name it with SHOAL_LAUNCHER");
}

std::string DescribeContainers(const SpecOptions& options, const DesiredJob& job) {
  std::string text;
  if (job.container.own_network) {
    text += "# The job's network: POST /networks/create\n" + ToPrettyText(MakeNetwork(job.job_id)) +
            "\n";
  }
  int order = 0;
  for (const DesiredTask& task : job.tasks) {
    const std::vector<std::string> gpus(static_cast<size_t>(task.resources.gpu),
                                        "(chosen at start)");
    text +=
        "# " + task.role + " " + std::to_string(task.index) +
        ": POST /containers/create?name=" + ContainerName(job.job_id, task.role, task.index, 0) +
        ", then POST /containers/NAME/start\n" +
        HideAndPrint(MakeContainer(options, {&job, &task, 0, order++, gpus})) + "\n";
  }
  const std::string label = std::string(kJobLabel) + "=" + job.job_id;
  text += "# To remove all of it:\n#   docker ps -aq --filter label=" + label +
          " | xargs -r docker rm -f\n";
  if (job.container.own_network) text += "#   docker network rm " + NetworkName(job.job_id) + "\n";
  return text;
}

}  // namespace shoal::engine::docker
