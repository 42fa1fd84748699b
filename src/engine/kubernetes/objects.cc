#include "engine/kubernetes/objects.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/base64.h"
#include "base/id.h"
#include "engine/kubernetes/kube_config.h"
#include "engine/kubernetes/pod_placement.h"
#include "engine/kubernetes/pod_volumes.h"
#include "engine/process/task_process.h"
#include "engine/tasks/restart_rules.h"

namespace shoal::engine::kubernetes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIncarnationVariable = "SHOAL_INCARNATION";
constexpr const char* kIndexVariable = "SHOAL_INDEX";
constexpr const char* kAddressVariable = "SHOAL_POD_IP";
constexpr const char* kControllerLossVariable = "SHOAL_CONTROLLER_LOSS";
constexpr const char* kLifeVariable = "SHOAL_COORDINATOR_LIFE";
// The controller connects through the API server, which may be unreachable this long.
constexpr int kCutOffSeconds = 120;
constexpr std::chrono::seconds kReportTime{5};  // for the end of a pod whose programs have ended
constexpr int kMostFailures =
    20;  // of an index; the limits of engine and coordinator are reached earlier
constexpr size_t kLongestLabel = 63;

// A DNS label of at most `length`; a changed text gets a digest, so that labels stay unique.
std::string Label(const std::string& text, size_t length) {
  std::string label;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    label += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  constexpr size_t kDigest = 6;
  if (label == text && label.size() <= length && !label.ends_with('-')) return label;
  label.resize(std::min(label.size(), length - kDigest - 1));
  while (label.ends_with('-')) label.pop_back();
  return label + "-" + Sha256Hex(text).substr(0, kDigest);
}

void ReplaceAll(const std::string& from, const std::string& to, std::string* text) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at + to.size()))
    text->replace(at, from.size(), to);
}

// An argument as the cluster expands it: placeholders become "$(NAME)".
std::string Word(std::string text, const DesiredJob& job, const std::string& name_space) {
  ReplaceAll("$", "$$", &text);
  const Endpoint coordinator = CoordinatorAddress(job.job_id, name_space);
  ReplaceAll(kIncarnationPlaceholder, std::string("$(") + kIncarnationVariable + ")", &text);
  ReplaceAll(kIndexPlaceholder, std::string("$(") + kIndexVariable + ")", &text);
  ReplaceAll(kHostPlaceholder, std::string("$(") + kAddressVariable + ")", &text);
  ReplaceAll(kDirPlaceholder, kDirPath, &text);
  ReplaceAll(kBootstrapDirPlaceholder, kBootstrapPath, &text);
  ReplaceAll(kPortPlaceholder, std::to_string(coordinator.port), &text);
  ReplaceAll(kCoordinatorPlaceholder, coordinator.host + ":" + std::to_string(coordinator.port),
             &text);
  return text;
}

json::object FromField(const std::string& name, const std::string& path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

bool IsLauncher(const ObjectOptions& options, const DesiredTask& task) {
  return !options.program.empty() && task.argv[0] == options.program;
}

// Whether the task runs in the launcher's own image. Then no init container has to copy the
// launcher into the pod.
bool IsInOwnImage(const ObjectOptions& options, const DesiredJob& job, const DesiredTask& task) {
  return IsLauncher(options, task) && (job.image.empty() || task.kind() == TaskKind::kCoordinator);
}

// Whether the launcher must be added to the pod, by an image volume or a copy.
bool IsBrought(const ObjectOptions& options, const DesiredJob& job, const DesiredTask& task) {
  return !options.program.empty() && !IsInOwnImage(options, job, task);
}

json::array Argv(const ObjectOptions& options, const DesiredJob& job, const DesiredTask& task,
                 const std::string& name_space) {
  json::array argv;
  for (const std::string& word : task.argv) argv.emplace_back(Word(word, job, name_space));
  if (IsLauncher(options, task))
    argv[0] = IsInOwnImage(options, job, task) ? kLauncherSource
              : options.image_volumes          ? kLauncherMounted
                                               : kLauncherPath;
  return argv;
}

json::array Environment(const DesiredJob& job, const DesiredTask& task,
                        const std::string& name_space, bool indexed) {
  json::array env;
  const std::string note = "metadata.annotations['";
  env.push_back(FromField(kIncarnationVariable, note + kFailureCount + "']"));
  env.push_back(FromField(kAddressVariable, "status.podIP"));
  env.push_back(FromField(kNodeVariable, "spec.nodeName"));
  env.push_back({{"name", job::kExcludedFileVariable}, {"value", "/dev/termination-log"}});
  if (indexed) {
    env.push_back(FromField(kIndexVariable, note + kCompletionIndex + "']"));
  } else {
    env.push_back({{"name", kIndexVariable}, {"value", std::to_string(task.index)}});
  }
  std::map<std::string, std::string> variables;
  if (task.kind() == TaskKind::kCoordinator) {
    variables[kControllerLossVariable] = std::to_string(kCutOffSeconds);
    variables[kLifeVariable] = std::string("$(") + kIncarnationVariable + ")";
  }
  for (const auto& [name, value] : task.env) variables[name] = Word(value, job, name_space);
  variables[kJobVariable] = job.job_id;
  variables[kDirVariable] = kDirPath;
  variables[kTaskVariable] =
      task.role + "/$(" + kIndexVariable + ")/$(" + kIncarnationVariable + ")";
  for (const auto& [name, value] : variables) env.push_back({{"name", name}, {"value", value}});
  return env;
}

// An entry of kubernetes.resources.
struct FurtherResource {
  std::string role;  // empty: every role
  std::string name;
  std::string quantity;
};

FurtherResource SplitResource(const std::string& text) {
  const size_t is = text.rfind('=');
  const size_t colon = text.find(':');
  const bool of_role = colon != std::string::npos && colon < is;
  const size_t begin = of_role ? colon + 1 : 0;
  FurtherResource resource;
  if (of_role) resource.role = text.substr(0, colon);
  if (is == std::string::npos) return resource;
  resource.name = text.substr(begin, is - begin);
  resource.quantity = text.substr(is + 1);
  return resource;
}

std::string Cores(double cpus) {
  return std::to_string(std::llround(std::ceil(cpus * 1000))) + "m";
}

// Whether a pod of such containers alone has the QoS class Guaranteed: exclusive CPUs where nodes
// support them, and evicted last.
bool IsGuaranteed(const job::Resources& wants) {
  return wants.cpu > 0 && wants.memory_bytes > 0 && wants.cpu_reserved() == wants.cpu &&
         wants.memory_reserved() == wants.memory_bytes;
}

// Requests equal to the limits.
json::object CpuAndMemory(const job::Resources& wants) {
  const json::object both{{"cpu", Cores(wants.cpu)},
                          {"memory", std::to_string(wants.memory_bytes)}};
  return {{"requests", both}, {"limits", both}};
}

json::object ResourcesOf(const DesiredJob& job, const DesiredTask& task) {
  const job::Resources& wants = task.resources;
  json::object limits;
  if (wants.gpu > 0) limits[job.kubernetes.gpu_resource] = std::to_string(wants.gpu);
  for (const std::string& text : job.kubernetes.resources) {
    const FurtherResource further = SplitResource(text);
    const bool mine = further.role.empty() || further.role == task.role;
    if (task.kind() != TaskKind::kCoordinator && mine) limits[further.name] = further.quantity;
  }
  json::object requests = limits;
  if (wants.cpu > 0) limits["cpu"] = Cores(wants.cpu);
  if (wants.memory_bytes > 0) limits["memory"] = std::to_string(wants.memory_bytes);
  if (wants.cpu_reserved() > 0) requests["cpu"] = Cores(wants.cpu_reserved());
  if (wants.memory_reserved() > 0) requests["memory"] = std::to_string(wants.memory_reserved());
  json::object resources;
  if (!requests.empty()) resources["requests"] = std::move(requests);
  if (!limits.empty()) resources["limits"] = std::move(limits);
  return resources;
}

std::string LauncherImage(const ObjectOptions& options, const DesiredJob& job) {
  return job.kubernetes.launcher.empty() ? options.launcher_image : job.kubernetes.launcher;
}

// Volumes of the pod and their mounts.
struct Mounted {
  json::array volumes;
  json::array mounts;
};

// A source that is mounted at several places is a single volume: a kubelet waits forever for the
// second volume of a claim.
void AddVolumes(const std::vector<PodVolume>& volumes, Mounted* all) {
  std::map<std::string, std::string> names;  // by source; each empty directory is a separate volume
  int number = 0;
  for (const PodVolume& volume : volumes) {
    const std::string source = ToText(volume.source);
    const auto known = names.find(source);
    std::string name = known == names.end() ? "" : known->second;
    if (name.empty()) {
      name = "volume-" + std::to_string(number++);
      json::object one = volume.source;
      one["name"] = name;
      all->volumes.push_back(std::move(one));
      if (!volume.source.contains("emptyDir")) names[source] = name;
    }
    json::object mount{{"name", name}, {"mountPath", volume.target}};
    if (volume.read_only) mount["readOnly"] = true;
    all->mounts.push_back(std::move(mount));
  }
}

Mounted Volumes(const ObjectOptions& options, const DesiredJob& job, const job::PodSettings& ask,
                const DesiredTask& task) {
  Mounted all;
  const auto add = [&](const std::string& name, json::object source, const std::string& target,
                       bool read_only) {
    source["name"] = name;
    all.volumes.push_back(std::move(source));
    json::object mount{{"name", name}, {"mountPath", target}};
    if (read_only) mount["readOnly"] = true;
    all.mounts.push_back(std::move(mount));
  };
  const bool brought = IsBrought(options, job, task);
  if (brought && options.image_volumes) {
    add("shoal",
        {{"image", {{"reference", LauncherImage(options, job)}, {"pullPolicy", "IfNotPresent"}}}},
        fs::path(kLauncherMounted).parent_path(), true);
  } else if (brought) {
    add("shoal", {{"emptyDir", json::object()}}, fs::path(kLauncherPath).parent_path(), false);
  }
  if (!job.bootstrap_files.empty()) {
    add("seed", {{"secret", {{"secretName", BaseName(job.job_id)}, {"defaultMode", 0444}}}},
        kBootstrapPath, true);
  }
  add("job", {{"emptyDir", json::object()}}, kDirPath, false);
  std::vector<PodVolume> volumes;  // checked by CheckObjects
  for (const std::string& text : ask.volumes) {
    if (auto volume = ParsePodVolume(text); volume.ok()) volumes.push_back(std::move(*volume));
  }
  if (std::ranges::find(volumes, kSharedMemory, &PodVolume::target) == volumes.end()) {
    json::object memory{{"medium", "Memory"}};
    if (job.container.shm_bytes > 0) memory["sizeLimit"] = std::to_string(job.container.shm_bytes);
    add("shm", {{"emptyDir", std::move(memory)}}, kSharedMemory, false);
  }
  AddVolumes(volumes, &all);
  return all;
}

json::object Labels(const DesiredJob& job, const std::string& role) {
  json::object labels;
  for (const auto& [name, value] : AskOf(job, role).labels) labels[name] = value;
  labels["app.kubernetes.io/managed-by"] = "shoal";
  labels[kJobLabel] = job.job_id;
  if (!role.empty()) labels[kRoleLabel] = role;
  return labels;
}

json::object Annotations(const DesiredJob& job, const std::string& role) {
  json::object annotations;
  for (const auto& [name, value] : AskOf(job, role).annotations) annotations[name] = value;
  return annotations;
}

json::object TaskContainer(const ObjectOptions& options, const DesiredJob& job,
                           const DesiredTask& task, const std::string& name_space, bool indexed) {
  const job::PodSettings ask = AskOf(job, task.role);
  const bool bare = job.image.empty() || IsInOwnImage(options, job, task);
  json::object container{{"name", kTaskContainer},
                         {"image", bare ? LauncherImage(options, job) : job.image},
                         {"imagePullPolicy", "IfNotPresent"},
                         {"command", Argv(options, job, task, name_space)},
                         {"env", Environment(job, task, name_space, indexed)},
                         {"volumeMounts", Volumes(options, job, ask, task).mounts},
                         {"terminationMessagePolicy", "FallbackToLogsOnError"},
                         {"securityContext", ContainerSecurity(job, ask)}};
  if (json::object resources = ResourcesOf(job, task); !resources.empty())
    container["resources"] = std::move(resources);
  if (!job.container.work_dir.empty()) container["workingDir"] = job.container.work_dir;
  return container;
}

json::object Meta(const std::string& name, json::object labels, const Owner& owner) {
  json::object meta{{"name", name}, {"labels", std::move(labels)}};
  if (!owner.uid.empty()) {
    meta["ownerReferences"] = json::array{{{"apiVersion", "batch/v1"},
                                           {"kind", "Job"},
                                           {"name", owner.name},
                                           {"uid", owner.uid},
                                           {"controller", false},
                                           {"blockOwnerDeletion", false}}};
  }
  return meta;
}

}  // namespace

std::string BaseName(const std::string& job_id) { return "shoal-" + Label(job_id, 32); }

std::string RoleJobName(const std::string& job_id, const std::string& role) {
  return BaseName(job_id) + "-" + Label(role, 16);
}

std::string SingleJobName(const std::string& job_id, const std::string& role, int index, int base) {
  return BaseName(job_id) + "-" + Label(role, 10) + "-" + std::to_string(index) + "-" +
         std::to_string(base);
}

Endpoint CoordinatorAddress(const std::string& job_id, const std::string& name_space) {
  // A different port per job: with host networks two coordinators may share a node.
  constexpr uint64_t kFirst = 20'000;
  constexpr uint64_t kCount = 10'000;
  uint64_t number = 0;
  const std::string digest = Sha256Hex(job_id).substr(0, 12);
  std::from_chars(digest.data(), digest.data() + digest.size(), number, 16);
  return {
      RoleJobName(job_id, kCoordinatorRole) + "-0." + BaseName(job_id) + "." + name_space + ".svc",
      static_cast<uint16_t>(kFirst + number % kCount)};
}

Status CheckObjects(const ObjectOptions& options, const DesiredJob& job) {
  if (job.job_id.size() > kLongestLabel)
    return InvalidArgument(
        "job " + job.job_id +
        ": on Kubernetes its id has at most 63 characters; give it a shorter name, "
        "with `name` in the job file or --set name=NAME");
  if (job.image.empty() && job.container.programs) {
    return InvalidArgument("job " + job.job_id +
                           " names no image, and its programs are not in the launcher's; add "
                           "`image: NAME` to the job file, or run it with --engine local");
  }
  // There is no default: an image in a registry that the user does not control would run foreign
  // code.
  if (LauncherImage(options, job).empty())
    return InvalidArgument(
        "job " + job.job_id +
        ": no image with the launcher is named; build it of docker/Dockerfile, push it to a "
        "registry of yours that the nodes reach, and name it with kubernetes.launcher in the job "
        "file or SHOAL_KUBE_LAUNCHER_IMAGE");
  if (options.program.empty() && job.image.empty())
    return InvalidArgument("job " + job.job_id + " names no image");
  for (const std::string& text : job.kubernetes.resources) {
    const FurtherResource further = SplitResource(text);
    if (!IsQualified(further.name) || !ReadQuantity(further.quantity)) {
      return InvalidArgument("kubernetes.resources: got \"" + text +
                             "\", expected NAME=QUANTITY, or ROLE:NAME=QUANTITY");
    }
  }
  std::set<std::string> roles = {"", kCoordinatorRole};
  for (const auto& [role, _] : job.pod_settings) roles.insert(role);
  for (const std::string& role : roles) {
    const job::PodSettings ask = AskOf(job, role);
    Status good = CheckPodVolumes(ask);
    if (good.ok()) good = CheckPlacement(job, ask);
    if (!good.ok()) return job.pod_settings.contains(role) ? good.With("roles." + role) : good;
  }
  return Status::Ok();
}

bool BringsLauncher(const ObjectOptions& options, const DesiredJob& job) {
  return std::any_of(job.tasks.begin(), job.tasks.end(),
                     [&](const DesiredTask& task) { return IsBrought(options, job, task); });
}

// The time that the cluster gives a pod which it drains or preempts: that of its programs, and a
// little more, in which the launcher reports their end.
std::chrono::seconds PodGrace(const ObjectOptions& options, const DesiredJob& job) {
  const auto programs = std::chrono::ceil<std::chrono::seconds>(job.stop_grace);
  return programs > options.grace ? programs + kReportTime : options.grace;
}

json::object PodTemplate(const ObjectOptions& options, const DesiredJob& job,
                         const DesiredTask& task, const std::string& name_space, bool indexed) {
  const job::PodSettings ask = AskOf(job, task.role);
  json::object labels = Labels(job, task.role);
  if (!indexed) labels[kIndexLabel] = std::to_string(task.index);
  json::object spec{
      {"restartPolicy", "Never"},
      {"terminationGracePeriodSeconds", PodGrace(options, job).count()},
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"subdomain", BaseName(job.job_id)},
      {"securityContext", PodSecurity(job, ask)},
      {"volumes", Volumes(options, job, ask, task).volumes},
      {"containers", json::array{TaskContainer(options, job, task, name_space, indexed)}}};
  if (IsBrought(options, job, task) && !options.image_volumes) {
    json::object launcher{
        {"name", "launcher"},
        {"image", LauncherImage(options, job)},
        {"imagePullPolicy", "IfNotPresent"},
        {"command", json::array{kLauncherSource, "install", kLauncherPath}},
        {"volumeMounts", json::array{{{"name", "shoal"}, {"mountPath", "/.shoal/bin"}}}},
        {"securityContext", LauncherSecurity(job, ask)}};
    if (IsGuaranteed(task.resources)) launcher["resources"] = CpuAndMemory(task.resources);
    spec["initContainers"] = json::array{std::move(launcher)};
  }
  AddPlacement(job, ask, task, &spec);
  json::object metadata{{"labels", std::move(labels)}};
  if (!ask.annotations.empty()) metadata["annotations"] = Annotations(job, task.role);
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

std::optional<RoleJob> AsOneJob(const ObjectOptions& options, const DesiredJob& job,
                                const std::vector<const DesiredTask*>& tasks,
                                const std::string& name_space) {
  RoleJob role;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const DesiredTask& task = *tasks[i];
    if (task.index != static_cast<int>(i)) return std::nullopt;
    json::object pod = PodTemplate(options, job, task, name_space, true);
    if (i == 0) {
      role.pod = std::move(pod);
    } else if (pod != role.pod || task.restart_if_lost != tasks[0]->restart_if_lost) {
      return std::nullopt;
    }
  }
  if (tasks.empty()) return std::nullopt;
  role.role = tasks[0]->role;
  role.name = RoleJobName(job.job_id, role.role);
  role.count = static_cast<int>(tasks.size());
  role.restarts = tasks[0]->restart_if_lost;
  role.digest = Sha256Hex(ToText(role.pod)).substr(0, 16);
  return role;
}

RoleJob AsSingleJob(const ObjectOptions& options, const DesiredJob& job, const DesiredTask& task,
                    const std::string& name_space, int base) {
  RoleJob role;
  role.pod = PodTemplate(options, job, task, name_space, false);
  role.role = task.role;
  role.single = task.index;
  role.name = SingleJobName(job.job_id, task.role, task.index, base);
  role.restarts = task.restart_if_lost;
  if (base > 0) role.bases[task.index] = base;
  role.digest = Sha256Hex(ToText(role.pod)).substr(0, 16);
  return role;
}

json::object JobObject(const ObjectOptions& options, const DesiredJob& job, const RoleJob& role,
                       const Owner& owner, bool suspended) {
  json::object labels = Labels(job, role.role);
  if (role.single >= 0) labels[kIndexLabel] = std::to_string(role.single);
  json::object meta = Meta(role.name, std::move(labels), owner);
  json::object bases;
  for (const auto& [index, base] : role.bases) bases[std::to_string(index)] = base;
  json::object annotations = Annotations(job, role.role);
  annotations[kOrderNote] = std::to_string(role.order);
  annotations[kTemplateNote] = role.digest;
  annotations[kBasesNote] = ToText(bases);
  meta["annotations"] = std::move(annotations);
  json::object spec{{"completionMode", "Indexed"},
                    {"completions", role.count},
                    {"parallelism", role.count},
                    {"backoffLimitPerIndex", role.restarts ? kMostFailures : 0},
                    {"podReplacementPolicy", "TerminatingOrFailed"},
                    {"suspend", suspended},
                    {"template", role.pod}};
  // The other Jobs are removed with their owner.
  if (owner.uid.empty()) spec["ttlSecondsAfterFinished"] = options.keep.count();
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", std::move(meta)},
          {"spec", std::move(spec)}};
}

json::object ServiceObject(const DesiredJob& job, const Owner& owner) {
  const Endpoint coordinator = CoordinatorAddress(job.job_id, "");
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", Meta(BaseName(job.job_id), Labels(job, ""), owner)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", {{kJobLabel, job.job_id}}},
            {"ports", json::array{{{"name", "coordinator"},
                                   {"port", coordinator.port},
                                   {"targetPort", coordinator.port}}}}}}};
}

std::optional<json::object> SecretObject(const DesiredJob& job, const Owner& owner) {
  if (job.bootstrap_files.empty()) return std::nullopt;
  json::object data;
  for (const auto& [name, bytes] : job.bootstrap_files) data[name] = EncodeBase64(bytes);
  return json::object{{"apiVersion", "v1"},
                      {"kind", "Secret"},
                      {"type", "Opaque"},
                      {"metadata", Meta(BaseName(job.job_id), Labels(job, ""), owner)},
                      {"data", std::move(data)}};
}

}  // namespace shoal::engine::kubernetes
