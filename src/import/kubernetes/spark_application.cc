// SparkApplication of the Spark operator (sparkoperator.k8s.io/v1beta2).
//
// The driver runs `spark-submit` in client mode against a standalone cluster inside the job
// (framework spark): the executors become its workers. The fields of a driver or executor that
// describe its pod are put into a pod template, which is read as any other.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/conversion/importer.h"
#include "import/conversion/node_edit.h"
#include "import/kubernetes/pod_template.h"
#include "job/spec/cluster_reference.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::Node;
using job::RestartWhen;

constexpr const char* kDriver = "driver";
constexpr const char* kWorker = "worker";
constexpr int64_t kMiB = int64_t{1} << 20;
// Spark's least overhead beside the heap, and the memory of a standalone worker's own JVM.
constexpr int64_t kLeastOverhead = 384 * kMiB;
constexpr int64_t kWorkerJvm = 1024 * kMiB;
constexpr double kOverheadFactor = 0.1;         // of programs for the JVM
constexpr double kForeignOverheadFactor = 0.4;  // of Python and R
constexpr const char* kSubmit = "exec \"${SPARK_HOME:+$SPARK_HOME/bin/}spark-submit\" \"$@\"";

// Parses a size as Spark writes them: "512m", "2g", "1024" (MiB). nullopt for bad syntax.
std::optional<int64_t> ParseSparkSize(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text.size() > 1 && text.ends_with('b') && !std::isdigit(text[text.size() - 2]))
    text.pop_back();
  int64_t unit = kMiB;
  constexpr std::string_view kUnits = "bkmgtp";
  if (!text.empty() && kUnits.find(text.back()) != std::string_view::npos) {
    unit = int64_t{1} << (10 * kUnits.find(text.back()));
    text.pop_back();
  }
  const auto number = job::ParseInteger(text);
  if (!number || *number < 0 || *number > INT64_MAX / unit) return std::nullopt;
  return *number * unit;
}

// Reads one SparkApplicationSpec.
class SparkReader {
 public:
  SparkReader(const Node& node, JobBuilder* builder) : node_(node), builder_(builder) {}

  void Run(FieldReader* spec) {
    const std::string type =
        spec->ReadChoice("type", {"Java", "Scala", "Python", "R"}).value_or("Scala");
    foreign_ = type == "Python" || type == "R";
    factor_ = ReadFactor(spec);
    const bool driver = ReadDriver(spec);
    const bool executor = ReadExecutors(spec);
    if (!driver || !executor) return;
    ReadSubmission(spec);
    ReadRestarts(spec);
    if (const auto seconds = spec->ReadInteger("timeToLiveSeconds", 0, INT32_MAX)) {
      builder_->job()->limits.keep_records = std::chrono::seconds(std::max<int64_t>(*seconds, 1));
    }
    for (const char* shared :
         {"image", "imagePullPolicy", "imagePullSecrets", "volumes", "nodeSelector"}) {
      (void)spec->ReadNode(shared);  // put into both pods
    }
    spec->ReportUnread("SparkApplicationSpec");
  }

 private:
  double ReadFactor(FieldReader* spec) {
    const auto text = spec->ReadText("memoryOverheadFactor");
    if (!text) return foreign_ ? kForeignOverheadFactor : kOverheadFactor;
    const auto factor = ParseQuantity(*text);
    if (factor && *factor >= 0 && *factor <= 100) return *factor;
    spec->AddError("memoryOverheadFactor",
                   "got " + job::PrintableText(*text) + ", expected a number such as 0.1");
    return 0;
  }

  std::optional<int64_t> ReadSize(FieldReader* section, const std::string& name) {
    const auto text = section->ReadText(name);
    if (!text) return std::nullopt;
    const auto size = ParseSparkSize(*text);
    if (!size) {
      section->AddError(name, "got " + job::PrintableText(*text) +
                                  ", expected a size as Spark writes it, such as 512m or 2g");
    }
    return size;
  }

  bool ReadDriver(FieldReader* spec) {
    auto driver = spec->ReadObject(kDriver);
    if (!driver) {
      spec->AddError(kDriver, "got none, expected a section, which may be empty: {}");
      return false;
    }
    job::Role* role = builder_->AddRole(kDriver, driver->place(), driver->path());
    const int64_t heap = ReadSize(&*driver, "memory").value_or(kWorkerJvm);
    conf_.push_back("--driver-memory=" + std::to_string(heap / kMiB) + "m");
    if (const auto options = driver->ReadText("javaOptions"))
      conf_.push_back("--driver-java-options=" + *options);
    const double cores = static_cast<double>(driver->ReadInteger("cores", 1, 100'000).value_or(1));
    return ReadPodOf(&*driver, "SparkApplicationSpecDriver", cores, heap, role);
  }

  bool ReadExecutors(FieldReader* spec) {
    auto executor = spec->ReadObject("executor");
    if (!executor) {
      spec->AddError("executor", "got none, expected a section, which may be empty: {}");
      return false;
    }
    job::Role* role = builder_->AddRole(kWorker, executor->place(), executor->path());
    role->replicas =
        static_cast<int>(executor->ReadInteger("instances", 1, job::kMaxReplicas).value_or(1));
    const int64_t heap = ReadSize(&*executor, "memory").value_or(kWorkerJvm);
    const auto cores = executor->ReadInteger("cores", 1, 100'000).value_or(1);
    conf_.push_back("--executor-memory=" + std::to_string(heap / kMiB) + "m");
    conf_.push_back("--executor-cores=" + std::to_string(cores));
    if (const auto options = executor->ReadText("javaOptions"))
      conf_.push_back("--conf=spark.executor.extraJavaOptions=" + *options);
    const bool read = ReadPodOf(&*executor, "SparkApplicationSpecExecutor",
                                static_cast<double>(cores), heap, role);
    // The worker is a process of its own that starts the executor.
    role->resources.memory_bytes += kWorkerJvm;
    role->restart.when = RestartWhen::kAlways;
    role->restart.limit = kUnlimitedRestarts;
    builder_->SetScope(role, job::RestartScope::kTask);
    return read;
  }

  // Reads the pod of a driver or executor: `cores` and `heap` are its resources where it has no
  // others.
  bool ReadPodOf(FieldReader* section, std::string_view definition, double cores, int64_t heap,
                 job::Role* role) {
    const int64_t overhead =
        ReadSize(section, "memoryOverhead")
            .value_or(std::max(kLeastOverhead,
                               static_cast<int64_t>(factor_ * static_cast<double>(heap))));
    const auto limit = section->ReadText("memoryLimit");
    Node pod = MakePod(section);
    FieldReader reader(pod, section->path(), "roles." + role->name, builder_->diagnostics());
    PodOptions options;
    options.needs_command = false;
    RenameFields(section->path());
    ReadPod(&reader, options, role, builder_);
    job::Resources& has = role->resources;
    has.cpu = cores;
    has.memory_bytes = heap + overhead;
    ReadCores(section, &has);
    if (limit) {
      const auto bytes = ParseQuantity(*limit);
      if (!bytes || *bytes <= 0 || *bytes > 1e18) {
        section->AddError("memoryLimit",
                          "got " + job::PrintableText(*limit) + ", expected a size such as 2Gi");
      } else {
        has.memory_request = has.memory_bytes;
        has.memory_bytes = std::max(has.memory_bytes, static_cast<int64_t>(*bytes));
      }
    }
    ReadVariables(section, role);
    SetLocalDirectories(*section, role);
    section->set_at("roles." + role->name);
    section->ReportUnread(definition);
    return builder_->diagnostics()->ok();
  }

  // coreRequest and coreLimit, quantities of Kubernetes.
  void ReadCores(FieldReader* section, job::Resources* has) {
    const double cores = has->cpu;
    for (const char* name : {"coreRequest", "coreLimit"}) {
      const auto text = section->ReadText(name);
      if (!text) continue;
      const auto number = ParseQuantity(*text);
      if (!number || *number <= 0 || *number > 1e6) {
        section->AddError(
            name, "got " + job::PrintableText(*text) + ", expected cores such as 500m or 2");
      } else if (std::string_view(name) == "coreLimit") {
        has->cpu = *number;
        if (has->cpu_request <= 0) has->cpu_request = std::min(cores, *number);
      } else {
        has->cpu_request = *number;
      }
    }
  }

  void ReadVariables(FieldReader* section, job::Role* role) {
    if (auto variables = section->ReadObject("envVars")) {
      for (const auto& [key, value] : variables->ReadAll())
        builder_->SetVariable(role, key.text, job::EscapeReferences(value->text), &*variables);
    }
  }

  // Spark keeps its blocks in the volumes that are called so (LocalDirsFeatureStep of Spark,
  // SparkLocalDirVolumePrefix of the operator). An empty one is what Spark has anyway, in the
  // task's own directory.
  void SetLocalDirectories(const FieldReader& section, job::Role* role) {
    const Node* mounts = section.node().Find("volumeMounts");
    const Node* volumes = node_.Find("volumes");
    if (mounts == nullptr || volumes == nullptr) return;
    std::string list;
    for (const Node& mount : mounts->items) {
      const Node* name = mount.Find("name");
      const Node* path = mount.Find("mountPath");
      if (name == nullptr || path == nullptr || !name->text.starts_with("spark-local-dir-"))
        continue;
      const bool outlives = std::ranges::any_of(volumes->items, [&](const Node& volume) {
        const Node* called = volume.Find("name");
        return called != nullptr && called->text == name->text &&
               volume.Find("emptyDir") == nullptr;
      });
      if (outlives) list += (list.empty() ? "" : ",") + path->text;
    }
    if (!list.empty()) role->env.try_emplace("SPARK_LOCAL_DIRS", job::EscapeReferences(list));
  }

  // Problems in the pod template of `section` are reported at the section's own fields.
  void RenameFields(const std::string& section) {
    const std::pair<const char*, const char*> fields[] = {
        {".spec.containers[0].", "."},
        {".spec.securityContext", ".podSecurityContext"},
        {".spec.serviceAccountName", ".serviceAccount"},
        {".spec.", "."},
        {".metadata.", "."}};
    builder_->diagnostics()->RenameFields(section + ".spec.volumes", "spec.volumes");
    for (const auto& [prefix, name] : fields)
      builder_->diagnostics()->RenameFields(section + prefix, section + name);
  }

  // A pod template of the section's fields, which become read.
  Node MakePod(FieldReader* section) {
    Node pod;
    pod.kind = Node::Kind::kMap;
    pod.place = section->place();
    Node container = pod;
    for (const char* name : {"env", "envFrom", "volumeMounts", "securityContext", "lifecycle"}) {
      if (const Node* value = section->ReadNode(name)) SetField(&container, name, *value);
    }
    const Node* image = section->ReadNode("image");
    if (image == nullptr) image = node_.Find("image");
    if (image != nullptr) SetField(&container, "image", *image);
    if (const Node* policy = node_.Find("imagePullPolicy"))
      SetField(&container, "imagePullPolicy", *policy);
    if (const Node* ports = section->ReadNode("ports")) SetField(&container, "ports", *ports);
    if (const Node* gpu = section->ReadNode("gpu")) {
      const Node* resource = gpu->Find("name");
      const Node* quantity = gpu->Find("quantity");
      if (resource != nullptr && quantity != nullptr)
        SetField(FindOrAdd(FindOrAdd(&container, "resources"), "limits"), resource->text,
                 *quantity);
    }
    Node* metadata = FindOrAdd(&pod, "metadata");
    for (const char* name : {"labels", "annotations"}) {
      if (const Node* value = section->ReadNode(name)) SetField(metadata, name, *value);
    }
    Node* spec = FindOrAdd(&pod, "spec");
    SetField(spec, "containers", ListOf({std::move(container)}, pod));
    for (FieldReader& sidecar : section->ReadObjects("sidecars")) {
      sidecar.AddLoss("", "the container " +
                              job::PrintableText(sidecar.ReadText("name").value_or("")) +
                              " ran beside the program; not kept: a task is one program");
    }
    PutPodFields(section, spec);
    return pod;
  }

  void PutPodFields(FieldReader* section, Node* spec) {
    constexpr std::pair<const char*, const char*> kFields[] = {
        {"affinity", "affinity"},
        {"tolerations", "tolerations"},
        {"nodeSelector", "nodeSelector"},
        {"podSecurityContext", "securityContext"},
        {"schedulerName", "schedulerName"},
        {"hostNetwork", "hostNetwork"},
        {"serviceAccount", "serviceAccountName"},
        {"hostAliases", "hostAliases"},
        {"dnsConfig", "dnsConfig"},
        {"shareProcessNamespace", "shareProcessNamespace"},
        {"terminationGracePeriodSeconds", "terminationGracePeriodSeconds"},
        {"priorityClassName", "priorityClassName"},
        {"initContainers", "initContainers"}};
    if (const Node* shared = node_.Find("nodeSelector")) SetField(spec, "nodeSelector", *shared);
    for (const auto& [name, field] : kFields) {
      const Node* value = section->ReadNode(name);
      if (value == nullptr) continue;
      FindOrAdd(spec, field);
      MergePatch(*value, field, spec->Find(field));
      if (value->kind != Node::Kind::kMap) SetField(spec, field, *value);
    }
    if (const Node* volumes = node_.Find("volumes")) SetField(spec, "volumes", *volumes);
    const Node* secrets = node_.Find("imagePullSecrets");
    if (secrets == nullptr || secrets->kind != Node::Kind::kList) return;
    std::vector<Node> named;
    for (const Node& secret : secrets->items) {
      Node one;
      one.kind = Node::Kind::kMap;
      one.place = secret.place;
      SetField(&one, "name", secret);
      named.push_back(std::move(one));
    }
    SetField(spec, "imagePullSecrets", ListOf(std::move(named), *secrets));
  }

  // The command line of spark-submit.
  void ReadSubmission(FieldReader* spec) {
    std::vector<std::string> line = {"sh", "-c", kSubmit, "spark-submit",
                                     "--name=" + builder_->job()->name};
    if (const auto main = spec->ReadText("mainClass")) line.push_back("--class=" + *main);
    if (const auto user = spec->ReadText("proxyUser")) line.push_back("--proxy-user=" + *user);
    if (auto deps = spec->ReadObject("deps")) {
      constexpr std::pair<const char*, const char*> kFlags[] = {
          {"jars", "--jars="},
          {"files", "--files="},
          {"pyFiles", "--py-files="},
          {"packages", "--packages="},
          {"excludePackages", "--exclude-packages="},
          {"repositories", "--repositories="},
          {"archives", "--archives="}};
      for (const auto& [name, flag] : kFlags) {
        std::string list;
        for (const std::string& one : deps->ReadTexts(name))
          list += (list.empty() ? "" : ",") + WithoutLocal(one);
        if (!list.empty()) line.push_back(flag + list);
      }
      deps->ReportUnread("SparkApplicationSpecDeps");
    }
    line.insert(line.end(), conf_.begin(), conf_.end());
    ReadConf(spec, "sparkConf", "", &line);
    ReadConf(spec, "hadoopConf", "spark.hadoop.", &line);
    const auto file = spec->ReadText("mainApplicationFile");
    if (!file)
      return spec->AddError("mainApplicationFile", "got none, expected the program's file");
    line.push_back(WithoutLocal(*file));
    for (std::string& argument : spec->ReadTexts("arguments")) line.push_back(std::move(argument));
    builder_->FindRole(kDriver)->command = std::move(line);
  }

  // "local://" is a file of the image.
  static std::string WithoutLocal(const std::string& file) {
    constexpr std::string_view kLocal = "local://";
    return file.starts_with(kLocal) ? file.substr(kLocal.size()) : file;
  }

  static void ReadConf(FieldReader* spec, const char* name, const std::string& prefix,
                       std::vector<std::string>* line) {
    auto conf = spec->ReadObject(name);
    if (!conf) return;
    conf->set_at("roles.driver.command");
    for (const auto& [key, value] : conf->ReadAll()) {
      if (key.text.starts_with("spark.kubernetes.")) {
        conf->AddLoss(key.text,
                      "a property of Spark's scheduler for Kubernetes; not kept: the executors are "
                      "tasks of the job; set the fields of its roles");
      } else {
        line->push_back("--conf=" + prefix + key.text + "=" + value->text);
      }
    }
  }

  // A driver that failed is submitted again, with new executors.
  void ReadRestarts(FieldReader* spec) {
    job::Role* driver = builder_->FindRole(kDriver);
    driver->restart.when = RestartWhen::kNever;
    driver->restart.limit = 0;
    builder_->SetScope(driver, job::RestartScope::kJob);
    auto policy = spec->ReadObject("restartPolicy");
    if (!policy) return;
    policy->set_at("roles.driver.restart");
    const auto type = policy->ReadChoice("type", {"Never", "OnFailure", "Always"});
    const auto retries = policy->ReadInteger("onFailureRetries", 0, INT32_MAX);
    const auto interval = policy->ReadInteger("onFailureRetryInterval", 0, 86'400);
    if (type == "Always") {
      policy->AddLoss("type",
                      "Always ran the application again after each end, a good one too; not kept: "
                      "it is run again after failures only");
    }
    if (type == "OnFailure" || type == "Always") {
      driver->restart.when = RestartWhen::kAlways;
      driver->restart.limit = static_cast<int>(
          std::min<int64_t>(retries.value_or(kUnlimitedRestarts), kUnlimitedRestarts));
      if (interval) driver->restart.backoff = std::chrono::seconds(*interval);
      driver->restart.backoff_max = std::max(driver->restart.backoff, driver->restart.backoff_max);
    }
    policy->ReportUnread("SparkApplicationSpecRestartPolicy");
  }

  const Node& node_;  // of the spec
  JobBuilder* const builder_;
  bool foreign_ = false;
  double factor_ = 0;
  std::vector<std::string> conf_;  // flags of spark-submit from driver and executor
};

class SparkApplication final : public Importer {
 public:
  std::string DetectKind(const Node& document) const override {
    const Node* kind = document.Find("kind");
    const Node* version = document.Find("apiVersion");
    const bool ours = kind != nullptr && version != nullptr && kind->text == "SparkApplication" &&
                      version->text.starts_with("sparkoperator.k8s.io/");
    return ours ? "SparkApplication" : "";
  }
  void Import(const Node& node, JobBuilder* builder) const override {
    FieldReader document(node, "", "", builder->diagnostics());
    builder->job()->framework = job::Framework::kSpark;
    ReadMetadata(&document, builder);
    auto spec = document.ReadObject("spec");
    document.ReportUnread("SparkApplication");
    if (!spec)
      return document.AddError("spec", "got no spec, expected one with driver and executor");
    SparkReader(*node.Find("spec"), builder).Run(&*spec);
  }
};

}  // namespace

const Importer& SparkApplicationImporter() {
  static const SparkApplication importer;
  return importer;
}

}  // namespace shoal::importer
