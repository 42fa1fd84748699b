#include "import/kubernetes/pod_template.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "import/kubernetes/pod_environment.h"
#include "import/kubernetes/pod_resources.h"
#include "import/kubernetes/pod_settings.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

constexpr std::chrono::seconds kGrace{30};        // default of terminationGracePeriodSeconds
constexpr std::chrono::seconds kMostGrace{3600};  // of limits.stop_grace

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

void ReadPorts(FieldReader* container, const PodOptions& options, job::Role* role) {
  for (FieldReader& port : container->ReadObjects("ports")) {
    port.set_at("roles." + role->name + ".ports");
    const std::string name = port.ReadText("name").value_or("");
    const auto number = port.ReadInteger("containerPort", 1, 65535);
    if (port.HasField("protocol") && port.ReadText("protocol").value_or("TCP") != "TCP") {
      port.AddLoss("protocol", "it was not a port of TCP; not kept: ports are leased for TCP");
    }
    port.ReportUnread("ContainerPort");
    if (!options.framework_port.empty() && name == options.framework_port) continue;
    if (number && options.framework_port_numbers.contains(*number)) continue;
    std::string plain = ToRoleName(name, 15);
    if (plain.empty()) plain = "p" + std::to_string(number.value_or(0));
    const bool known = std::any_of(role->ports.begin(), role->ports.end(),
                                   [&](const job::Port& one) { return one.name == plain; });
    if (known || role->ports.size() >= 15) continue;
    role->ports.push_back({plain, false});
    if (number) {
      port.AddLoss("containerPort", "the program listened at port " + std::to_string(*number) +
                                        "; not kept: Shoal leases a free port and tells it in "
                                        "SHOAL_PORT_…; let the program listen there");
    }
  }
}

// The kind of volume, such as "hostPath".
std::string KindOf(const FieldReader& volume) {
  for (const std::string& name : volume.Names()) {
    if (name != "name") return name;
  }
  return "emptyDir by default";
}

// Reports how a mount behaves outside of a cluster; `kept`: it works on Kubernetes.
void ReportMount(FieldReader* mount, const std::string& path, FieldReader* volume, bool kept) {
  const std::string name = job::PrintableText(mount->ReadText("name").value_or(""));
  if (volume == nullptr) {
    return mount->AddLoss("", "the program found a volume at " + path +
                                  "; not kept: no volume of the name " + name + " is in the file");
  }
  const std::string kind = KindOf(*volume);
  std::string there = "the program found the volume " + name + " (" + kind + ") at " + path;
  std::string source;
  if (auto host = volume->ReadObject("hostPath")) {
    source = host->ReadText("path").value_or("");
    host->ReportUnread("HostPathVolumeSource");
    there += ", the host's " + source;
  }
  if (auto empty = volume->ReadObject("emptyDir"); empty && empty->HasField("medium")) {
    there += ", of the medium " + empty->ReadText("medium").value_or("");
  }
  const bool read_only = mount->ReadFlag("readOnly").value_or(false);
  if (read_only) there += ", readOnly";
  // With the local engine, tasks see the same path and may write there if their user may.
  const bool same = kept && source == path && !read_only;
  if (same) return;
  const bool scratch = kind.starts_with("emptyDir");
  const std::string elsewhere =
      "tasks see the machine's own files; " +
      (scratch          ? "$SHOAL_SCRATCH is an empty directory of the task"
       : source.empty() ? "have the data at that path, or name where it is in the command"
       : source != path ? "let it read " + source
                        : "its user may write there, if the machine lets it");
  if (kept) {
    mount->AddLossExceptOn(
        "kubernetes", "",
        there + "; kept in the role's kubernetes.volumes, and elsewhere " + elsewhere,
        scratch && path == "/dev/shm");
  } else {
    mount->AddLoss("", there + "; not kept: " + elsewhere, scratch && path == "/dev/shm");
  }
}

void ReadMounts(FieldReader* container, std::vector<FieldReader>* volumes, const std::string& at,
                job::Role* role, JobBuilder* builder) {
  std::map<std::string, FieldReader*> by_name;
  std::map<std::string, std::string> empty_at;  // by volume
  for (FieldReader& volume : *volumes) by_name[volume.ReadText("name").value_or("")] = &volume;
  for (FieldReader& mount : container->ReadObjects("volumeMounts")) {
    mount.set_at(at);
    const std::string name = mount.ReadText("name").value_or("");
    const std::string path = mount.ReadText("mountPath").value_or("");
    const auto found = by_name.find(name);
    FieldReader* const volume = found == by_name.end() ? nullptr : found->second;
    const bool part = mount.HasField("subPath") || mount.HasField("subPathExpr");
    const bool read_only = mount.ReadFlag("readOnly").value_or(false);
    const bool kept =
        volume != nullptr && !part && AddVolumeFrom(volume, path, read_only, role, builder);
    ReportMount(&mount, path, volume, kept);
    if (kept && volume->HasField("emptyDir")) {
      const auto [first, alone] = empty_at.try_emplace(name, path);
      if (!alone) {
        mount.AddLoss("mountPath", "the empty directory " + job::PrintableText(name) + " was at " +
                                       first->second + " and at " + path +
                                       "; not kept: each path has one of its own; let the program "
                                       "use one path, or link the other to it");
      }
    }
    mount.ReportUnread("VolumeMount");
  }
}

void ReadCommand(FieldReader* container, const PodOptions& options, job::Role* role,
                 JobBuilder* builder) {
  std::vector<std::string> command = container->ReadTexts("command");
  std::vector<std::string> arguments = container->ReadTexts("args");
  if (command.empty() && options.needs_command) {
    const char* field = arguments.empty() ? "" : "args";
    return builder->SetEntryPoint(role, std::move(arguments), container, field);
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  role->command = std::move(command);
}

FieldReader* ChooseContainer(std::vector<FieldReader>* containers, const PodOptions& options) {
  for (FieldReader& container : *containers) {
    const std::string name = container.ReadText("name").value_or("");
    if (std::find(options.containers.begin(), options.containers.end(), name) !=
        options.containers.end()) {
      return &container;
    }
  }
  return containers->empty() ? nullptr : &containers->front();
}

void ReportName(FieldReader* chosen, const PodOptions& options, const job::Role& role) {
  const std::string name = chosen->ReadText("name").value_or("");
  const auto& wanted = options.containers;
  if (name.empty()) return;
  if (std::find(wanted.begin(), wanted.end(), name) != wanted.end() || name == role.name) return;
  chosen->AddLoss("name",
                  wanted.empty() ? "the container was called " + job::PrintableText(name) +
                                       "; not kept: a task is called by its role"
                                 : "no container is called " + job::PrintableText(wanted.front()) +
                                       ", which marks the program; the first one is taken for it",
                  true);
}

// "python" and "python:latest", which Kubernetes pulls each time where the pod does not say when.
bool IsPulledAlways(const std::string& image) {
  const std::string name = image.substr(image.rfind('/') + 1);
  if (name.empty() || name.find('@') != std::string::npos) return false;
  return name.find(':') == std::string::npos || name.ends_with(":latest");
}

void ReadPull(FieldReader* container) {
  const std::string policy = container->ReadText("imagePullPolicy").value_or("");
  if (policy.empty() && IsPulledAlways(container->ReadText("image").value_or(""))) {
    container->AddLoss("imagePullPolicy",
                       "without one an image of the tag 'latest' was pulled before each start; not "
                       "kept: an image of that name that is there already may be an older one",
                       true);
  }
  if (policy.empty()) return;
  const bool usual = policy == "IfNotPresent";
  container->AddLoss(
      "imagePullPolicy",
      usual ? "IfNotPresent; so do the engines that have images"
            : job::PrintableText(policy) +
                  " said when the image is pulled; not kept: the engine decides, and "
                  "an image of the same name that is there already may be an older one",
      usual);
}

void ReadContainers(FieldReader* spec, const PodOptions& options, job::Role* role,
                    JobBuilder* builder) {
  std::vector<FieldReader> containers = spec->ReadObjects("containers");
  std::vector<FieldReader> volumes = spec->ReadObjects("volumes");
  FieldReader* chosen = ChooseContainer(&containers, options);
  if (chosen == nullptr) {
    spec->AddError("containers", "got no container, expected one with a command");
    return;
  }
  for (FieldReader& container : containers) {
    if (&container == chosen) continue;
    container.AddLoss("", "the container " +
                              job::PrintableText(container.ReadText("name").value_or("")) +
                              " ran beside the program in the same pod; not kept: a task is one "
                              "program; make it a role of its own");
  }
  const std::string at = chosen->at();
  ReportName(chosen, options, *role);
  ReadPodEnvironment(chosen, options.labels, role, builder);
  chosen->set_at(at);
  if (const auto image = chosen->ReadText("image")) builder->SetImage(*image, *role, chosen);
  ReadPodResources(chosen, role, builder);
  ReadPull(chosen);
  if (const auto dir = chosen->ReadText("workingDir"); dir && !dir->empty())
    builder->SetWorkDir(*role, *dir, chosen);
  ReadPorts(chosen, options, role);
  ReadMounts(chosen, &volumes, at + ".command", role, builder);
  ReadCommand(chosen, options, role, builder);
  chosen->set_at(at);
  ReadContainerSettings(chosen, role);
  chosen->ReportUnread("Container");
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

void ReadTtl(FieldReader* section, JobBuilder* builder) {
  const auto seconds = section->ReadInteger("ttlSecondsAfterFinished", 0, 3'153'600'000);
  if (!seconds) return;
  // 0 means "at once" for Kubernetes and "forever" for Shoal.
  builder->job()->limits.keep_records = std::chrono::seconds(std::max<int64_t>(1, *seconds));
}

void ReadMetadata(FieldReader* document, JobBuilder* builder) {
  document->ReadNode("apiVersion");
  document->ReadNode("kind");
  // The grace period to save state, if the pods have no value.
  builder->job()->limits.stop_grace = kGrace;
  auto metadata = document->ReadObject("metadata");
  if (!metadata) return;
  const auto name = metadata->ReadText("name");
  if (name && !name->empty()) {
    builder->SetName(*name);
  } else if (const auto prefix = metadata->ReadText("generateName")) {
    builder->SetName(NameOfPrefix(*prefix));
    metadata->AddLoss("generateName",
                      job::PrintableText(*prefix) +
                          " said how its name begins; kept as the name, to which Shoal adds an ID",
                      true);
  }
  builder->job()->kubernetes.name_space = metadata->ReadText("namespace").value_or("");
  ReadPodMetadata(&*metadata, &builder->job()->kubernetes);
  metadata->ReportUnread("ObjectMeta");
}

PodSummary ReadPod(FieldReader* pod_template, const PodOptions& options, job::Role* role,
                   JobBuilder* builder) {
  PodSummary pod;
  if (auto metadata = pod_template->ReadObject("metadata")) {
    ReadPodMetadata(&*metadata, &role->kubernetes);
    metadata->ReportUnread("PodTemplateMeta");
  }
  auto spec = pod_template->ReadObject("spec");
  pod_template->ReportUnread("PodTemplateSpec");
  if (!spec) {
    pod_template->AddError("spec", "got a pod template without spec, expected one with containers");
    return pod;
  }
  pod.restart_policy =
      spec->ReadChoice("restartPolicy", {"Never", "OnFailure", "Always", "ExitCode"}).value_or("");
  if (const auto grace = spec->ReadInteger("terminationGracePeriodSeconds", 0, INT32_MAX)) {
    auto& limit = builder->job()->limits.stop_grace;
    const std::chrono::milliseconds wanted(std::min<int64_t>(*grace, kMostGrace.count()) * 1000);
    if (*grace > kMostGrace.count())
      spec->AddLoss("terminationGracePeriodSeconds",
                    std::to_string(*grace) +
                        " s were the time to end after SIGTERM; kept is an hour, the longest");
    limit = builder->job()->roles.size() == 1 ? wanted : std::max(limit, wanted);
  } else if (builder->job()->roles.size() > 1) {
    auto& limit = builder->job()->limits.stop_grace;
    limit = std::max<std::chrono::milliseconds>(limit, kGrace);
  }
  if (auto os = spec->ReadObject("os"); os && os->ReadText("name").value_or("linux") != "linux") {
    os->AddError("name", "got os.name " + job::PrintableText(os->ReadText("name").value_or("")) +
                             ", expected linux, which is what tasks run on");
  }
  for (FieldReader& init : spec->ReadObjects("initContainers")) {
    init.AddLoss("",
                 "the container " + job::PrintableText(init.ReadText("name").value_or("")) +
                     " ran before the program; not kept: a task is one program; do it before, or "
                     "at the beginning of the command");
  }
  ReadContainers(&*spec, options, role, builder);
  ReadPodSettings(&*spec, role);
  spec->ReportUnread("PodSpec");
  return pod;
}

}  // namespace shoal::importer
