// RayJob of KubeRay (ray.io/v1): a Ray cluster and a program that is submitted to it.
//
// The head's task starts Ray's head and then submits the entry point with `ray job submit`, as
// KubeRay's submitter does; its end is the job's. Each worker group is a role whose tasks join the
// head. The flags of `ray start` are those that KubeRay makes (its controllers/ray/common/pod.go).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "import/conversion/importer.h"
#include "import/kubernetes/pod_template.h"

namespace shoal::importer {
namespace {

using job::RestartWhen;

constexpr const char* kHead = "head";
constexpr const char* kEntryPoint = "SHOAL_RAY_ENTRYPOINT";
constexpr const char* kRuntimeEnvironment = "SHOAL_RAY_RUNTIME_ENV";
// The limit of open files that KubeRay sets.
constexpr const char* kOpenFiles = "ulimit -n 65536 2>/dev/null || ulimit -n \"$(ulimit -Hn)\"\n";
// Ray's sockets are in its temporary directory, below a name of 66 bytes, and the path of a socket
// has at most 107. The workers take the directory's path from the head.
constexpr const char* kShortPaths =
    "if [ ${#TMPDIR} -gt 40 ]; then own=$(mktemp -d /tmp/ray.XXXXXX) && export RAY_TMPDIR=$own; "
    "fi\n";
// The dashboard, which takes the submission, starts after `ray start` has returned.
constexpr const char* kDashboardReady =
    "for i in {1..300}; do\n"
    "  (exec 3<>\"/dev/tcp/127.0.0.1/$SHOAL_PORT_DASHBOARD\" &&\n"
    "    printf 'GET /api/version HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q ray_version <&3) "
    "2>/dev/null && break\n"
    "  sleep 1\n"
    "done\n";
// The program starts when all workers have joined, as in KubeRay, whose submitter waits for that.
constexpr const char* kNodes = "SHOAL_RAY_NODES";
constexpr const char* kAllJoined =
    "python3 - <<'END' || exit\n"
    "import logging, os, ray, time\n"
    "ray.init(logging_level=logging.ERROR)\n"
    "wanted = sum(map(int, os.environ['SHOAL_RAY_NODES'].split('+')))\n"
    "while sum(node['Alive'] for node in ray.nodes()) < wanted: time.sleep(0.5)\n"
    "END\n";
// KubeRay's workers wait for the head in the same way.
constexpr const char* kHeadReady =
    "until ray health-check --address=\"$RAY_ADDRESS\" >/dev/null 2>&1; do sleep 1; done\n";
constexpr const char* kCleanUp = "code=$?\n[ -z \"$own\" ] || rm -rf \"$own\"\nexit $code\n";
// Flags of `ray start` that depend on the tasks' addresses, which the job itself sets.
const std::set<std::string> kOwnFlags = {
    "address", "block",           "dashboard-host", "dashboard-port",
    "head",    "node-ip-address", "port",           "ray-client-server-port"};
// Ports at which Ray itself listens in KubeRay's pods: GCS, dashboard, client, metrics.
const std::set<int64_t> kRayPorts = {6379, 8265, 10001, 8080};
// Flags that take `false` as a value; any other flag that is false is omitted.
const std::set<std::string> kValuedFlags = {"include-dashboard", "include-log-monitor",
                                            "log-color"};

job::Port Port(const char* name) {
  job::Port port;
  port.name = name;
  return port;
}

std::string InSingleQuotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// Reads one RayJobSpec.
class RayJobReader {
 public:
  explicit RayJobReader(JobBuilder* builder) : builder_(builder) {}

  void Run(FieldReader* spec) {
    ReadMode(spec);
    auto cluster = spec->ReadObject("rayClusterSpec");
    if (!cluster) {
      return spec->AddError("rayClusterSpec",
                            "got none, expected the cluster that runs the job; a running "
                            "RayCluster (clusterSelector) is not used");
    }
    ReadSubmission(spec);
    ReadHead(&*cluster);
    for (FieldReader& group : cluster->ReadObjects("workerGroupSpecs")) ReadWorkers(&group);
    if (!builder_->diagnostics()->ok()) return;
    cluster->ReportUnread("RayJobSpecRayClusterSpec");
    ReadLimits(spec);
    spec->ReportUnread("RayJobSpec");
    std::string nodes = "{{shoal.count.head}}";
    for (const job::Role& role : builder_->job()->roles) {
      if (role.name != kHead) nodes += "+{{shoal.count." + role.name + "}}";
    }
    builder_->FindRole(kHead)->env[kNodes] = nodes;
    builder_->SetSuccess(job::SuccessRule::kFirst, {kHead});
  }

 private:
  void ReadMode(FieldReader* spec) {
    const auto mode = spec->ReadChoice(
        "submissionMode", {"K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"});
    if (mode == "InteractiveMode") {
      spec->AddError("submissionMode",
                     "got InteractiveMode, in which a person submits the program later, expected "
                     "a job with an entrypoint");
    }
  }

  // The command line of `ray job submit`.
  void ReadSubmission(FieldReader* spec) {
    const std::string entry_point = spec->ReadText("entrypoint").value_or("");
    if (entry_point.empty()) {
      spec->AddError("entrypoint", "got none, expected the command that Ray runs");
    }
    variables_[kEntryPoint] = entry_point;
    if (const auto text = spec->ReadText("runtimeEnvYAML"); text && !text->empty()) {
      variables_[kRuntimeEnvironment] = *text;
      submit_ += " --runtime-env=\"${TMPDIR:-/tmp}/runtime-env.yaml\"";
    }
    if (const auto id = spec->ReadText("jobId"); id && !id->empty())
      submit_ += " --submission-id=" + InSingleQuotes(*id);
    for (const auto& [field, flag] : {std::pair("entrypointNumCpus", " --entrypoint-num-cpus="),
                                      std::pair("entrypointNumGpus", " --entrypoint-num-gpus=")}) {
      if (const auto number = spec->ReadNumber(field, 0, 1e6); number && *number > 0) {
        std::string text = std::to_string(*number);
        text.erase(text.find_last_not_of('0') + 1);
        submit_ += flag + (text.back() == '.' ? text.substr(0, text.size() - 1) : text);
      }
    }
    if (const auto resources = spec->ReadText("entrypointResources"); resources)
      submit_ += " --entrypoint-resources=" + InSingleQuotes(*resources);
  }

  void ReadHead(FieldReader* cluster) {
    auto group = cluster->ReadObject("headGroupSpec");
    if (!group) return cluster->AddError("headGroupSpec", "got none, expected the head's pod");
    job::Role* head = ReadPodOf(&*group, kHead);
    group->ReportUnread("RayJobSpecRayClusterSpecHeadGroupSpec");
    if (head == nullptr) return;
    head->ports.insert(head->ports.begin(), {Port("gcs"), Port("dashboard"), Port("client")});
    for (const auto& [name, value] : variables_) head->env[name] = value;
    std::string script = Preamble(head);
    script += kShortPaths;
    script +=
        "ray start --head --port=\"$SHOAL_PORT_GCS\" --dashboard-host=0.0.0.0 "
        "--dashboard-port=\"$SHOAL_PORT_DASHBOARD\" "
        "--ray-client-server-port=\"$SHOAL_PORT_CLIENT\"" +
        flags_ + " || exit\n";
    if (variables_.contains(kRuntimeEnvironment)) {
      script += std::string("printf '%s\\n' \"$") + kRuntimeEnvironment +
                "\" > \"${TMPDIR:-/tmp}/runtime-env.yaml\" || exit\n";
    }
    script += std::string(kDashboardReady) + kAllJoined;
    // RAY_ADDRESS takes precedence over --address.
    script +=
        "env -u RAY_ADDRESS ray job submit --address=\"http://127.0.0.1:$SHOAL_PORT_DASHBOARD\"" +
        submit_ + std::string(" -- bash -c \"$") + kEntryPoint + "\"\n" + kCleanUp;
    head->command = {"/bin/bash", "-c", std::move(script)};
  }

  void ReadWorkers(FieldReader* group) {
    const std::string name = group->ReadText("groupName").value_or("worker");
    const auto replicas = group->ReadInteger("replicas", 0, job::kMaxReplicas).value_or(0);
    const auto least = group->ReadInteger("minReplicas", 0, INT32_MAX).value_or(0);
    const auto most = group->ReadInteger("maxReplicas", 0, INT32_MAX).value_or(INT32_MAX);
    const auto hosts = group->ReadInteger("numOfHosts", 1, job::kMaxReplicas).value_or(1);
    const bool suspended = group->ReadFlag("suspend").value_or(false);
    const int64_t pods = std::clamp(replicas, std::min(least, most), most) * hosts;
    if (suspended || pods == 0) {
      group->AddLoss("", "the group starts without pods; not kept: the job has no such role", true);
      return;
    }
    if (pods > job::kMaxReplicas)
      return group->AddError("replicas", "got more than 100,000 pods, expected fewer");
    job::Role* role = ReadPodOf(group, name);
    group->set_at(role == nullptr ? "" : "roles." + role->name);
    group->ReportUnread("RayJobSpecRayClusterSpecWorkerGroupSpecs");
    if (role == nullptr) return;
    role->replicas = static_cast<int>(pods);
    // A worker that ends is replaced by KubeRay; its tasks are run again by Ray.
    role->restart.when = RestartWhen::kAlways;
    role->restart.limit = kUnlimitedRestarts;
    builder_->SetScope(role, job::RestartScope::kTask);
    builder_->SetFollows(role, kHead);
    role->command = {"/bin/bash", "-c",
                     Preamble(role) + kHeadReady +
                         "exec ray start --address=\"$RAY_ADDRESS\" --block" + flags_ + "\n"};
  }

  // Reads the pod of a group into a role, and the flags of its `ray start` into flags_. nullptr
  // after an error.
  job::Role* ReadPodOf(FieldReader* group, const std::string& name) {
    job::Role* role = builder_->AddRole(name, group->place(), group->path());
    group->set_at("roles." + role->name);
    auto pod = group->ReadObject("template");
    if (!pod) {
      group->AddError("template", "got no template, expected one with the pod's containers");
      return nullptr;
    }
    PodOptions options;
    options.needs_command = false;
    options.framework_port_numbers = kRayPorts;
    const PodSummary summary = ReadPod(&*pod, options, role, builder_);
    if (!summary.restart_policy.empty()) {
      pod->AddLoss("spec",
                   "restartPolicy " + summary.restart_policy +
                       " said whether a container that ended is started again in its pod; not "
                       "kept: workers are started again, and the end of the head is the attempt's",
                   true);
    }
    if (StartsRay(*role)) {
      pod->AddError("spec",
                    "got a command with `ray start`, expected none or one that prepares the pod: "
                    "the job itself starts Ray, with the addresses of its tasks");
      return nullptr;
    }
    ReadFlags(group, *role);
    role->env.try_emplace("RAY_ADDRESS", "{{shoal.addresses.head}}");
    role->env.try_emplace("RAY_USAGE_STATS_ENABLED", "0");
    return role;
  }

  static bool StartsRay(const job::Role& role) {
    const auto overwritten = role.kubernetes.annotations.find("ray.io/overwrite-container-cmd");
    if (overwritten != role.kubernetes.annotations.end() && overwritten->second == "true")
      return true;
    std::string words;
    for (const auto* part : {&role.command, &role.args}) {
      for (const std::string& word : *part) words += word + " ";
    }
    return words.find("ray start") != std::string::npos;
  }

  // rayStartParams, and what KubeRay adds from the container's resources. Values are words of a
  // shell there, and stay so.
  void ReadFlags(FieldReader* group, const job::Role& role) {
    std::map<std::string, std::string> flags;
    if (auto given = group->ReadObject("rayStartParams")) {
      for (const auto& [key, value] : given->ReadAll()) {
        if (kOwnFlags.contains(key.text)) {
          given->AddLoss(key.text,
                         "a flag of `ray start` with an address; not kept: the job gives the "
                         "addresses and ports of its tasks",
                         true);
        } else {
          flags[key.text] = value->text;
        }
      }
    }
    // Without limits Ray finds out itself what the node has.
    const job::Resources& has = role.resources;
    const job::Resources unset;
    if (has.cpu != unset.cpu)
      flags.try_emplace("num-cpus", std::to_string(static_cast<int64_t>(std::ceil(has.cpu))));
    if (has.memory_bytes != unset.memory_bytes)
      flags.try_emplace("memory", std::to_string(has.memory_bytes));
    if (has.gpu > 0) flags.try_emplace("num-gpus", std::to_string(has.gpu));
    // The usual worker ports, 10002 to 19999, may be those of other tasks of the same host; 0: any.
    flags.try_emplace("min-worker-port", "0");
    flags.try_emplace("max-worker-port", "0");
    flags_.clear();
    for (const auto& [name, value] : flags) {
      const bool is_switch = (value == "true" || value == "false") && !kValuedFlags.contains(name);
      if (!is_switch) flags_ += " --" + name + "=" + value;
      if (is_switch && value == "true") flags_ += " --" + name;
    }
  }

  // The shell's settings, and the pod's own command, which KubeRay runs before `ray start`.
  static std::string Preamble(job::Role* role) {
    std::string script = kOpenFiles;
    std::string own;
    for (const auto* part : {&role->command, &role->args}) {
      for (const std::string& word : *part) own += (own.empty() ? "" : " ") + word;
    }
    role->args.clear();
    if (!own.empty()) script += "{ " + own + "\n} || exit\n";
    return script;
  }

  void ReadLimits(FieldReader* spec) {
    job::Limits& limits = builder_->job()->limits;
    if (const auto seconds = spec->ReadInteger("activeDeadlineSeconds", 1, INT32_MAX))
      limits.deadline = std::chrono::seconds(*seconds);
    if (const auto seconds = spec->ReadInteger("preRunningDeadlineSeconds", 1, INT32_MAX))
      limits.gather = std::chrono::seconds(*seconds);
    const auto retries = spec->ReadInteger("backoffLimit", 0, kUnlimitedRestarts).value_or(0);
    job::Role* head = builder_->FindRole(kHead);
    head->restart.when = retries > 0 ? RestartWhen::kAlways : RestartWhen::kNever;
    head->restart.limit = static_cast<int>(retries);
    builder_->SetScope(head, job::RestartScope::kJob);
  }

  JobBuilder* const builder_;
  std::map<std::string, std::string> variables_;  // of the head
  std::string submit_;                            // flags of `ray job submit`
  std::string flags_;                             // flags of the last group's `ray start`
};

class RayJob final : public Importer {
 public:
  std::string DetectKind(const job::Node& document) const override {
    const job::Node* kind = document.Find("kind");
    const job::Node* version = document.Find("apiVersion");
    const bool ours = kind != nullptr && version != nullptr && kind->text == "RayJob" &&
                      version->text.starts_with("ray.io/");
    return ours ? "RayJob" : "";
  }
  void Import(const job::Node& node, JobBuilder* builder) const override {
    FieldReader document(node, "", "", builder->diagnostics());
    builder->job()->framework = job::Framework::kGeneric;
    ReadMetadata(&document, builder);
    auto spec = document.ReadObject("spec");
    document.ReportUnread("RayJob");
    if (!spec) return document.AddError("spec", "got no spec, expected one with rayClusterSpec");
    RayJobReader(builder).Run(&*spec);
  }
};

}  // namespace

const Importer& RayJobImporter() {
  static const RayJob importer;
  return importer;
}

}  // namespace shoal::importer
