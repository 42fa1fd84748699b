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

constexpr std::chrono::seconds kGrace{30};  // terminationGracePeriodSeconds, where it is not said

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
    if (port.Has("protocol") && port.Text("protocol").value_or("TCP") != "TCP") {
      port.Lose("protocol", "it was not a port of TCP; not kept: ports are leased for TCP");
    }
    port.Rest("ContainerPort");
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

// "hostPath", as the file calls what the volume is made of.
std::string KindOf(const Section& volume) {
  for (const std::string& name : volume.Names()) {
    if (name != "name") return name;
  }
  return "emptyDir by default";
}

// What of a mount holds where there is no cluster; `kept`: on one it is there.
void TellMount(Section* mount, const std::string& path, Section* volume, bool kept) {
  const std::string name = job::Shown(mount->Text("name").value_or(""));
  if (volume == nullptr) {
    return mount->Lose("", "the program found a volume at " + path +
                               "; not kept: no volume of the name " + name + " is in the file");
  }
  const std::string kind = KindOf(*volume);
  std::string there = "the program found the volume " + name + " (" + kind + ") at " + path;
  std::string source;
  if (auto host = volume->Sub("hostPath")) {
    source = host->Text("path").value_or("");
    host->Rest("HostPathVolumeSource");
    there += ", the host's " + source;
  }
  if (auto empty = volume->Sub("emptyDir"); empty && empty->Has("medium")) {
    there += ", of the medium " + empty->Text("medium").value_or("");
  }
  const bool read_only = mount->Flag("readOnly").value_or(false);
  if (read_only) there += ", readOnly";
  // The local engine's tasks see the same path, and may write there if their user may.
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
    mount->KeepFor("kubernetes", "",
                   there + "; kept in the role's kubernetes.volumes, and elsewhere " + elsewhere,
                   scratch && path == "/dev/shm");
  } else {
    mount->Lose("", there + "; not kept: " + elsewhere, scratch && path == "/dev/shm");
  }
}

void ReadMounts(Section* container, std::vector<Section>* volumes, const std::string& at,
                job::Role* role, JobBuilder* builder) {
  std::map<std::string, Section*> by_name;
  std::map<std::string, std::string> empty_at;  // by name of the volume
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
    TellMount(&mount, path, volume, kept);
    if (kept && volume->Has("emptyDir")) {
      const auto [first, alone] = empty_at.try_emplace(name, path);
      if (!alone) {
        mount.Lose("mountPath", "the empty directory " + job::Shown(name) + " was at " +
                                    first->second + " and at " + path +
                                    "; not kept: each path has one of its own; let the program "
                                    "use one path, or link the other to it");
      }
    }
    mount.Rest("VolumeMount");
  }
}

void ReadCommand(Section* container, const PodOptions& options, job::Role* role,
                 JobBuilder* builder) {
  std::vector<std::string> command = container->Texts("command");
  std::vector<std::string> arguments = container->Texts("args");
  if (command.empty() && options.needs_command) {
    const char* field = arguments.empty() ? "" : "args";
    return builder->SetEntryPoint(role, std::move(arguments), container, field);
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  role->command = std::move(command);
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

void TellName(Section* chosen, const PodOptions& options, const job::Role& role) {
  const std::string name = chosen->Text("name").value_or("");
  const auto& wanted = options.containers;
  if (std::find(wanted.begin(), wanted.end(), name) != wanted.end() || name == role.name) return;
  chosen->Lose("name",
               wanted.empty() ? "the container was called " + job::Shown(name) +
                                    "; not kept: a task is called by its role"
                              : "no container is called " + job::Shown(wanted.front()) +
                                    ", which marks the program; the first one is taken for it",
               true);
}

void ReadPull(Section* container) {
  const std::string policy = container->Text("imagePullPolicy").value_or("");
  if (policy.empty()) return;
  const bool usual = policy == "IfNotPresent";
  container->Lose("imagePullPolicy",
                  usual ? "IfNotPresent; so do the engines that have images"
                        : job::Shown(policy) +
                              " said when the image is pulled; not kept: the engine decides, and "
                              "an image of the same name that is there already may be an older one",
                  usual);
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
  TellName(chosen, options, *role);
  ReadPodEnvironment(chosen, role, builder);
  chosen->set_at(at);
  if (const auto image = chosen->Text("image")) builder->SetImage(*image, *role, chosen);
  ReadPodResources(chosen, role, builder);
  ReadPull(chosen);
  if (const auto dir = chosen->Text("workingDir"); dir && !dir->empty())
    builder->SetWorkDir(*role, *dir, chosen);
  ReadPorts(chosen, options, role);
  ReadMounts(chosen, &volumes, at + ".command", role, builder);
  ReadCommand(chosen, options, role, builder);
  chosen->set_at(at);
  KeepContainerWishes(chosen, role);
  chosen->Rest("Container");
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
  // What a program has to save what it has, where the pods do not say it.
  builder->job()->limits.stop_grace = kGrace;
  auto metadata = document->Sub("metadata");
  if (!metadata) return;
  if (const auto name = metadata->Text("name")) builder->SetName(*name);
  builder->job()->kubernetes.name_space = metadata->Text("namespace").value_or("");
  KeepPodMetadata(&*metadata, &builder->job()->kubernetes);
  metadata->Rest("ObjectMeta");
}

Pod ReadPod(Section* pod_template, const PodOptions& options, job::Role* role,
            JobBuilder* builder) {
  Pod pod;
  if (auto metadata = pod_template->Sub("metadata")) {
    KeepPodMetadata(&*metadata, &role->kubernetes);
    metadata->Rest("PodTemplateMeta");
  }
  auto spec = pod_template->Sub("spec");
  pod_template->Rest("PodTemplateSpec");
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
  } else if (builder->job()->roles.size() > 1) {
    auto& limit = builder->job()->limits.stop_grace;
    limit = std::max<std::chrono::milliseconds>(limit, kGrace);
  }
  if (auto os = spec->Sub("os"); os && os->Text("name").value_or("linux") != "linux") {
    os->Wrong("name", "got os.name " + job::Shown(os->Text("name").value_or("")) +
                          ", expected linux, which is what tasks run on");
  }
  for (Section& init : spec->Subs("initContainers")) {
    init.Lose("", "the container " + job::Shown(init.Text("name").value_or("")) +
                      " ran before the program; not kept: a task is one program; do it before, or "
                      "at the beginning of the command");
  }
  ReadContainers(&*spec, options, role, builder);
  KeepPodWishes(&*spec, role);
  spec->Rest("PodSpec");
  return pod;
}

}  // namespace shoal::dialect
