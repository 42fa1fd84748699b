// Kubeflow's TFJob, PyTorchJob, MPIJob, XGBoostJob, JAXJob, PaddleJob and MXJob: v1 and the earlier
// alpha and beta versions, whose run-policy fields are one level higher.
#include <algorithm>
#include <cctype>

#include "import/conversion/importer.h"
#include "import/kubernetes/mpi_job.h"
#include "import/kubernetes/pod_hosts.h"
#include "import/kubernetes/pod_template.h"
#include "import/kubernetes/torch_launcher.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::Framework;
using job::RestartWhen;
using job::SuccessRule;

constexpr int kJobBackoff = 6;  // default backoffLimit of a batch/v1 Job

// What the kinds differ in.
struct Kind {
  std::string_view name;
  std::string_view specs;  // the field with the roles
  Framework framework;
  std::string_view container;      // name of the program's container
  std::string_view port;           // name of the framework's port in it
  std::string_view restart;        // default restartPolicy
  std::vector<std::string> roles;  // in rank order
  bool unbuffered = false;         // the operator sets PYTHONUNBUFFERED
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {"TFJob",
       "tfReplicaSpecs",
       Framework::kTensorflow,
       "tensorflow",
       "tfjob-port",
       "Never",
       {"Chief", "Master", "PS", "Worker", "Evaluator"}},
      {"PyTorchJob",
       "pytorchReplicaSpecs",
       Framework::kPytorch,
       "pytorch",
       "pytorchjob-port",
       "OnFailure",
       {"Master", "Worker"},
       true},
      {"MPIJob", "mpiReplicaSpecs", Framework::kMpi, "mpi", "", "Never", {"Launcher", "Worker"}},
      // XGBoostJob programs read MASTER_ADDR, RANK and WORLD_SIZE like PyTorch's, and start their
      // tracker themselves.
      {"XGBoostJob",
       "xgbReplicaSpecs",
       Framework::kPytorch,
       "xgboost",
       "xgboostjob-port",
       "Never",
       {"Master", "Worker"},
       true},
      {"JAXJob",
       "jaxReplicaSpecs",
       Framework::kJax,
       "jax",
       "jaxjob-port",
       "Never",
       {"Worker"},
       true},
      {"PaddleJob",
       "paddleReplicaSpecs",
       Framework::kPaddle,
       "paddle",
       "master",
       "OnFailure",
       {"Master", "Worker"},
       true},
      {"MXJob",
       "mxReplicaSpecs",
       Framework::kPsLite,
       "mxnet",
       "mxjob-port",
       "Never",
       {"Scheduler", "Server", "Worker"}},
  };
  return kinds;
}

// Kinds of the alpha and beta versions.
constexpr UnsupportedField kReplica[] = {
    {"autoScale", "how replicas scale", "they stay as they are"},
    {"tfPort", "the port of the programs", "Shoal leases a free one", true},
};

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// Imports one document. Run reads the fields in order and then resolves what depends on several of
// them (Finish).
class KubeflowReader {
 public:
  KubeflowReader(const Kind& kind, const job::Node& document, JobBuilder* builder)
      : kind_(kind), builder_(builder), document_(document, "", "", builder->diagnostics()) {}

  void Run() {
    builder_->job()->framework = kind_.framework;
    const std::string version = document_.ReadText("apiVersion").value_or("");
    launcher_is_job_ = kind_.name == "MPIJob" && version == "kubeflow.org/v2beta1";
    const std::string definition = (launcher_is_job_ ? "V2beta1" : "") + std::string(kind_.name);
    ReadMetadata(&document_, builder_);
    auto spec = document_.ReadObject("spec");
    document_.ReportUnread(definition);
    if (!spec) return document_.AddError("spec", "got no spec, expected one with replicas");
    ReadRunPolicy(&*spec, true);
    if (auto policy = spec->ReadObject("runPolicy")) ReadRunPolicy(&*policy, false);
    ReadElastic(&*spec);
    if (torch_.per_node.empty()) torch_.per_node = spec->ReadText("nprocPerNode").value_or("");
    if (kind_.name == "MPIJob") ReadMpi(&*spec);
    if (kind_.name == "MXJob") spec->ReadChoice("jobMode", {"MXTrain"});
    ReadReplicas(&*spec);
    ReadSuccess(&*spec);
    spec->ReportUnread(definition + "Spec");
    Finish();
  }

 private:
  // Limits of the whole job. `inlined`: the old position of its fields, in the spec itself.
  void ReadRunPolicy(FieldReader* policy, bool inlined);
  // The gang-scheduling policy: the number of tasks that must be available.
  void ReadScheduling(FieldReader* scheduling);
  // PyTorch's elastic policy: minimum and maximum of workers, restarts.
  void ReadElastic(FieldReader* spec);
  void ReadMpi(FieldReader* spec);
  // The restart policy of a v2beta1 launcher.
  void SetLauncherRestart(job::Role* role);
  void ReadReplicas(FieldReader* spec);
  void ReadV1alpha1Replicas(FieldReader* spec);
  void ReadReplica(const std::string& type, const job::SourceLocation& place, FieldReader replica);
  // Which roles decide the success of the job.
  void ReadSuccess(FieldReader* spec);
  // Maps a replica's restartPolicy to the role's restart rule and exit-code rules.
  void SetRestart(const std::string& policy, job::Role* role, FieldReader* from);
  // Variables of LightGBM workers.
  void FinishXgboost();
  // The training operator lets Python write its output at once.
  void SetUnbuffered();
  // Variables of the MXNet operator that ps-lite does not need.
  void FinishMxnet();
  // Pods have the host name JOB-ROLE-INDEX, as their services have.
  void ReplaceHosts();
  // Reports roles that cleanPodPolicy lets run on after the end of the job, and a policy without
  // effect.
  void ReportCleanPolicy();
  void Finish();

  const Kind& kind_;
  JobBuilder* const builder_;
  FieldReader document_;
  std::string clean_ = "None";  // cleanPodPolicy, by the operator's default
  job::SourceLocation clean_place_;
  std::string clean_field_;
  std::optional<int> backoff_limit_;
  job::SourceLocation backoff_place_;
  std::string backoff_field_;
  std::optional<int> min_available_;
  job::SourceLocation available_place_;
  bool dynamic_ = false;  // enableDynamicWorker
  std::optional<int> min_workers_;
  std::optional<int> max_workers_;
  std::optional<int> max_restarts_;
  TorchLauncherOptions torch_;
  MpiJobOptions mpi_;
  bool launcher_is_job_ = false;  // of batch/v1, with its backoffLimit
  std::string main_container_;
  int restarting_ = 0;  // tasks whose role has restarts
};

void KubeflowReader::ReadRunPolicy(FieldReader* policy, bool inlined) {
  if (policy->HasField("cleanPodPolicy")) {
    clean_ = policy->ReadChoice("cleanPodPolicy", {"All", "Running", "None"}).value_or("None");
    clean_place_ = policy->PlaceOf("cleanPodPolicy");
    clean_field_ = policy->PathOf("cleanPodPolicy");
  }
  if (const auto seconds = policy->ReadInteger("activeDeadlineSeconds", 0, 31'536'000)) {
    builder_->job()->limits.deadline = std::chrono::seconds(*seconds);
  }
  if (policy->HasField("backoffLimit")) {
    backoff_limit_ =
        static_cast<int>(policy->ReadInteger("backoffLimit", 0, 1'000'000).value_or(0));
    backoff_place_ = policy->PlaceOf("backoffLimit");
    backoff_field_ = policy->PathOf("backoffLimit");
  }
  if (auto scheduling = policy->ReadObject("schedulingPolicy")) ReadScheduling(&*scheduling);
  if (policy->ReadFlag("suspend").value_or(false)) {
    policy->AddLoss("suspend",
                    "'true' suspended the job; not kept: it starts when the "
                    "queue admits it; run it when it is to start");
  }
  ReadTtl(policy, builder_);
  if (!inlined) policy->ReportUnread("RunPolicy");
}

void KubeflowReader::ReadScheduling(FieldReader* scheduling) {
  if (const auto queue = scheduling->ReadText("queue")) builder_->job()->queue = *queue;
  if (const auto seconds = scheduling->ReadInteger("scheduleTimeoutSeconds", 1, 31'536'000)) {
    builder_->job()->limits.gather = std::chrono::seconds(*seconds);
  }
  if (scheduling->HasField("minAvailable")) {
    min_available_ =
        static_cast<int>(scheduling->ReadInteger("minAvailable", 0, job::kMaxTasks).value_or(0));
    available_place_ = scheduling->PlaceOf("minAvailable");
  }
  scheduling->ReportUnread("SchedulingPolicy");
}

void KubeflowReader::ReadElastic(FieldReader* spec) {
  // An elastic job survives the loss of workers.
  dynamic_ = spec->ReadFlag("enableDynamicWorker").value_or(false);
  auto elastic = spec->ReadObject("elasticPolicy");
  if (!elastic) return;
  elastic->set_at("roles.worker.min");
  if (elastic->HasField("minReplicas")) {
    min_workers_ =
        static_cast<int>(elastic->ReadInteger("minReplicas", 0, job::kMaxReplicas).value_or(0));
  }
  if (elastic->HasField("maxRestarts")) {
    max_restarts_ =
        static_cast<int>(elastic->ReadInteger("maxRestarts", 0, kUnlimitedRestarts).value_or(0));
  }
  if (const auto most = elastic->ReadInteger("maxReplicas", 1, job::kMaxReplicas)) {
    max_workers_ = static_cast<int>(*most);
  }
  const bool paddle = kind_.name == "PaddleJob";
  const std::string per_node = paddle ? "" : elastic->ReadText("nProcPerNode").value_or("");
  if (!per_node.empty()) torch_.per_node = per_node;
  elastic->ReportUnread(paddle ? "PaddleElasticPolicy" : "ElasticPolicy");
}

void KubeflowReader::ReadMpi(FieldReader* spec) {
  mpi_.slots = static_cast<int>(spec->ReadInteger("slotsPerWorker", 1, 1024).value_or(1));
  mpi_.launcher_works = spec->ReadFlag("runLauncherAsWorker").value_or(false);
  const job::Node* implementation = spec->node().Find("mpiImplementation");
  mpi_.hydra = implementation != nullptr &&
               (implementation->text == "Intel" || implementation->text == "MPICH");
  main_container_ = spec->ReadText("mainContainer").value_or("");
}

void KubeflowReader::ReadReplicas(FieldReader* spec) {
  auto replicas = spec->ReadObject(std::string(kind_.specs));
  if (!replicas) {
    if (spec->HasField("replicaSpecs")) return ReadV1alpha1Replicas(spec);
    return spec->AddError("", "got no " + std::string(kind_.specs) +
                                  ", expected it with the roles of a " + std::string(kind_.name));
  }
  std::map<std::string, std::pair<job::Key, const job::Node*>> by_type;
  for (const auto& [key, node] : replicas->ReadAll()) {
    const auto type = std::find_if(kind_.roles.begin(), kind_.roles.end(),
                                   [&](const auto& one) { return Lower(one) == Lower(key.text); });
    if (type == kind_.roles.end()) {
      std::string list;
      for (const std::string& one : kind_.roles) list += (list.empty() ? "" : ", ") + one;
      builder_->diagnostics()->AddError(key.place, replicas->path(),
                                        "got the unknown role " + job::PrintableText(key.text) +
                                            ", expected one of " + list +
                                            job::DidYouMean(key.text, kind_.roles));
    } else if (node->kind == job::Node::Kind::kMap) {
      by_type[*type] = {key, node};
    } else {
      builder_->diagnostics()->AddError(
          node->place, replicas->PathOf(key.text),
          "got " + job::DescribeNode(*node) + ", expected replicas and template");
    }
  }
  for (const std::string& type : kind_.roles) {
    const auto found = by_type.find(type);
    if (found == by_type.end()) continue;
    const auto& [key, node] = found->second;
    ReadReplica(type, key.place,
                FieldReader(*node, replicas->PathOf(key.text), "roles." + Lower(type),
                            builder_->diagnostics()));
  }
}

// v1alpha1 has a list of replicas, each with its tfReplicaType.
void KubeflowReader::ReadV1alpha1Replicas(FieldReader* spec) {
  for (FieldReader& replica : spec->ReadObjects("replicaSpecs")) {
    const std::string said = replica.ReadText("tfReplicaType").value_or("MASTER");
    const auto type = std::find_if(kind_.roles.begin(), kind_.roles.end(),
                                   [&](const auto& one) { return Lower(one) == Lower(said); });
    if (type == kind_.roles.end()) {
      replica.AddError("tfReplicaType",
                       "got " + job::PrintableText(said) + ", expected MASTER, WORKER or PS");
      continue;
    }
    FieldReader copy = replica;
    copy.set_at("roles." + Lower(*type));
    ReadReplica(*type, replica.place(), copy);
  }
}

void KubeflowReader::ReadReplica(const std::string& type, const job::SourceLocation& place,
                                 FieldReader replica) {
  job::Role* role = builder_->AddRole(Lower(type), place, replica.path());
  role->replicas =
      static_cast<int>(replica.ReadInteger("replicas", 0, job::kMaxReplicas).value_or(1));
  const auto policy =
      replica.ReadChoice("restartPolicy", {"Never", "OnFailure", "Always", "ExitCode"});
  auto pod_template = replica.ReadObject("template");
  if (!pod_template) {
    replica.AddError("template", "got no template, expected one with the pod's containers");
  } else {
    const bool waits = kind_.name == "MPIJob" && type == "Worker";
    PodOptions options{{std::string(kind_.container)}, std::string(kind_.port), !waits};
    if (!main_container_.empty()) options.containers = {main_container_};
    const PodSummary pod = ReadPod(&*pod_template, options, role, builder_);
    // The replica's restart policy replaces the pod's.
    const std::string either = policy.value_or("").empty() ? pod.restart_policy : *policy;
    SetRestart(either.empty() ? std::string(kind_.restart) : either, role, &replica);
    if (launcher_is_job_ && type == "Launcher") SetLauncherRestart(role);
    torch_.templates.emplace(role->name, *pod_template);
  }
  replica.ReportUnread("ReplicaSpec", kReplica);
}

void KubeflowReader::SetRestart(const std::string& policy, job::Role* role, FieldReader* from) {
  job::Restart& restart = role->restart;
  if (policy == "Never") {
    restart.when = RestartWhen::kNever;
    return;
  }
  restart.when = policy == "ExitCode" ? RestartWhen::kTransient : RestartWhen::kAlways;
  restart.limit = std::min(max_restarts_.value_or(kUnlimitedRestarts), kUnlimitedRestarts);
  restarting_ += role->replicas;
  from->set_at("roles." + role->name + ".restart");
  if (policy == "Always") {
    from->AddLoss(
        "restartPolicy",
        "'Always' started also tasks again that had ended with 0; not kept: a task that has "
        "ended well has ended");
  }
  if (policy == "ExitCode") {
    from->AddLoss(
        "restartPolicy",
        "'ExitCode' started a task again after every out-of-memory (code 137); kept for all "
        "other codes: out-of-memory is retried once, then it needs more memory",
        true);
  }
}

// In v2beta1 the launcher is a Kubernetes Job, which recreates pods whatever their own policy.
void KubeflowReader::SetLauncherRestart(job::Role* role) {
  if (role->restart.when == RestartWhen::kNever) restarting_ += role->replicas;
  role->restart.when = RestartWhen::kAlways;
  role->restart.limit = std::min(backoff_limit_.value_or(kJobBackoff), kUnlimitedRestarts);
}

void KubeflowReader::ReadSuccess(FieldReader* spec) {
  const auto policy = kind_.name == "TFJob"
                          ? spec->ReadChoice("successPolicy", {"Default", "AllWorkers"})
                          : std::nullopt;
  if (kind_.name == "TFJob" && spec->HasField("terminationPolicy")) {
    spec->ReadNode("terminationPolicy");
    spec->AddLoss("terminationPolicy",
                  "said which task's end ends the job; kept as the chief's, else that of worker 0",
                  true);
  }
  for (const char* leader : {"chief", "master", "launcher"}) {
    const job::Role* role = builder_->FindRole(leader);
    if (role == nullptr || role->replicas == 0) continue;
    return builder_->SetSuccess(SuccessRule::kAll, {leader});
  }
  const job::Role* worker = builder_->FindRole("worker");
  if (worker == nullptr || worker->replicas == 0) return;  // the preset's rule: all tasks
  const bool first = kind_.name == "TFJob" && policy != "AllWorkers";
  builder_->SetSuccess(first ? SuccessRule::kFirst : SuccessRule::kAll, {"worker"});
}

void KubeflowReader::Finish() {
  job::Role* worker = builder_->FindRole("worker");
  if (dynamic_ && worker != nullptr && worker->replicas > 1) worker->min_replicas = 1;
  if (min_workers_ && worker != nullptr) worker->min_replicas = *min_workers_;
  if (max_workers_ && worker != nullptr && *max_workers_ > worker->replicas) {
    worker->max_replicas = *max_workers_;
  }
  if (min_available_ && *min_available_ < builder_->TotalReplicas()) {
    builder_->diagnostics()->AddLoss(
        available_place_, "minAvailable",
        "the job could start with " + std::to_string(*min_available_) +
            " of its tasks; not kept: it starts with all, or with `min` of a role that has it",
        "roles");
  }
  if (backoff_limit_ && restarting_ == 0 && builder_->TotalReplicas() > 0) {
    builder_->diagnostics()->AddMinorLoss(
        backoff_place_, backoff_field_, "no role starts tasks again, so there is nothing to limit",
        "roles");
  } else if (backoff_limit_) {
    builder_->job()->limits.restarts = *backoff_limit_;
  }
  if (kind_.name == "MPIJob") ConvertMpiLauncher(mpi_, &document_, builder_);
  if (kind_.framework == Framework::kPytorch) {
    torch_.explains = kind_.name == "PyTorchJob";
    ConvertTorchLaunchers(&torch_, builder_);
  }
  FinishXgboost();
  FinishMxnet();
  SetUnbuffered();
  ReplaceHosts();
  ReportCleanPolicy();
}

void KubeflowReader::SetUnbuffered() {
  if (!kind_.unbuffered) return;
  for (job::Role& role : builder_->job()->roles) role.env["PYTHONUNBUFFERED"] = "1";
}

void KubeflowReader::ReplaceHosts() {
  std::vector<PodHosts> pods;
  for (const job::Role& role : builder_->job()->roles) {
    const std::string prefix = builder_->job()->name + "-" + role.name + "-";
    pods.push_back({role.name, prefix, prefix + "0", ""});
  }
  document_.set_at("roles");
  ReplacePodHosts(pods, &document_, builder_);
}

// The operator lets tasks run on after the job has succeeded, so that workers can save their parts.
void KubeflowReader::ReportCleanPolicy() {
  const std::vector<std::string>& deciding = builder_->job()->success.roles;
  const bool first = builder_->job()->success.rule == SuccessRule::kFirst;
  std::string others;
  for (const job::Role& role : builder_->job()->roles) {
    const bool decides = std::find(deciding.begin(), deciding.end(), role.name) != deciding.end();
    if (role.replicas == 0 || deciding.empty() || (decides && (!first || role.replicas == 1)))
      continue;
    others += (others.empty() ? "" : ", ") + role.name;
  }
  if (others.empty() && !clean_field_.empty()) {
    builder_->diagnostics()->AddMinorLoss(
        clean_place_, clean_field_,
        "it decides nothing: no task is left when the job has succeeded", "success");
  }
  if (others.empty() || clean_ != "None") return;
  if (kind_.name == "MPIJob") {
    return builder_->diagnostics()->AddMinorLoss(
        clean_place_, clean_field_.empty() ? "spec.runPolicy.cleanPodPolicy" : clean_field_,
        "'None', which it is by default, left the workers' pods waiting after the launcher's end; "
        "not kept: they are stopped then",
        "success");
  }
  builder_->diagnostics()->AddLoss(
      clean_place_, clean_field_.empty() ? "spec.runPolicy.cleanPodPolicy" : clean_field_,
      "'None', which it is by default, left what still ran after the job's end running (" + others +
          "); not kept: Shoal stops all tasks then, with limits.stop_grace to save what they have, "
          "and keeps their logs and outputs; where they must end by themselves name them in "
          "`success`",
      "success");
}

// LightGBM programs read the workers' addresses. The file gives all workers one port, which several
// workers on one machine cannot share.
void KubeflowReader::FinishXgboost() {
  const job::Role* worker = builder_->FindRole("worker");
  if (kind_.name != "XGBoostJob" || worker == nullptr || worker->replicas == 0) return;
  for (job::Role& role : builder_->job()->roles) {
    role.env.try_emplace("WORKER_ADDRS", "{{shoal.hosts.worker}}");
  }
  document_.set_at("roles");
  document_.AddLoss(
      "spec",
      "WORKER_PORT was one port for all workers (LightGBM's machines); not kept: each "
      "has a port of its own; give env.MACHINES={{shoal.addresses.worker}} to programs "
      "that read a list, or set env.WORKER_PORT where each worker has its own machine");
}

// BytePS reads DMLC_WORKER_ID (addBytePSEnv of the MXNet operator).
void KubeflowReader::FinishMxnet() {
  if (kind_.name != "MXJob") return;
  for (job::Role& role : builder_->job()->roles) {
    role.env.try_emplace("DMLC_USE_KUBERNETES", "1");
    if (role.name == "worker") role.env.try_emplace("DMLC_WORKER_ID", "{{shoal.index}}");
  }
}

class Kubeflow final : public Importer {
 public:
  std::string DetectKind(const job::Node& document) const override {
    const Kind* kind = Find(document);
    return kind == nullptr ? "" : std::string(kind->name);
  }
  void Import(const job::Node& document, JobBuilder* builder) const override {
    KubeflowReader(*Find(document), document, builder).Run();
  }

 private:
  static const Kind* Find(const job::Node& document) {
    const job::Node* kind = document.Find("kind");
    const job::Node* version = document.Find("apiVersion");
    if (kind == nullptr || version == nullptr) return nullptr;
    const std::string group = version->text.substr(0, version->text.find('/'));
    for (const Kind& one : Kinds()) {
      if (one.name != kind->text) continue;
      // XGBoostJob had a group and an operator of its own until 2021, with the same fields.
      const bool own = one.name == "XGBoostJob" && group == "xgboostjob.kubeflow.org";
      return own || group == "kubeflow.org" ? &one : nullptr;
    }
    return nullptr;
  }
};

}  // namespace

const Importer& KubeflowImporter() {
  static const Kubeflow importer;
  return importer;
}

}  // namespace shoal::importer
