// TrainJob of Kubeflow Trainer (trainer.kubeflow.org): a training whose pods a TrainingRuntime or
// ClusterTrainingRuntime of the same file describes. The JobSet of both (training_runtime.h) is
// imported; the runtime's mlPolicy gives the framework.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "import/conversion/importer.h"
#include "import/kubernetes/job_set.h"
#include "import/kubernetes/mpi_job.h"
#include "import/kubernetes/pod_settings.h"
#include "import/kubernetes/pod_template.h"
#include "import/kubernetes/torch_launcher.h"
#include "import/kubernetes/training_runtime.h"
#include "job/spec/framework.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::Framework;
using job::Node;

constexpr std::string_view kGroup = "trainer.kubeflow.org";
constexpr const char* kNode = "node";  // the container, and the replicated job of MPI's workers
constexpr size_t kMostPatches = 64;    // of each kind, in one TrainJob
constexpr int kMostProcesses = 1024;   // of one node
constexpr std::array<const char*, 5> kPolicies = {"torch", "jax", "mpi", "xgboost", "flux"};
// Runtimes that Kubeflow's own manifests install.
constexpr std::string_view kPublished[] = {"torch-distributed",     "torch-distributed-with-cache",
                                           "deepspeed-distributed", "jax-distributed",
                                           "mlx-distributed",       "xgboost-distributed",
                                           "mpi-distributed",       "flux-distributed",
                                           "torchtune-llama3.2-1b", "torchtune-llama3.2-3b",
                                           "torchtune-qwen2.5-1.5b"};

std::string TextOf(const Node* node) { return node == nullptr ? "" : node->text; }

std::string TextAt(const Node& document, const char* section, const char* field) {
  const Node* found = document.Find(section);
  return found == nullptr ? "" : TextOf(found->Find(field));
}

bool IsOfTrainer(const Node& document) {
  return TextOf(document.Find("apiVersion")).starts_with("trainer.kubeflow.org/");
}

// The runtime that a TrainJob names: (kind, name).
std::pair<std::string, std::string> RuntimeOf(const Node& document) {
  const Node* spec = document.Find("spec");
  const Node* reference = spec == nullptr ? nullptr : spec->Find("runtimeRef");
  if (reference == nullptr) return {};
  const std::string kind = TextOf(reference->Find("kind"));
  return {kind.empty() ? "ClusterTrainingRuntime" : kind, TextOf(reference->Find("name"))};
}

// Reads one TrainJob with its runtime. Run puts the TrainJob's values into a copy of the runtime's
// template, imports that as a JobSet, and then applies what concerns the whole job.
class TrainJobReader {
 public:
  TrainJobReader(const Node& document, const Node* runtime, JobBuilder* builder)
      : builder_(builder),
        runtime_kind_(RuntimeOf(document).first),
        document_(document, "", "", builder->diagnostics()),
        runtime_(runtime) {}

  void Run() {
    builder_->job()->framework = Framework::kGeneric;
    ReadMetadata(&document_, builder_);
    auto spec = document_.ReadObject("spec");
    document_.ReportUnread("TrainJob");
    if (!spec) return document_.AddError("spec", "got no spec, expected one with a runtimeRef");
    ReadReference(&*spec);
    if (!builder_->diagnostics()->ok()) return;
    ReadRuntime();
    trainer_ = FindReplicatedJob(jobs(), kTrainerStep);
    if (!builder_->diagnostics()->ok()) return;
    if (trainer_ == nullptr) {
      return AddRuntimeError(
          "got no replicated job of the training, expected one with "
          "trainer.kubeflow.org/trainjob-ancestor-step: trainer in the labels of its template");
    }
    ApplyTrainer(&*spec);
    ApplyInitializers(&*spec);
    ApplyPatches(&*spec);
    // Patches may have moved it.
    trainer_ = FindReplicatedJob(jobs(), kTrainerStep);
    if (trainer_ == nullptr) {
      return spec->AddError("runtimePatches",
                            "got another label for the training's replicated job");
    }
    ReadLimits(&*spec);
    spec->ReportUnread("TrainJobSpec");
    if (builder_->diagnostics()->ok()) ImportJobSet();
  }

 private:
  Node* jobs() { return FindOrAdd(&template_, "spec"); }

  void AddRuntimeError(const std::string& sentence) {
    builder_->diagnostics()->AddError(runtime_->place, "spec.template", sentence);
  }

  void ReadReference(FieldReader* spec);
  // The runtime's policies, and a copy of its template.
  void ReadRuntime();
  void ReadPolicy(FieldReader* policy);
  // numProcPerNode of a policy or of the trainer.
  void ReadPerNode(FieldReader* section);
  void ReadMpi(FieldReader* mpi);
  void ReadPodGroups(FieldReader* policy);
  // The trainer's values, for the replicated job of the training and MPI's nodes.
  void ApplyTrainer(FieldReader* spec);
  void ApplyContainer(FieldReader* trainer);
  void ApplyNodes();
  void ReplaceNodes(int nodes, Node* replicated);
  void ApplyInitializers(FieldReader* spec);
  void ApplyInitializer(FieldReader* initializer, std::string_view step);
  void ApplyPatches(FieldReader* spec);
  // podTemplateOverrides and podSpecOverrides of earlier versions.
  void ApplyOverrides(const char* field, FieldReader* spec);
  bool AreFew(const std::string& field, const std::vector<FieldReader>& patches, FieldReader* spec);
  void ReadLimits(FieldReader* spec);
  void ImportJobSet();
  JobSetOptions Options();
  void SetTrainerImage();
  void FinishFramework(FieldReader* spec);
  void FinishTorch(FieldReader* spec);
  void FinishXgboost(FieldReader* spec);

  JobBuilder* const builder_;
  const std::string runtime_kind_;
  FieldReader document_;
  const Node* const runtime_;
  std::string policy_;  // of kPolicies; empty: none
  int nodes_ = 1;
  job::SourceLocation nodes_place_;
  std::string per_node_;     // processes of a node: a number, "auto", "cpu", "gpu", or empty
  bool hydra_ = false;       // mpiImplementation Intel or MPICH
  Node template_;            // of the JobSet: metadata and spec
  Node* trainer_ = nullptr;  // in template_
  std::chrono::milliseconds deadline_{0};
};

void TrainJobReader::ReadReference(FieldReader* spec) {
  auto reference = spec->ReadObject("runtimeRef");
  if (!reference) {
    return spec->AddError("runtimeRef", "got none, expected the name of a runtime in the file");
  }
  const std::string group = reference->ReadText("apiGroup").value_or(std::string(kGroup));
  if (group != kGroup) {
    reference->AddError("apiGroup",
                        "got " + job::PrintableText(group) + ", expected " + std::string(kGroup));
  }
  reference->ReadChoice("kind", {"TrainingRuntime", "ClusterTrainingRuntime"});
  const std::string name = reference->ReadText("name").value_or("");
  reference->ReportUnread("TrainJobSpecRuntimeRef");
  if (runtime_ != nullptr || !builder_->diagnostics()->ok()) return;
  const bool published =
      std::find(std::begin(kPublished), std::end(kPublished), name) != std::end(kPublished);
  std::string resource;
  for (const char c : runtime_kind_)
    resource += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  reference->AddError("name",
                      "got the runtime " + job::PrintableText(name) +
                          (published ? ", one of those that Kubeflow publishes" : "") +
                          ", expected it in the file as another document, with apiVersion " +
                          std::string(kGroup) + "/v1alpha1, kind " + runtime_kind_ +
                          " and that metadata.name; `kubectl get " + resource + " " +
                          (name.empty() ? "NAME" : name) +
                          " -o yaml` prints it: put it beside the "
                          "TrainJob, with a line --- between them");
}

void TrainJobReader::ReadRuntime() {
  FieldReader document(*runtime_, "", "", builder_->diagnostics());
  document.ReadNode("apiVersion");
  document.ReadNode("kind");
  if (auto metadata = document.ReadObject("metadata"); metadata && metadata->Names().size() > 1) {
    document.AddLoss("metadata",
                     "labels and other metadata of the runtime itself; not kept: the job has those "
                     "of the TrainJob",
                     true);
  }
  auto spec = document.ReadObject("spec");
  document.ReportUnread("TrainingRuntime");
  if (!spec) return document.AddError("spec", "got no spec, expected one with a template");
  if (auto policy = spec->ReadObject("mlPolicy")) ReadPolicy(&*policy);
  if (auto groups = spec->ReadObject("podGroupPolicy")) ReadPodGroups(&*groups);
  if (spec->ReadObject("template")) {
    template_ = *spec->ReadNode("template");
  } else {
    spec->AddError("template", "got no template, expected one with the spec of a JobSet");
  }
  spec->ReportUnread("TrainingRuntimeSpec");
}

void TrainJobReader::ReadPolicy(FieldReader* policy) {
  if (const auto nodes = policy->ReadInteger("numNodes", 1, job::kMaxReplicas)) {
    nodes_ = static_cast<int>(*nodes);
  }
  nodes_place_ = policy->PlaceOf("numNodes");
  for (const char* name : kPolicies) {
    if (!policy->HasField(name)) continue;
    if (!policy_.empty()) {
      policy->AddError(name, "got " + policy_ + " and " + name + ", expected one of them");
    }
    policy_ = name;
    auto section = policy->ReadObject(name);
    if (!section) continue;
    if (policy_ == "torch") {
      ReadPerNode(&*section);
      section->ReportUnread("TrainingRuntimeTorch");
    } else if (policy_ == "mpi") {
      ReadMpi(&*section);
    } else if (policy_ == "flux") {
      policy->AddError(name,
                       "got the policy flux, whose brokers start the program; expected torch, jax, "
                       "mpi, xgboost or none; a program of MPI runs with the policy mpi");
    }
  }
  policy->ReportUnread("TrainingRuntimeMlPolicy");
}

void TrainJobReader::ReadPerNode(FieldReader* section) {
  const std::string said = section->ReadText("numProcPerNode").value_or("");
  if (said.empty()) return;
  per_node_ = said;
  const auto number = job::ParseInteger(said);
  const bool word = policy_ != "mpi" && (said == "auto" || said == "cpu" || said == "gpu");
  if (number ? *number >= 1 && *number <= kMostProcesses : word) return;
  section->AddError("numProcPerNode", "got " + job::PrintableText(said) +
                                          ", expected an integer from 1 to 1024" +
                                          (policy_ == "mpi" ? "" : ", auto, cpu or gpu"));
}

void TrainJobReader::ReadMpi(FieldReader* mpi) {
  ReadPerNode(mpi);
  const std::string implementation = mpi->ReadText("mpiImplementation").value_or("");
  hydra_ = implementation == "Intel" || implementation == "MPICH";
  if (!implementation.empty() && implementation != "OpenMPI") {
    mpi->AddLoss("mpiImplementation",
                 job::PrintableText(implementation) +
                     " said which host file is written; not kept: Shoal tells mpirun or mpiexec "
                     "the hosts itself",
                 true);
  }
  if (mpi->ReadFlag("runLauncherAsNode").value_or(false)) {
    mpi->set_at("roles.worker");
    mpi->AddLoss("runLauncherAsNode",
                 "ranks also ran in the launcher's pod; kept as workers for all nodes beside the "
                 "launcher, so that there are as many slots",
                 true);
  }
  if (mpi->HasField("sshAuthMountPath")) {
    mpi->AddLoss("sshAuthMountPath",
                 "where the keys of ssh were; not needed: mpirun reaches the workers through Shoal",
                 true);
  }
  mpi->ReportUnread("TrainingRuntimeMpi");
}

void TrainJobReader::ReadPodGroups(FieldReader* policy) {
  if (auto coscheduling = policy->ReadObject("coscheduling")) {
    const auto seconds = coscheduling->ReadInteger("scheduleTimeoutSeconds", 0, 31'536'000);
    if (seconds && *seconds > 0) builder_->job()->limits.gather = std::chrono::seconds(*seconds);
    coscheduling->ReportUnread("TrainingRuntimeCoscheduling");
  }
  if (auto volcano = policy->ReadObject("volcano")) {
    volcano->ReportUnread("TrainingRuntimeVolcano");
  }
  policy->ReportUnread("TrainingRuntimePodGroupPolicy");
}

void TrainJobReader::ApplyTrainer(FieldReader* spec) {
  if (auto trainer = spec->ReadObject("trainer")) {
    if (const auto nodes = trainer->ReadInteger("numNodes", 1, job::kMaxReplicas)) {
      nodes_ = static_cast<int>(*nodes);
      nodes_place_ = trainer->PlaceOf("numNodes");
    }
    ReadPerNode(&*trainer);
    if (trainer->HasField("numProcPerNode") && policy_ != "torch" && policy_ != "mpi") {
      trainer->AddLoss("numProcPerNode",
                       "how many processes a node has; not kept: the runtime's policy is neither "
                       "torch nor mpi, and each task is one process");
    }
    ApplyContainer(&*trainer);
    trainer->ReportUnread("TrainJobSpecTrainer");
  }
  ApplyNodes();
}

void TrainJobReader::ApplyContainer(FieldReader* trainer) {
  Node* container = FindContainer(trainer_, kNode);
  for (const char* field : {"image", "command", "args"}) {
    const Node* value = trainer->ReadNode(field);
    if (value != nullptr && container != nullptr) SetField(container, field, *value);
  }
  Node* node = policy_ == "mpi" ? FindReplicatedJobNamed(jobs(), kNode) : nullptr;
  Node* worker = node == nullptr || node == trainer_ ? nullptr : FindContainer(node, kNode);
  const Node* env = trainer->ReadNode("env");
  const Node* resources = trainer->ReadNode("resourcesPerNode");
  for (Node* one : {container, worker}) {
    if (one == nullptr) continue;
    if (env != nullptr) MergePatch(*env, "env", FindOrAdd(one, "env"));
    if (resources != nullptr) SetField(one, "resources", *resources);
  }
}

void TrainJobReader::ApplyNodes() {
  Node* many = policy_ == "mpi" ? FindReplicatedJobNamed(jobs(), kNode) : trainer_;
  if (many == nullptr || (policy_ == "mpi" && many == trainer_)) {
    return AddRuntimeError(
        "got the policy mpi and no replicated job node beside the trainer, expected it: it is the "
        "hosts of the ranks");
  }
  ReplaceNodes(many == trainer_ ? nodes_ : 1, trainer_);
  if (many != trainer_) ReplaceNodes(nodes_, many);
}

void TrainJobReader::ReplaceNodes(int nodes, Node* replicated) {
  const Node* spec = FindOrAdd(FindOrAdd(replicated, "template"), "spec");
  const std::pair<const Node*, const char*> replaced[] = {
      {replicated, "replicas"}, {spec, "completions"}, {spec, "parallelism"}};
  for (const auto& [section, field] : replaced) {
    const Node* said = section == nullptr ? nullptr : section->Find(field);
    const std::string number = TextOf(said);
    if (number.empty() || number == (section == replicated ? "1" : std::to_string(nodes))) continue;
    builder_->diagnostics()->AddLoss(
        said->place,
        std::string("spec.template.spec.replicatedJobs.") +
            (section == spec ? "template.spec." : "") + field,
        job::PrintableText(number) +
            " said how many pods train; not kept: numNodes does, and the training is one Job",
        "roles");
  }
  SetNodes(nodes, nodes_place_, replicated);
}

void TrainJobReader::ApplyInitializers(FieldReader* spec) {
  auto initializer = spec->ReadObject("initializer");
  if (!initializer) return;
  if (auto dataset = initializer->ReadObject("dataset")) ApplyInitializer(&*dataset, kDatasetStep);
  if (auto model = initializer->ReadObject("model")) ApplyInitializer(&*model, kModelStep);
  initializer->ReportUnread("TrainJobSpecInitializer");
}

void TrainJobReader::ApplyInitializer(FieldReader* initializer, std::string_view step) {
  Node* replicated = FindReplicatedJob(jobs(), step);
  Node* container = replicated == nullptr ? nullptr : FindContainer(replicated, step);
  if (container == nullptr) {
    return initializer->AddError("", "got values for the " + std::string(step) +
                                         ", and the runtime has no replicated job with the label "
                                         "trainer.kubeflow.org/trainjob-ancestor-step: " +
                                         std::string(step) + " and a container");
  }
  initializer->set_at("roles." + NameOfReplicatedJob(*replicated));
  Node* env = FindOrAdd(container, "env");
  if (const Node* uri = initializer->ReadNode("storageUri")) {
    Node name = *uri;
    name.kind = Node::Kind::kScalar;
    name.text = "STORAGE_URI";
    Node variable;
    variable.kind = Node::Kind::kMap;
    variable.place = uri->place;
    variable.keys = {{"name", uri->place}, {"value", uri->place}};
    variable.items = {std::move(name), *uri};
    Node list;
    list.kind = Node::Kind::kList;
    list.place = uri->place;
    list.items.push_back(std::move(variable));
    MergePatch(list, "env", env);
  }
  if (const Node* more = initializer->ReadNode("env")) MergePatch(*more, "env", env);
  initializer->ReportUnread("TrainJobSpecInitializerDataset");
}

bool TrainJobReader::AreFew(const std::string& field, const std::vector<FieldReader>& patches,
                            FieldReader* spec) {
  if (patches.size() <= kMostPatches) return true;
  spec->AddError(field, "got " + std::to_string(patches.size()) + ", expected at most 64");
  return false;
}

void TrainJobReader::ApplyPatches(FieldReader* spec) {
  std::vector<FieldReader> patches = spec->ReadObjects("runtimePatches");
  if (!AreFew("runtimePatches", patches, spec)) return;
  for (FieldReader& patch : patches) {
    if (auto runtime = patch.ReadObject("trainingRuntimeSpec")) {
      const Node* changes = runtime->ReadNode("template");
      if (changes != nullptr) MergePatch(*changes, "template", &template_);
      runtime->ReportUnread("TrainJobRuntimeSpecPatch");
    }
    patch.ReportUnread("TrainJobRuntimePatch");
  }
  ApplyOverrides("podTemplateOverrides", spec);
  ApplyOverrides("podSpecOverrides", spec);
}

void TrainJobReader::ApplyOverrides(const char* field, FieldReader* spec) {
  std::vector<FieldReader> overrides = spec->ReadObjects(field);
  if (!AreFew(field, overrides, spec)) return;
  for (FieldReader& one : overrides) {
    std::vector<FieldReader> targets = one.ReadObjects("targetJobs");
    if (!AreFew(one.PathOf("targetJobs"), targets, spec)) return;
    Node changes;
    for (auto& [key, value] : one.ReadAll()) {
      if (key.text != "targetJobs") SetField(&changes, key.text, *value);
    }
    for (FieldReader& target : targets) {
      const std::string name = target.ReadText("name").value_or("");
      Node* replicated = FindReplicatedJobNamed(jobs(), name);
      target.ReportUnread("TrainJobTargetJob");
      if (replicated == nullptr) {
        target.AddError("name", "got " + job::PrintableText(name) +
                                    ", expected the name of a replicated job of the runtime");
        continue;
      }
      Node* pod = PodTemplateOf(replicated);
      const bool whole = std::string_view(field) == "podTemplateOverrides";
      Node* at = whole ? pod : FindOrAdd(pod, "spec");
      if (at != nullptr) MergePatch(changes, "", at);
    }
  }
}

void TrainJobReader::ReadLimits(FieldReader* spec) {
  if (const auto seconds = spec->ReadInteger("activeDeadlineSeconds", 1, 31'536'000)) {
    deadline_ = std::chrono::seconds(*seconds);
  }
  ReadPodMetadata(spec,
                  &builder_->job()->kubernetes);  // labels and annotations of earlier versions
}

JobSetOptions TrainJobReader::Options() {
  JobSetOptions options;
  const bool ranked = policy_ == "torch" || policy_ == "jax" || policy_ == "xgboost";
  const std::string name = NameOfReplicatedJob(*trainer_);
  ReplicatedJobOptions& trainer = options.jobs[name];
  trainer.pod.containers = {kNode};
  if (ranked) trainer.role = "worker";
  if (policy_ == "mpi") {
    ReplicatedJobOptions& worker = options.jobs[kNode];
    worker.role = "worker";
    worker.pod.containers = {kNode};
    worker.pod.needs_command = false;
    trainer.role = "launcher";
    trainer.pod.needs_command = true;
  }
  for (const std::string_view step : {kDatasetStep, kModelStep}) {
    const Node* replicated = FindReplicatedJob(jobs(), step);
    if (replicated == nullptr) continue;
    options.jobs[NameOfReplicatedJob(*replicated)].pod.containers = {std::string(step)};
  }
  return options;
}

void TrainJobReader::ImportJobSet() {
  FieldReader whole(template_, "spec.template", "", builder_->diagnostics());
  if (auto metadata = whole.ReadObject("metadata")) {
    ReadPodMetadata(&*metadata, &builder_->job()->kubernetes);
    metadata->ReportUnread("PodTemplateMeta");
  }
  auto spec = whole.ReadObject("spec");
  whole.ReportUnread("TrainingRuntimeTemplate");
  if (!spec) return whole.AddError("spec", "got no spec, expected that of a JobSet");
  // Before the roles: FinishFramework depends on it, and so do variables that the framework sets.
  const std::map<std::string, Framework> frameworks = {{"torch", Framework::kPytorch},
                                                       {"xgboost", Framework::kPytorch},
                                                       {"jax", Framework::kJax},
                                                       {"mpi", Framework::kMpi}};
  if (const auto found = frameworks.find(policy_); found != frameworks.end()) {
    builder_->job()->framework = found->second;
  }
  SetTrainerImage();
  if (!ReadJobSetSpec(&*spec, Options(), builder_)) return;
  auto& deadline = builder_->job()->limits.deadline;
  if (deadline_.count() > 0 && (deadline.count() == 0 || deadline_ < deadline))
    deadline = deadline_;
  FinishFramework(&*spec);
}

// The job's one image is that of the training, though initializers may come first.
void TrainJobReader::SetTrainerImage() {
  const Node* container = FindContainer(trainer_, kNode);
  const Node* image = container == nullptr ? nullptr : container->Find("image");
  if (image == nullptr || image->kind != Node::Kind::kScalar) return;
  FieldReader from(*container, "spec.template.spec.replicatedJobs", "", builder_->diagnostics());
  job::Role role;
  role.name = Options().jobs[NameOfReplicatedJob(*trainer_)].role;
  if (role.name.empty()) role.name = ToRoleName(NameOfReplicatedJob(*trainer_), 64);
  builder_->SetImage(image->text, role, &from);
}

void TrainJobReader::FinishFramework(FieldReader* spec) {
  if (policy_ == "torch") FinishTorch(spec);
  if (policy_ == "xgboost") FinishXgboost(spec);
  for (const char* name : {"worker", "launcher"}) {
    job::Role* role = builder_->FindRole(name);
    const bool together = job::RestartsAllTasks(builder_->job()->framework);
    if (!together || role == nullptr || role->restart.when == job::RestartWhen::kNever) continue;
    // A process that is replaced alone cannot join the others.
    builder_->SetScope(role, job::RestartScope::kJob);
  }
  if (policy_ != "mpi") return;
  MpiJobOptions mpi;
  const auto slots = job::ParseInteger(per_node_);
  mpi.slots = static_cast<int>(std::clamp<int64_t>(slots.value_or(1), 1, kMostProcesses));
  mpi.hydra = hydra_;
  // mpirun reaches the workers through Shoal, which waits for them.
  if (job::Role* launcher = builder_->FindRole("launcher"); launcher != nullptr) {
    launcher->after = {};
  }
  ConvertMpiLauncher(mpi, &document_, builder_);
  if (builder_->FindRole("launcher") != nullptr) {
    builder_->SetSuccess(job::SuccessRule::kAll, {"launcher"});
  }
}

void TrainJobReader::FinishTorch(FieldReader* spec) {
  job::Role* worker = builder_->FindRole("worker");
  if (worker == nullptr) return;
  const bool counts = per_node_.empty() || per_node_ == "auto" || per_node_ == "cpu";
  const job::Resources& has = worker->resources;
  const double cpus = has.cpu_request > 0 ? has.cpu_request : has.cpu;
  if (counts && (has.gpu == 0 || per_node_ == "cpu")) {
    per_node_ = std::to_string(static_cast<int>(std::max(1.0, std::ceil(cpus))));
  }
  const std::vector<std::string>& command = worker->command;
  if (command.size() > 1 && command[0] == "tune" && command[1] == "run") {
    spec->set_at("roles.worker.command");
    spec->AddLoss("replicatedJobs",
                  "the controller put the rendezvous, the recipe and its configuration behind "
                  "`tune run`; not kept: write them into the command");
  }
  TorchLauncherOptions torch;
  torch.per_node = per_node_;
  torch.templates.emplace(worker->name, *spec);
  ConvertTorchLaunchers(&torch, builder_);
}

// Programs of XGBoost start their tracker in rank 0 and find it by variables of dmlc.
void TrainJobReader::FinishXgboost(FieldReader* spec) {
  job::Role* worker = builder_->FindRole("worker");
  if (worker == nullptr) return;
  spec->set_at("roles.worker");
  if (worker->command.empty()) {
    return spec->AddLoss("replicatedJobs",
                         "programs read DMLC_TRACKER_URI, DMLC_TRACKER_PORT, DMLC_TASK_ID and "
                         "DMLC_NUM_WORKER; not kept: the image's own entry point has no shell "
                         "before it; it gets MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE");
  }
  const int processes = std::max(1, worker->resources.gpu);
  PrependStatement(
      "export DMLC_TRACKER_URI=\"$MASTER_ADDR\" DMLC_TRACKER_PORT=\"$MASTER_PORT\" "
      "DMLC_TASK_ID=\"$RANK\" DMLC_NUM_WORKER=" +
          std::to_string(worker->replicas * processes),
      worker);
}

class TrainJob final : public Importer {
 public:
  std::string DetectKind(const Node& document) const override {
    return IsOfTrainer(document) && TextOf(document.Find("kind")) == "TrainJob" ? "TrainJob" : "";
  }
  std::vector<const Node*> FindParts(const Node& document,
                                     const std::vector<const Node*>& documents) const override {
    const auto [kind, name] = RuntimeOf(document);
    for (const Node* one : documents) {
      if (IsOfTrainer(*one) && TextOf(one->Find("kind")) == kind && !name.empty() &&
          TextAt(*one, "metadata", "name") == name) {
        return {one};
      }
    }
    return {};
  }
  void Import(const Node& document, JobBuilder* builder) const override {
    ImportWithParts(document, {}, builder);
  }
  void ImportWithParts(const Node& document, const std::vector<const Node*>& parts,
                       JobBuilder* builder) const override {
    TrainJobReader(document, parts.empty() ? nullptr : parts.front(), builder).Run();
  }
};

}  // namespace

const Importer& TrainJobImporter() {
  static const TrainJob importer;
  return importer;
}

}  // namespace shoal::importer
