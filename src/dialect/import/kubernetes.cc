#include "dialect/import/kubernetes.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "dialect/import/pod_environment.h"
#include "dialect/import/pod_resources.h"
#include "dialect/import/pod_wishes.h"
#include "job/units.h"

namespace shoal::dialect {
namespace {

constexpr std::string_view kEngine = "the engine chooses the machine";

constexpr Unkept kMetadata[] = {
    {"namespace", "in which namespace the job lives", "a queue keeps jobs of teams apart", true},
    {"generateName", "how its name begins", "a job's ID is unique, its name need not be", true},
    {"creationTimestamp", "", "", true},
    {"deletionGracePeriodSeconds", "", "", true},
    {"deletionTimestamp", "", "", true},
    {"uid", "", "", true},
    {"resourceVersion", "", "", true},
    {"generation", "", "", true},
    {"managedFields", "", "", true},
    {"selfLink", "", "", true},
    {"finalizers", "", "", true},
    {"ownerReferences", "whom it belongs to", "a job stands for itself", true},
};

constexpr Unkept kPod[] = {
    {"activeDeadlineSeconds", "how long one pod may run", "set limits.deadline for the whole job"},
    {"automountServiceAccountToken", "whether a token of the cluster is mounted",
     "a task has no such token", true},
    {"dnsConfig", "how names are resolved", "tasks resolve names as their machine does"},
    {"dnsPolicy", "how names are resolved", "tasks resolve names as their machine does", true},
    {"enableServiceLinks", "whether variables of services are set", "there are none", true},
    {"ephemeralContainers", "containers for debugging", "a task is one program"},
    {"hostAliases", "extra names of hosts", "put them into /etc/hosts of the machine"},
    {"hostIPC", "that the pod shares the host's IPC", "local tasks always do", true},
    {"hostPID", "that the pod sees the host's processes", "tasks are isolated by the engine"},
    {"hostUsers", "whose users the pod has", "tasks run as the user who started the job", true},
    {"hostname", "what the pod's host is called",
     "tasks find each other by the cluster description"},
    {"hostnameOverride", "what the pod's host is called",
     "tasks find each other by the cluster description"},
    {"nodeName", "on which node the pods run", kEngine},
    {"os", "on which system the pods run", kEngine, true},
    {"overhead", "what the pod costs beside its containers", kEngine, true},
    {"preemptionPolicy", "whom the pods may push out", "the queue decides"},
    {"priority", "how important the pods are", "set priority"},
    {"readinessGates", "when the pods count as ready", "a task runs when its program runs"},
    {"resourceClaims", "devices that the pods claim", "set resources.gpu"},
    {"schedulingGroup", "with which pods it is placed", "all tasks of a job start together", true},
    {"schedulerName", "which scheduler places the pods", "all tasks of a job start together", true},
    {"schedulingGates", "what the pods wait for", "the queue decides"},
    {"serviceAccount", "which account of the cluster the pods have", "a task has none"},
    {"setHostnameAsFQDN", "what the pod's host is called", "a task keeps its machine's name", true},
    {"shareProcessNamespace", "that containers see each other's processes", "a task is one program",
     true},
    {"subdomain", "what the pod's host is called", "a task keeps its machine's name", true},
};

constexpr Unkept kContainer[] = {
    {"name", "", "", true},
    {"imagePullPolicy", "when the image is pulled", "the engine decides", true},
    {"lifecycle", "what runs at start and stop", "do it in the command: tasks get SIGTERM first"},
    {"livenessProbe", "when the program counts as hung", "limits.stall finds programs that hang"},
    {"readinessProbe", "when the program counts as ready", "others start without waiting for it"},
    {"startupProbe", "when the program counts as started", "others start without waiting for it"},
    {"resizePolicy", "how resources change while it runs", "they do not", true},
    {"restartPolicy", "when this container is started again", "the role's restart says it"},
    {"restartPolicyRules", "after which exit codes this container is started again",
     "the role's restart and on_exit say it"},
    {"stdin", "that the program can be typed to", "tasks read from nothing", true},
    {"stdinOnce", "that the program can be typed to", "tasks read from nothing", true},
    {"terminationMessagePath", "where its last words are read from", "shoal logs has all", true},
    {"terminationMessagePolicy", "where its last words are read from", "shoal logs has all", true},
    {"tty", "that the program has a terminal", "tasks write to a log", true},
    {"volumeDevices", "raw devices in the container", "open the machine's own"},
    {"workingDir", "in which directory the program starts",
     "tasks start in the directory of the job; begin the command with sh, -c, 'cd DIR && exec …'"},
};

constexpr Unkept kPort[] = {
    {"hostIP", "at which address of the host it is", "ports are leased on all", true},
    {"hostPort", "its number on the host", "Shoal leases a free port; see SHOAL_PORT"},
    {"protocol", "its protocol", "ports are TCP ports", true},
};

constexpr Unkept kHostPath[] = {{"type", "", "", true}};

constexpr Unkept kMount[] = {
    {"subPath", "", "", true},
    {"subPathExpr", "", "", true},
    {"mountPropagation", "", "", true},
    {"recursiveReadOnly", "", "", true},
};

double SuffixFactor(std::string_view suffix) {
  constexpr std::pair<std::string_view, double> kSuffixes[] = {{"", 1},
                                                               {"n", 1e-9},
                                                               {"u", 1e-6},
                                                               {"m", 1e-3},
                                                               {"k", 1e3},
                                                               {"M", 1e6},
                                                               {"G", 1e9},
                                                               {"T", 1e12},
                                                               {"P", 1e15},
                                                               {"E", 1e18},
                                                               {"Ki", 1024.0},
                                                               {"Mi", 1048576.0},
                                                               {"Gi", 1073741824.0},
                                                               {"Ti", 1099511627776.0},
                                                               {"Pi", 1125899906842624.0},
                                                               {"Ei", 1152921504606846976.0}};
  for (const auto& [name, factor] : kSuffixes) {
    if (name == suffix) return factor;
  }
  return 0;
}

void ReadPorts(Section* container, const PodOptions& options, job::Role* role) {
  for (Section& port : container->Subs("ports")) {
    port.set_at("roles." + role->name + ".ports");
    const std::string name = port.Text("name").value_or("");
    const auto number = port.Integer("containerPort", 1, 65535);
    port.Rest(kPort);
    if (!options.framework_port.empty() && name == options.framework_port) continue;
    std::string plain = PlainName(name, 15);
    if (plain.empty()) plain = "p" + std::to_string(number.value_or(0));
    const bool known = std::any_of(role->ports.begin(), role->ports.end(),
                                   [&](const job::Port& one) { return one.name == plain; });
    if (known || role->ports.size() >= 15) continue;
    role->ports.push_back({plain, false});
    if (number) {
      port.Lose("containerPort", "the program listened at port " + std::to_string(*number) +
                                     "; not kept: Shoal leases a free port and tells it in "
                                     "SHOAL_PORT_…; let the program listen there");
    }
  }
}

// What holds of a volume where there is no cluster; `kept`: on one it is there.
void TellVolume(Section* mount, const std::string& path, Section* volume, bool kept) {
  const std::string there = "the program found a volume at " + path;
  if (volume == nullptr) {
    mount->Lose("mountPath", there + "; not kept: no volume of that name is in the file");
    return;
  }
  const std::string but =
      kept ? "; kept in the role's kubernetes.volumes, and elsewhere " : "; not kept: ";
  if (auto host = volume->Sub("hostPath")) {
    const std::string source = host->Text("path").value_or("");
    host->Rest(kHostPath);
    if (source == path) return;  // the local engine's tasks see the same path
    mount->Lose("mountPath", "the program found the host's " + source + " at " + path + but +
                                 "tasks see the machine's own files; let it read " + source);
  } else if (volume->Take("emptyDir") != nullptr) {
    mount->Lose("mountPath",
                "the program found an empty directory at " + path + but +
                    "tasks see the machine's own files; $SHOAL_SCRATCH is "
                    "an empty directory of the task",
                path == "/dev/shm");
  } else {
    mount->Lose("mountPath", there + but +
                                 "tasks see the machine's own files; have the data at that path, "
                                 "or name where it is in the command");
  }
}

void ReadMounts(Section* container, std::vector<Section>* volumes, const std::string& at,
                job::Role* role, JobBuilder* builder) {
  std::map<std::string, Section*> by_name;
  for (Section& volume : *volumes) by_name[volume.Text("name").value_or("")] = &volume;
  for (Section& mount : container->Subs("volumeMounts")) {
    mount.set_at(at);
    const std::string name = mount.Text("name").value_or("");
    const std::string path = mount.Text("mountPath").value_or("");
    const auto found = by_name.find(name);
    Section* const volume = found == by_name.end() ? nullptr : found->second;
    const bool part = mount.Has("subPath") || mount.Has("subPathExpr");
    const bool read_only = mount.Flag("readOnly").value_or(false);
    const bool kept =
        volume != nullptr && !part && KeepVolume(volume, path, read_only, role, builder);
    TellVolume(&mount, path, volume, kept);
    mount.Rest(kMount);
  }
}

void ReadCommand(Section* container, const PodOptions& options, job::Role* role) {
  std::vector<std::string> command = container->Texts("command");
  const std::vector<std::string> arguments = container->Texts("args");
  const bool whole = !command.empty() || !options.needs_command;
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (whole) {
    role->command = std::move(command);
    return;
  }
  container->set_at("roles." + role->name);
  container->Lose(arguments.empty() ? "" : "args",
                  "the container has no command: its image's own entry point ran, which is not "
                  "known here; give the program with --set 'roles." +
                      role->name + ".command=[python, train.py]'");
}

Section* ChooseContainer(std::vector<Section>* containers, const PodOptions& options) {
  for (Section& container : *containers) {
    const std::string name = container.Text("name").value_or("");
    if (std::find(options.containers.begin(), options.containers.end(), name) !=
        options.containers.end()) {
      return &container;
    }
  }
  return containers->empty() ? nullptr : &containers->front();
}

void ReadContainers(Section* spec, const PodOptions& options, job::Role* role,
                    JobBuilder* builder) {
  std::vector<Section> containers = spec->Subs("containers");
  std::vector<Section> volumes = spec->Subs("volumes");
  Section* chosen = ChooseContainer(&containers, options);
  if (chosen == nullptr) {
    spec->Wrong("containers", "got no container, expected one with a command");
    return;
  }
  for (Section& container : containers) {
    if (&container == chosen) continue;
    container.Lose("", "the container " + job::Shown(container.Text("name").value_or("")) +
                           " ran beside the program in the same pod; not kept: a task is one "
                           "program; make it a role of its own");
  }
  const std::string at = chosen->at();
  ReadPodEnvironment(chosen, role, builder);
  chosen->set_at(at);
  if (const auto image = chosen->Text("image")) builder->SetImage(*image, chosen);
  ReadPodResources(chosen, role, builder);
  ReadPorts(chosen, options, role);
  ReadMounts(chosen, &volumes, at + ".command", role, builder);
  ReadCommand(chosen, options, role);
  chosen->set_at(at);
  KeepContainerWishes(chosen, role);
  chosen->Rest(kContainer);
}

}  // namespace

std::optional<double> ParseQuantity(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  if (text.empty() || (text[0] != '.' && (text[0] < '0' || text[0] > '9'))) return std::nullopt;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return std::nullopt;
  const double factor = SuffixFactor({stop, static_cast<size_t>(end - stop)});
  const double product = value * factor;
  if (factor == 0 || !std::isfinite(product)) return std::nullopt;
  return product;
}

void ReadTtl(Section* section, JobBuilder* builder) {
  const auto seconds = section->Integer("ttlSecondsAfterFinished", 0, 3'153'600'000);
  if (!seconds) return;
  // 0 there is at once, here for ever.
  builder->job()->limits.keep_records = std::chrono::seconds(std::max<int64_t>(1, *seconds));
}

void ReadMetadata(Section* document, JobBuilder* builder) {
  document->Take("apiVersion");
  document->Take("kind");
  document->Take("status");
  auto metadata = document->Sub("metadata");
  if (!metadata) return;
  if (const auto name = metadata->Text("name")) builder->SetName(*name);
  builder->job()->kubernetes.name_space = metadata->Text("namespace").value_or("");
  KeepPodMetadata(&*metadata, &builder->job()->kubernetes);
  metadata->Rest(kMetadata);
}

Pod ReadPod(Section* pod_template, const PodOptions& options, job::Role* role,
            JobBuilder* builder) {
  Pod pod;
  if (auto metadata = pod_template->Sub("metadata")) {
    metadata->Take("name");
    KeepPodMetadata(&*metadata, &role->kubernetes);
    metadata->Rest(kMetadata);
  }
  auto spec = pod_template->Sub("spec");
  pod_template->Rest({});
  if (!spec) {
    pod_template->Wrong("spec", "got a pod template without spec, expected one with containers");
    return pod;
  }
  pod.restart_policy =
      spec->Choice("restartPolicy", {"Never", "OnFailure", "Always", "ExitCode"}).value_or("");
  if (const auto grace = spec->Integer("terminationGracePeriodSeconds", 0, 3600)) {
    auto& limit = builder->job()->limits.stop_grace;
    const std::chrono::milliseconds wanted(*grace * 1000);
    limit = builder->job()->roles.size() == 1 ? wanted : std::max(limit, wanted);
  }
  for (Section& init : spec->Subs("initContainers")) {
    init.Lose("", "the container " + job::Shown(init.Text("name").value_or("")) +
                      " ran before the program; not kept: a task is one program; do it before, or "
                      "at the beginning of the command");
  }
  ReadContainers(&*spec, options, role, builder);
  KeepPodWishes(&*spec, role);
  spec->Rest(kPod);
  return pod;
}

}  // namespace shoal::dialect
