// tests/golden/import and examples/import: each file with the job file that it becomes (NAME.job)
// or the errors it gives (NAME.error). SHOAL_REGENERATE=1 writes the expected files anew; read the
// difference before committing it.
#include "import/import.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "import/dmlc_submit.h"
#include "import/kubernetes/launcher_command.h"
#include "import/kubernetes/pod_environment.h"
#include "import/kubernetes/pod_template.h"
#include "job/file/parse.h"
#include "job/file/write_yaml.h"

namespace shoal::importer {
namespace {

namespace fs = std::filesystem;
using job::RestartScope;
using job::RestartWhen;
using job::SuccessRule;

const fs::path kRoot = SHOAL_SOURCE_DIR;
const fs::path kGolden = kRoot / "tests/golden/import";

void ExpectFile(const fs::path& path, const std::string& text) {
  if (std::getenv("SHOAL_REGENERATE") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok());
    return;
  }
  const auto there = ReadFile(path, size_t{1} << 20);
  ASSERT_TRUE(there.ok()) << there.status().message() << "\nexpected:\n" << text;
  EXPECT_EQ(*there, text) << path << " differs; SHOAL_REGENERATE=1 import_test writes it anew";
}

std::string Name(const fs::path& path) {
  return path.stem().string() + (path.extension() == ".json" ? "-json" : "");
}

void CheckOne(const fs::path& path, int* good, int* bad) {
  SCOPED_TRACE(path);
  const auto text = ReadFile(path, job::kMaxFileBytes);
  ASSERT_TRUE(text.ok());
  auto imported = ImportText(*text, path.filename().string());
  Status status = imported.status();
  if (imported.ok()) {
    ASSERT_TRUE(imported->has_value());
    auto finished = FinishImport(**imported, {});
    status = finished.status();
    if (finished.ok()) {
      ++*good;
      const std::string written = WriteImported(*finished);
      ExpectFile(kGolden / (Name(path) + ".job"), written);
      // The text is the job, comments and all.
      const auto again = job::ParseJob(written, path.filename().string());
      ASSERT_TRUE(again.ok()) << again.status().message();
      EXPECT_EQ(*again, finished->job);
      for (const ImportLoss& loss : finished->losses) {
        EXPECT_NE(loss.sentence.find(' '), std::string::npos);
      }
      return;
    }
  }
  ++*bad;
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  ExpectFile(kGolden / (Name(path) + ".error"), status.message() + "\n");
}

TEST(Import, Golden) {
  int good = 0;
  int bad = 0;
  for (const fs::path& folder : {kGolden, kRoot / "examples/import"}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const fs::path kind = entry.path().extension();
      if (kind == ".yaml" || kind == ".json" || kind == ".sh") CheckOne(entry.path(), &good, &bad);
    }
  }
  EXPECT_GE(good, 10);
  EXPECT_GE(bad, 7);
}

TEST(Import, OwnJobFilesAreNoneOfIt) {
  for (const char* name :
       {"examples/hello.yaml", "examples/word2vec.yaml", "tests/golden/job/all-fields.yaml",
        "tests/golden/job/empty.yaml", "tests/golden/job/tab.yaml",
        "tests/golden/job/top-is-list.yaml", "tests/golden/job/two-documents.yaml"}) {
    const auto text = ReadFile(kRoot / name, job::kMaxFileBytes);
    ASSERT_TRUE(text.ok());
    const auto imported = ImportText(*text, name);
    ASSERT_TRUE(imported.ok()) << name << ": " << imported.status().message();
    EXPECT_FALSE(imported->has_value()) << name;
  }
}

job::Job Import(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto imported = ImportText(text, "f.yaml");
  if (!imported.ok() || !imported->has_value()) {
    ADD_FAILURE() << imported.status().message();
    return {};
  }
  auto finished = FinishImport(**imported, overrides);
  if (!finished.ok()) {
    ADD_FAILURE() << finished.status().message();
    return {};
  }
  return finished->job;
}

// The sentences of what is lost with every engine, and not minor.
std::string Told(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto imported = ImportText(text, "f.yaml");
  if (!imported.ok() || !imported->has_value()) return imported.status().message();
  const auto finished = FinishImport(**imported, overrides);
  if (!finished.ok()) return finished.status().message();
  std::string told;
  for (const ImportLoss& loss : finished->losses) {
    if (!loss.minor && loss.engine.empty()) told += loss.sentence + "\n";
  }
  return told;
}

std::string Replica(const std::string& type, int replicas, const std::string& policy) {
  return "    " + type + ": {replicas: " + std::to_string(replicas) + ", restartPolicy: " + policy +
         ", template: {spec: {containers: [{name: tensorflow, command: [a]}]}}}\n";
}

constexpr const char* kTfJob =
    "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec:\n";

TEST(TfJob, SuccessIsTheChiefsElseWorkerZeroElseAllWorkers) {
  const std::string roles = "  tfReplicaSpecs:\n" + Replica("PS", 1, "Never");
  const std::string worker = Replica("Worker", 2, "Never");
  const auto chief = Import(kTfJob + roles + worker + Replica("Chief", 1, "Never"));
  EXPECT_EQ(chief.success, (job::Success{SuccessRule::kAll, {"chief"}, 0}));
  const auto first = Import(kTfJob + roles + worker);
  EXPECT_EQ(first.success, (job::Success{SuccessRule::kFirst, {"worker"}, 0}));
  const auto all = Import(kTfJob + std::string("  successPolicy: AllWorkers\n") + roles + worker);
  EXPECT_EQ(all.success, (job::Success{SuccessRule::kAll, {"worker"}, 0}));
}

TEST(TfJob, RestartPoliciesKeepTheirMeaning) {
  const std::string head =
      std::string(kTfJob) + "  runPolicy: {backoffLimit: 4}\n  tfReplicaSpecs:\n";
  const auto restart = [&](const std::string& policy) {
    return Import(head + Replica("Worker", 1, policy)).roles[0].restart;
  };
  EXPECT_EQ(restart("Never").when, RestartWhen::kNever);
  EXPECT_EQ(restart("ExitCode").when, RestartWhen::kTransient);
  EXPECT_EQ(restart("OnFailure").when, RestartWhen::kAlways);
  EXPECT_EQ(Import(head + Replica("Worker", 1, "OnFailure")).limits.restarts, 4);
}

TEST(TfJob, DynamicWorkersMayFailAndRecordsHaveTheirTime) {
  const std::string replicas = "  tfReplicaSpecs:\n" + Replica("Worker", 3, "Never");
  const auto fixed = Import(kTfJob + replicas);
  EXPECT_FALSE(fixed.roles[0].elastic());
  EXPECT_EQ(fixed.limits.keep_records.count(), 0);
  const auto dynamic = Import(
      kTfJob +
      std::string("  enableDynamicWorker: true\n  runPolicy: {ttlSecondsAfterFinished: 60}\n") +
      replicas);
  EXPECT_EQ(dynamic.roles[0].min_replicas, 1);
  EXPECT_EQ(dynamic.limits.keep_records, std::chrono::seconds(60));
  // At once, as there: 0 would be for ever here.
  const auto gone =
      Import(kTfJob + std::string("  runPolicy: {ttlSecondsAfterFinished: 0}\n") + replicas);
  EXPECT_EQ(gone.limits.keep_records, std::chrono::seconds(1));
}

TEST(Kubernetes, ClusterSettingsOfPodsAreKept) {
  const auto pod = [](const std::string& role, const std::string& spec) {
    return "    " + role + ": {template: {spec: {" + spec +
           ", containers: [{name: tensorflow, command: [a], volumeMounts: "
           "[{name: data, mountPath: /data, readOnly: true}, {name: tmp, mountPath: /tmp/x}]}], "
           "volumes: [{name: data, persistentVolumeClaim: {claimName: corpus}}, "
           "{name: tmp, emptyDir: {sizeLimit: 2Gi}}]}}}\n";
  };
  const job::Job job = Import(
      "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x, namespace: team}\n"
      "spec:\n  tfReplicaSpecs:\n" +
      pod("Worker",
          "nodeSelector: {pool: gpu}, priorityClassName: high, hostNetwork: true, "
          "serviceAccountName: trainer, imagePullSecrets: [{name: registry}], "
          "runtimeClassName: nvidia, "
          "tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}, "
          "{key: team, value: ml}]") +
      pod("PS", "nodeSelector: {pool: gpu}"));
  using Texts = std::vector<std::string>;
  EXPECT_EQ(job.kubernetes.name_space, "team");
  // What all say.
  EXPECT_EQ(job.kubernetes.node_selector, (std::map<std::string, std::string>{{"pool", "gpu"}}));
  job::PodSettings rest = job.kubernetes;
  rest.node_selector.clear();
  EXPECT_EQ(rest, job::PodSettings());
  const job::PodSettings& worker = job.FindRole("worker")->kubernetes;
  EXPECT_EQ(worker.tolerations, (Texts{"nvidia.com/gpu:NoSchedule", "team=ml"}));
  EXPECT_EQ(worker.service_account, "trainer");
  EXPECT_EQ(worker.priority_class, "high");
  EXPECT_EQ(worker.runtime_class, "nvidia");
  EXPECT_EQ(worker.image_pull_secrets, Texts{"registry"});
  EXPECT_EQ(worker.host_network, true);
  // The coordinator mounts no claim, of which there may be one place only.
  const job::PodSettings& ps = job.FindRole("ps")->kubernetes;
  EXPECT_EQ(ps.volumes, (Texts{"pvc:corpus:/data:ro", "empty:2Gi:/tmp/x"}));
  rest = ps;
  rest.volumes.clear();
  EXPECT_EQ(rest, job::PodSettings());
}

TEST(TfJob, TasksThatRunOnAfterTheEndAreReported) {
  const std::string roles =
      "  tfReplicaSpecs:\n" + Replica("Chief", 1, "Never") + Replica("Worker", 2, "Never");
  const std::string head = kTfJob;
  EXPECT_NE(Told(head + roles).find("(worker)"), std::string::npos);
  EXPECT_NE(Told(head + "  runPolicy: {cleanPodPolicy: None}\n" + roles).find("(worker)"),
            std::string::npos);
  EXPECT_EQ(Told(head + "  runPolicy: {cleanPodPolicy: Running}\n" + roles), "");
  EXPECT_EQ(Told(head + "  successPolicy: AllWorkers\n  tfReplicaSpecs:\n" +
                 Replica("Worker", 2, "Never")),
            "");
}

std::string MpiJob(const std::string& version, const std::string& spec,
                   const std::string& launcher) {
  return "apiVersion: kubeflow.org/" + version + "\nkind: MPIJob\nmetadata: {name: x}\nspec: {" +
         spec + "mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [" + launcher +
         "]}}}, Worker: {replicas: 2, template: {spec: {containers: [{name: w}]}}}}}\n";
}

TEST(MpiJob, TheOperatorsFilesAreLeftOutOrTold) {
  using Words = std::vector<std::string>;
  const auto command = [](const std::string& words) {
    return Import(MpiJob("v1", "", "{command: [" + words + "]}")).FindRole("launcher")->command;
  };
  EXPECT_EQ(command("mpirun, --hostfile, /etc/mpi/hostfile, -np, '2', a"),
            (Words{"mpirun", "-np", "2", "a"}));
  EXPECT_EQ(command("sh, -c, 'mpirun -hostfile /etc/mpi/hostfile -np 2 a'"),
            (Words{"sh", "-c", "mpirun  -np 2 a"}));
  const auto told = [](const std::string& words) {
    return Told(MpiJob("v1", "runPolicy: {cleanPodPolicy: All}, ", "{command: [" + words + "]}"));
  };
  EXPECT_EQ(told("mpirun, --hostfile, /etc/mpi/hostfile, a"), "");
  EXPECT_NE(told("sh, -c, 'cat /etc/mpi/hostfile; mpirun a'").find("/etc/mpi"), std::string::npos);
  EXPECT_NE(told("horovodrun, -np, '2', --host-discovery-script, /etc/mpi/discover_hosts.sh, a")
                .find("horovodrun reaches"),
            std::string::npos);
}

TEST(MpiJob, TheLaunchersContainerSlotsAndRestartsAreAsThere) {
  const auto job = Import(MpiJob("v2beta1",
                                 "mainContainer: run, runLauncherAsWorker: true, "
                                 "slotsPerWorker: 2, ",
                                 "{name: side, command: [b]}, {name: run, command: [mpirun, a]}"));
  EXPECT_EQ(job.FindRole("launcher")->command, (std::vector<std::string>{"mpirun", "a"}));
  EXPECT_EQ(job.FindRole("worker")->replicas, 3);
  EXPECT_EQ(job.FindRole("worker")->processes, 2);
  EXPECT_EQ(job.FindRole("launcher")->restart.when, RestartWhen::kAlways);
  EXPECT_EQ(job.FindRole("launcher")->restart.limit, 6);
  const auto never = Import(MpiJob("v1", "", "{command: [mpirun, a]}"));
  EXPECT_EQ(never.FindRole("launcher")->restart.when, RestartWhen::kNever);
}

TEST(XgboostJob, WorkersHaveTheirAddresses) {
  const auto job = Import(
      "apiVersion: kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: x}\nspec: {xgbReplicaSpecs: "
      "{Master: {template: {spec: {containers: [{command: [a]}]}}}, Worker: {replicas: 2, "
      "template: "
      "{spec: {containers: [{command: [a]}]}}}}}\n");
  EXPECT_EQ(job.FindRole("master")->env.at("WORKER_ADDRS"), "{{shoal.hosts.worker}}");
}

TEST(JaxJob, WorkersAreProcesses) {
  const auto job = Import(
      "apiVersion: kubeflow.org/v1\nkind: JAXJob\nmetadata: {name: x}\nspec: {jaxReplicaSpecs: "
      "{Worker: {replicas: 2, restartPolicy: OnFailure, template: {spec: {containers: [{name: jax, "
      "command: [python3, train.py], ports: [{name: jaxjob-port, containerPort: 6666}]}]}}}}}\n");
  EXPECT_EQ(job.framework, job::Framework::kJax);
  EXPECT_EQ(job.FindRole("worker")->replicas, 2);
  EXPECT_EQ(job.FindRole("worker")->ports, (std::vector<job::Port>{{"coordinator", false}}));
  EXPECT_EQ(job.success.roles, std::vector<std::string>{"worker"});
}

TEST(PaddleJob, AMastersEndIsTheJobs) {
  const auto text = [](const std::string& master) {
    return "apiVersion: kubeflow.org/v1\nkind: PaddleJob\nmetadata: {name: x}\nspec: "
           "{paddleReplicaSpecs: {" +
           master +
           "Worker: {replicas: 2, template: {spec: {containers: [{name: paddle, command: "
           "[a]}]}}}}}\n";
  };
  const auto job = Import(text(""));
  EXPECT_EQ(job.framework, job::Framework::kPaddle);
  EXPECT_EQ(job.success.roles, std::vector<std::string>{"worker"});
  EXPECT_EQ(job.FindRole("worker")->restart.when, job::RestartWhen::kAlways);
  const auto servers =
      Import(text("Master: {template: {spec: {containers: [{name: paddle, command: [a]}]}}}, "));
  EXPECT_EQ(servers.success.roles, std::vector<std::string>{"master"});
}

std::string TfJobWith(const std::string& metadata, const std::string& worker,
                      const std::string& ps) {
  const auto pod = [](const std::string& resources) {
    return "{template: {metadata: {annotations: {a: '1'}}, spec: {containers: [{name: tensorflow, "
           "command: [a], resources: {" +
           resources + "}}]}}}";
  };
  return "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x" + metadata +
         "}\nspec: {tfReplicaSpecs: {Worker: " + pod(worker) + ", PS: " + pod(ps) + "}}\n";
}

TEST(Kubernetes, RequestsAndLimitsAreTwoThings) {
  const auto job = Import(TfJobWith("", "requests: {cpu: 1, memory: 64Mi}, limits: {cpu: 32}",
                                    "requests: {cpu: 2}, limits: {cpu: 2, memory: 1Gi}"));
  const job::Resources& worker = job.FindRole("worker")->resources;
  EXPECT_EQ(worker.cpu, 32);
  EXPECT_EQ(worker.cpu_request, 1);
  EXPECT_EQ(worker.memory_bytes, 0);  // no limit
  EXPECT_EQ(worker.memory_request, int64_t{64} << 20);
  const job::Resources& ps = job.FindRole("ps")->resources;
  EXPECT_EQ(ps.cpu_reserved(), 2);
  EXPECT_EQ(ps.cpu_request, 0);
  EXPECT_EQ(ps.memory_reserved(), int64_t{1} << 30);
  EXPECT_FALSE(
      ImportText(TfJobWith("", "requests: {cpu: 4}, limits: {cpu: 2}", ""), "f.yaml").ok());
}

TEST(Kubernetes, FurtherResourcesGoToThePodsOfTheirRole) {
  using Texts = std::vector<std::string>;
  const auto amd = Import(TfJobWith("", "limits: {amd.com/gpu: 4, rdma/hca: 1}",
                                    "limits: {hugepages-32Mi: 64Mi, nvidia.com/mig-1g.5gb: 2}"));
  EXPECT_EQ(amd.kubernetes.gpu_resource, "amd.com/gpu");
  EXPECT_EQ(amd.FindRole("worker")->resources.gpu, 4);
  EXPECT_EQ(amd.kubernetes.resources,
            (Texts{"ps:hugepages-32Mi=64Mi", "ps:nvidia.com/mig-1g.5gb=2", "worker:rdma/hca=1"}));
  const auto both =
      Import(TfJobWith("", "limits: {amd.com/gpu: 4}", "limits: {nvidia.com/gpu: 2}")).kubernetes;
  EXPECT_EQ(both.gpu_resource, "nvidia.com/gpu");
  EXPECT_EQ(both.resources, (Texts{"worker:amd.com/gpu=4"}));
}

TEST(Kubernetes, LabelsAndAnnotationsGoToThePods) {
  const auto settings =
      Import(TfJobWith(", labels: {kueue.x-k8s.io/queue-name: q}, annotations: {b: '2', "
                       "kubectl.kubernetes.io/last-applied-configuration: x}",
                       "", ""))
          .kubernetes;
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(settings.labels, (Map{{"kueue.x-k8s.io/queue-name", "q"}}));
  EXPECT_EQ(settings.annotations, (Map{{"a", "1"}, {"b", "2"}}));
}

TEST(Kubernetes, SettingsOfOneRoleStayWithIt) {
  const auto pod = [](const std::string& spec, const std::string& container) {
    return "{template: {spec: {" + spec + "containers: [{name: tensorflow, command: [a]" +
           container + "}]}}}";
  };
  const auto job = [&](const std::string& worker, const std::string& ps) {
    return "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec: {runPolicy: "
           "{cleanPodPolicy: All}, tfReplicaSpecs: {Worker: " +
           worker + ", PS: " + ps + "}}\n";
  };
  const std::string privileged = ", securityContext: {privileged: true}";
  for (const std::string& worker :
       {pod("hostNetwork: true, ", ""),
        pod("serviceAccountName: admin, automountServiceAccountToken: false, ", ""),
        pod("nodeSelector: {a: b}, ", ""), pod("", privileged)}) {
    const std::string one = job(worker, pod("", ""));
    EXPECT_EQ(Told(one), "");
    EXPECT_NE(Import(one).FindRole("worker")->kubernetes, job::PodSettings());
    EXPECT_EQ(Import(one).FindRole("ps")->kubernetes, job::PodSettings());
    EXPECT_EQ(Import(one).kubernetes, job::Kubernetes());
  }
  // Nodes for all are for the coordinator too; rights are not.
  const job::Job nodes =
      Import(job(pod("nodeSelector: {a: b}, ", ""), pod("nodeSelector: {a: c}, ", "")));
  EXPECT_EQ(nodes.FindRole("worker")->kubernetes.node_selector.at("a"), "b");
  EXPECT_EQ(nodes.FindRole("ps")->kubernetes.node_selector.at("a"), "c");
  for (const std::string& both : {pod("hostNetwork: true, ", ""),
                                  pod("serviceAccountName: admin, ", ""), pod("", privileged)}) {
    EXPECT_EQ(Import(job(both, both)).kubernetes, job::Kubernetes());
    EXPECT_NE(Import(job(both, both)).FindRole("ps")->kubernetes, job::PodSettings());
  }
}

TEST(Kubernetes, SharedMemoryComesFromTheFile) {
  const auto job = [](const std::string& empty) {
    return Import(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\nspec: "
        "{pytorchReplicaSpecs: {Master: {template: {spec: {volumes: [{name: shm, emptyDir: " +
        empty +
        "}], containers: [{name: pytorch, command: [a], volumeMounts: [{name: shm, "
        "mountPath: /dev/shm}]}]}}}}}\n");
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(job("{medium: Memory, sizeLimit: 16Gi}").roles[0].kubernetes.volumes,
            Texts{"memory:16Gi:/dev/shm"});
  EXPECT_EQ(job("{medium: Memory, sizeLimit: 16Gi}").container.shm_bytes, int64_t{16} << 30);
  EXPECT_EQ(job("{medium: Memory}").roles[0].kubernetes.volumes, Texts{"memory:/dev/shm"});
  EXPECT_EQ(job("{}").roles[0].kubernetes.volumes, Texts{"empty:/dev/shm"});
}

TEST(Kubernetes, LabelsThatAClusterSetsOnJobsAreLeftOut) {
  const std::string text = TfJobWith(", labels: {job-name: x, team: y}", "", "");
  EXPECT_EQ(Import(text).kubernetes.labels, (std::map<std::string, std::string>{{"team", "y"}}));
  EXPECT_NE(Told(text).find("Kubernetes itself sets"), std::string::npos);
}

TEST(TfJob, OverridesChangeTheImportedJob) {
  const std::string text =
      std::string(kTfJob) + "  tfReplicaSpecs:\n" + Replica("Worker", 2, "Never");
  EXPECT_EQ(Import(text, {"roles.worker.replicas=7"}).roles[0].replicas, 7);
  const auto imported = ImportText(text, "f.yaml");
  ASSERT_TRUE(imported.ok());
  const auto wrong = FinishImport(**imported, {"roles.worke.replicas=7"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.status().message().find("did you mean 'worker'"), std::string::npos);
}

std::string VolcanoJob(const std::string& job_policies, const std::string& policies,
                       const std::string& restart) {
  return "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n"
         "  maxRetry: 9\n  policies: [" +
         job_policies +
         "]\n  tasks:\n"
         "    - {name: ps, template: {spec: {restartPolicy: Never, containers: [{command: "
         "[a]}]}}}\n"
         "    - {name: worker, replicas: 2, policies: [" +
         policies + "], template: {spec: {restartPolicy: " + restart +
         ", containers: [{command: [a]}]}}}\n";
}

TEST(Volcano, EventsLeadToTheirActions) {
  const auto failed = [](const std::string& action) {
    return Import(VolcanoJob("", "{event: PodFailed, action: " + action + "}", "Never"))
        .FindRole("worker")
        ->restart;
  };
  EXPECT_EQ(failed("RestartJob").scope, RestartScope::kJob);
  EXPECT_EQ(failed("RestartTask").scope, RestartScope::kRole);
  EXPECT_EQ(failed("RestartPod").scope, RestartScope::kTask);
  EXPECT_EQ(failed("RestartPod").limit, 9);
  EXPECT_EQ(failed("AbortJob").when, RestartWhen::kNever);
  EXPECT_EQ(failed("TerminateJob").when, RestartWhen::kNever);
}

TEST(Volcano, APodThatIsTakenAwayIsATaskThatIsLost) {
  const auto rules = [](const std::string& policies) {
    return Import(VolcanoJob("", policies, "Never")).FindRole("worker")->on_exit;
  };
  using Rules = std::vector<job::ExitRule>;
  const job::ExitRule kNoProgram{"126-127", job::EndAction::kFail};
  EXPECT_EQ(rules("{event: PodEvicted, action: RestartJob}"),
            (Rules{{"lost", job::EndAction::kRestartJob}}));
  EXPECT_EQ(rules("{event: PodEvicted, action: RestartPod}"),
            (Rules{{"lost", job::EndAction::kRetry}}));
  EXPECT_EQ(rules("{event: PodEvicted, action: TerminateJob}"), Rules{});  // as every end
  EXPECT_EQ(rules("{event: PodFailed, action: RestartPod}, {event: PodEvicted, action: AbortJob}"),
            (Rules{{"lost", job::EndAction::kFail}, kNoProgram}));
  EXPECT_EQ(
      rules("{event: PodFailed, action: RestartPod}, {event: PodEvicted, action: RestartJob}"),
      (Rules{{"lost", job::EndAction::kRestartJob}, kNoProgram}));
  EXPECT_EQ(rules("{event: '*', action: RestartJob}"), Rules{kNoProgram});
  const auto role = *Import(VolcanoJob("", "{event: PodEvicted, action: RestartTask}", "Never"))
                         .FindRole("worker");
  EXPECT_EQ(role.restart.scope, RestartScope::kRole);
  EXPECT_EQ(role.restart.limit, 9);
}

TEST(Volcano, PoliciesThatNothingActsOnAreTold) {
  for (const char* policy :
       {"{event: PodPending, action: RestartJob}", "{event: OutOfSync, action: SyncJob}",
        "{event: TaskCompleted, action: TerminateJob}", "{event: Unknown, action: AbortJob}",
        "{event: PodFailed, action: RestartPartition}"}) {
    EXPECT_NE(Told(VolcanoJob(policy, "", "Never")).find("not kept"), std::string::npos) << policy;
  }
  EXPECT_EQ(Told(VolcanoJob("{event: PodFailed, action: RestartJob}",
                            "{event: TaskCompleted, action: CompleteJob}", "Never")),
            "");
}

TEST(Volcano, ATaskMayFailWhereFewerAreEnough) {
  const std::string task =
      "- {name: w, replicas: 3, template: {spec: {restartPolicy: Never, containers: [{command: "
      "[a]}]}}}\n";
  const std::string head =
      "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n";
  EXPECT_EQ(Import(head + "  minAvailable: 1\n  tasks:\n    " + task).roles[0].min_replicas, 1);
  EXPECT_FALSE(Import(head + "  minAvailable: 3\n  tasks:\n    " + task).roles[0].min_replicas);
  EXPECT_NE(Told(head + "  minAvailable: 1\n  tasks:\n    " + task + "    " +
                 "- {name: v, template: {spec: {containers: [{command: [a]}]}}}\n")
                .find("could start with 1"),
            std::string::npos);
}

TEST(Volcano, TaskPoliciesComeBeforeTheJobs) {
  const auto job = Import(VolcanoJob("{event: '*', action: RestartJob}",
                                     "{event: PodFailed, action: TerminateJob}", "Never"));
  EXPECT_EQ(job.FindRole("worker")->restart.when, RestartWhen::kNever);
  EXPECT_EQ(job.FindRole("ps")->restart.scope, RestartScope::kJob);
}

TEST(Volcano, CompleteJobIsSuccessByThatTask) {
  const auto job =
      Import(VolcanoJob("", "{event: TaskCompleted, action: CompleteJob}", "OnFailure"));
  EXPECT_EQ(job.success, (job::Success{SuccessRule::kAll, {"worker"}, 0}));
  EXPECT_EQ(job.FindRole("ps")->follows, "worker");
  EXPECT_EQ(job.FindRole("worker")->restart.when, RestartWhen::kAlways);
  const auto all = Import(VolcanoJob("", "", "Never"));
  EXPECT_EQ(all.success, (job::Success{SuccessRule::kAll, {"ps", "worker"}, 0}));
}

std::string VolcanoWithHosts(const std::string& command) {
  return "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n"
         "  plugins: {env: [], svc: []}\n  tasks:\n"
         "    - {name: my-ps, template: {spec: {containers: [{command: [a]}]}}}\n"
         "    - {name: worker, replicas: 2, template: {spec: {containers: [{command: " +
         command + "}]}}}\n";
}

TEST(Volcano, VariablesAreMadeOfTheCluster) {
  const auto job = Import(VolcanoWithHosts("[b, c]"));
  const std::map<std::string, std::string> env = {
      {"VC_MY_PS_HOSTS", "{{shoal.hosts.my-ps}}"},   {"VC_MY_PS_NUM", "{{shoal.count.my-ps}}"},
      {"VC_WORKER_HOSTS", "{{shoal.hosts.worker}}"}, {"VC_WORKER_NUM", "{{shoal.count.worker}}"},
      {"VC_TASK_INDEX", "{{shoal.index}}"},          {"VK_TASK_INDEX", "{{shoal.index}}"},
  };
  EXPECT_EQ(job.FindRole("worker")->env, env);
  EXPECT_EQ(job.FindRole("my-ps")->env, env);
  EXPECT_EQ(job.FindRole("worker")->command, (std::vector<std::string>{"b", "c"}));
}

TEST(Volcano, CommandsFindHostFilesWithinAnyQuotes) {
  const auto last_line = [](const std::string& command) {
    const std::string script = Import(VolcanoWithHosts(command)).FindRole("worker")->command.back();
    return script.substr(script.rfind('\n') + 1);
  };
  EXPECT_EQ(last_line("[sh, -c, cat /etc/volcano/worker.host]"),
            "cat \"$VC_HOST_FILES\"/worker.host");
  EXPECT_EQ(last_line(R"([bash, -ec, 'A=`cat "/etc/volcano/a"`'])"),
            "A=`cat \"$VC_HOST_FILES/a\"`");
  EXPECT_EQ(last_line(R"([sh, -c, "python -c 'open(\"/etc/volcano/a\")' \\'/etc/volcano"])"),
            "python -c 'open(\"'\"$VC_HOST_FILES\"'/a\")' \\'\"$VC_HOST_FILES\"");
  EXPECT_EQ(last_line("[mpiexec, --hostfile, /etc/volcano/a, \"it's\"]"),
            "exec 'mpiexec' '--hostfile' ''\"$VC_HOST_FILES\"'/a' 'it'\\''s'");
}

TEST(Quantity, AsKubernetesWritesThem) {
  EXPECT_EQ(ParseQuantity("500m"), 0.5);
  EXPECT_EQ(ParseQuantity("2"), 2);
  EXPECT_EQ(ParseQuantity("1.5Gi"), 1.5 * 1073741824);
  EXPECT_EQ(ParseQuantity("1e3"), 1000);
  EXPECT_EQ(ParseQuantity("128974848"), 128974848);
  EXPECT_EQ(ParseQuantity("12k"), 12'000);
  for (const char* wrong : {"", "Gi", "-1", "1Gib", "1 Gi", "nan", "inf", "1e999", "0x10"}) {
    EXPECT_FALSE(ParseQuantity(wrong).has_value()) << wrong;
  }
}

TEST(References, AreReplacedAsTheKubeletDoes) {
  const std::map<std::string, std::string> env = {{"A", "1"}, {"B", "$(A)"}};
  std::set<std::string> unresolved;
  EXPECT_EQ(ExpandReferences("x$(A)y$(B)$$(A)$(C)$(", env, &unresolved), "x1y$(A)$(A)$(C)$(");
  EXPECT_EQ(unresolved, std::set<std::string>{"C"});
  EXPECT_EQ(ExpandReferences("p$$w$$$(A)$x$", env), "p$w$1$x$");
  // Neither time nor memory grows with what a small file asks for.
  std::string open;
  for (int i = 0; i < 300'000; ++i) open += "$(";
  EXPECT_EQ(ExpandReferences(open, env), open);
  const std::vector<std::string> words(1000, "$(LARGE)");
  size_t bytes = 0;
  for (const std::string& word : ExpandCommand(words, {{"LARGE", std::string(100'000, 'x')}},
                                               job::Framework::kGeneric, &unresolved)) {
    bytes += word.size();
  }
  EXPECT_LT(bytes, size_t{2} << 20);
  EXPECT_TRUE(unresolved.contains("LARGE"));
}

TEST(Import, MergeKeysGiveMapsTheFieldsTheyLack) {
  const auto job = Import(
      "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec:\n"
      "  tfReplicaSpecs:\n"
      "    Worker: &role\n"
      "      replicas: 3\n"
      "      restartPolicy: OnFailure\n"
      "      template: {spec: {containers: [{name: tensorflow, command: [a]}]}}\n"
      "    PS:\n"
      "      <<: *role\n"
      "      replicas: 2\n"
      "    Evaluator:\n"
      "      <<: [{replicas: 1}, *role]\n");
  EXPECT_EQ(job.FindRole("ps")->replicas, 2);
  EXPECT_EQ(job.FindRole("ps")->restart.when, RestartWhen::kAlways);
  EXPECT_EQ(job.FindRole("evaluator")->replicas, 1);
  EXPECT_EQ(job.FindRole("evaluator")->command, std::vector<std::string>{"a"});
  const auto wrong =
      ImportText("apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: {<<: text}\n", "f.yaml");
  EXPECT_TRUE(!wrong.ok() || !wrong->has_value());  // ParseJob says what is wrong with it
}

TEST(Import, FieldsOfLaterVersionsAreToldAndMisspeltOnesRefused) {
  const auto with = [](const std::string& pod, const std::string& container) {
    return "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x}\nspec: {tfReplicaSpecs: "
           "{Worker: {template: {spec: {" +
           pod + "containers: [{name: tensorflow, command: [a]" + container + "}]}}}}}\n";
  };
  for (const std::string& text :
       {with("hostnameOverride: h, ", ""), with("restartPolicyOfTomorrow: {}, ", ""),
        with("", ", restartPolicyRules: [{action: Restart}]"),
        with("", ", resources: {limits: {hugepages-32Mi: 64Mi}}")}) {
    const auto imported = ImportText(text, "f.yaml");
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    const auto& losses = (*imported)->losses;
    EXPECT_TRUE(std::any_of(losses.begin(), losses.end(),
                            [](const ImportLoss& loss) { return !loss.minor; }));
  }
  EXPECT_FALSE(ImportText(with("hostNetwrk: true, ", ""), "f.yaml").ok());
}

std::string PytorchJob(const std::string& spec, const std::string& container) {
  const std::string replicas =
      "{replicas: 2, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, " +
      container + "}]}}}";
  return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x, namespace: ml}\n"
         "spec: {" +
         spec + "pytorchReplicaSpecs: {Worker: " + replicas + "}}\n";
}

TEST(References, OfCommandsAreReplacedWhenTheJobIsComplete) {
  using Words = std::vector<std::string>;
  const auto command = [](const std::string& container,
                          const std::vector<std::string>& overrides = {}) {
    return Import(PytorchJob("", container), overrides).roles[0].command;
  };
  // What the framework sets is known when the task starts.
  EXPECT_EQ(command("command: [train, '--rank=$(RANK)', 'it''s $$5']"),
            (Words{"sh", "-c", "exec 'train' '--rank='\"$RANK\" 'it'\\''s $5'"}));
  const std::string env = "env: [{name: N, value: '3'}, {name: P, value: 'p$$w$(N)'}], ";
  EXPECT_EQ(command(env + "command: [train, $(N), $(P)]"), (Words{"train", "3", "p$w3"}));
  EXPECT_EQ(command(env + "command: [train, $(N)]", {"roles.worker.env.N=7"}),
            (Words{"train", "7"}));
  const std::string secret =
      "env: [{name: KEY, valueFrom: {secretKeyRef: {name: a, key: b}}}], "
      "command: [sh, -c, 'run $(KEY) $(date)']";
  EXPECT_EQ(command(secret, {"roles.worker.env.KEY=k"}), (Words{"sh", "-c", "run k $(date)"}));
  const std::string told = Told(PytorchJob("", secret));
  EXPECT_NE(told.find("$(KEY) stays as it is"), std::string::npos) << told;
  EXPECT_EQ(told.find("$(date)"), std::string::npos) << told;
  // A command of --set's own is nobody's to expand.
  EXPECT_EQ(command("command: [a]", {"roles.worker.command=[echo, $$]"}), (Words{"echo", "$$"}));
}

TEST(References, FieldsOfThePodAreTheJobsOwn) {
  const auto job = Import(PytorchJob(
      "",
      "env: [{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, "
      "{name: AT, value: '$(IP):1'}, "
      "{name: SPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}, "
      "{name: I, valueFrom: {fieldRef: {fieldPath: "
      "\"metadata.labels['training.kubeflow.org/replica-index']\"}}}], command: [run, $(IP)]"));
  EXPECT_EQ(job.roles[0].env, (std::map<std::string, std::string>{{"AT", "{{shoal.host}}:1"},
                                                                  {"I", "{{shoal.index}}"},
                                                                  {"IP", "{{shoal.host}}"},
                                                                  {"PYTHONUNBUFFERED", "1"},
                                                                  {"SPACE", "ml"}}));
  EXPECT_EQ(job.roles[0].command.back(), "exec 'run' \"$IP\"");
}

TEST(PyTorchJob, ATorchrunThatIsNotTheFirstWordFindsTheOthers) {
  for (const char* container :
       {"command: [bash, -c, 'cd /w && torchrun train.py']",
        "command: [python, -u, -m, torch.distributed.run, train.py]",
        "command: [tini, --, torchrun, train.py]", "command: [torchrun, --run-path, train.py]",
        "command: [python3, -m, torch.distributed.launch, train.py]"}) {
    const auto job = Import(PytorchJob("nprocPerNode: '4', ", container));
    EXPECT_EQ(job.roles[0].processes, 1) << container;
    EXPECT_EQ(job.roles[0].env.at("PET_NPROC_PER_NODE"), "4") << container;
    EXPECT_NE(Told(PytorchJob("", container)).find("one a core"), std::string::npos) << container;
  }
  const auto gpus = Import(PytorchJob(
      "", "command: [tini, --, torchrun, a.py], resources: {limits: {nvidia.com/gpu: 2}}"));
  EXPECT_EQ(gpus.roles[0].env.at("PET_NPROC_PER_NODE"), "2");
  const auto plain = Import(PytorchJob("", "command: [python, train.py]"));
  EXPECT_FALSE(plain.roles[0].env.contains("PET_NPROC_PER_NODE"));
  EXPECT_NE(
      Told(PytorchJob("nprocPerNode: '4', ", "command: [python, train.py]")).find("WORLD_SIZE"),
      std::string::npos);
  EXPECT_NE(Told(PytorchJob("", "command: [accelerate, launch, a.py]")).find("--num_machines"),
            std::string::npos);
}

TEST(PyTorchJob, TorchrunIsReplacedInAllRolesOrInNone) {
  const auto one = Import(PytorchJob("nprocPerNode: '4', ", "command: [torchrun, a.py]"));
  EXPECT_EQ(one.roles[0].processes, 4);
  // Each pod trains by itself there.
  const auto alone =
      Import(PytorchJob("nprocPerNode: '4', ", "command: [torchrun, --standalone, a]"));
  EXPECT_EQ(alone.roles[0].command[0], "torchrun");
  EXPECT_EQ(alone.roles[0].processes, 1);
  const auto restarts = Import(PytorchJob("", "command: [torchrun, --max-restarts=3, a.py]"));
  EXPECT_EQ(restarts.roles[0].restart.limit, 3);
  const std::string pod = "template: {spec: {containers: [{command: [";
  const auto mixed = Import(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\nspec: {nprocPerNode: "
      "'2', "
      "pytorchReplicaSpecs: {Master: {" +
      pod + "torchrun, a.py]}]}}}, Worker: {" + pod + "sh, -c, torchrun a.py]}]}}}}}\n");
  EXPECT_EQ(mixed.FindRole("master")->command[0], "torchrun");
  EXPECT_EQ(mixed.FindRole("master")->env.at("PET_NPROC_PER_NODE"), "2");
}

TEST(LaunchLine, TorchrunIsTakenOff) {
  const auto line = ParseTorchrunCommand(
      {"torchrun", "--nproc-per-node=4", "--rdzv_backend", "c10d", "-m", "train", "--nnodes", "2"});
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->processes, 4);
  EXPECT_EQ(line->command,
            (std::vector<std::string>{"python3", "-u", "-m", "train", "--nnodes", "2"}));
  const auto old = ParseTorchrunCommand({"/usr/bin/python3", "-m", "torch.distributed.launch",
                                         "--use_env", "--nproc_per_node", "gpu", "a.py"});
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(old->per_node, "gpu");
  EXPECT_EQ(old->command, (std::vector<std::string>{"/usr/bin/python3", "-u", "a.py"}));
  const auto beside = ParseTorchrunCommand({"/opt/venv/bin/torchrun", "-r", "3", "--nnodes=1:4",
                                            "--max-restarts", "2", "--log-dir=l", "a.py"});
  ASSERT_TRUE(beside.has_value());
  EXPECT_EQ(beside->command, (std::vector<std::string>{"/opt/venv/bin/python3", "-u", "a.py"}));
  EXPECT_EQ(beside->nodes, "1:4");
  EXPECT_EQ(beside->restarts, 2);
  EXPECT_EQ(beside->lost, "--r, --log_dir");
  EXPECT_EQ(ParseTorchrunCommand({"torchrun", "--standalone", "a.py"})->nodes, "1");
  // It passes --local-rank to the program.
  EXPECT_FALSE(
      ParseTorchrunCommand({"python3", "-m", "torch.distributed.launch", "a.py"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"torchrun", "--run-path", "a.py"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"python", "train.py"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"torchrun", "--new-flag", "a.py"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"torchrun", "--nnodes"}).has_value());
  EXPECT_FALSE(ParseTorchrunCommand({"torchrun", "---"}).has_value());
}

std::string Line(const std::string& app) {
  return Import("{\"id\": \"/a\", \"ports\": [], " + app + "}").roles[0].command.back();
}

TEST(Marathon, ProgramsHaveItsVariables) {
  const std::string app =
      R"({"id":"/team/web","cmd":"java -Xmx${MARATHON_APP_RESOURCE_MEM%.*}m","cpus":0.5,"mem":512,
          "labels":{"my-tier.1":"front"},"env":{"MARATHON_APP_LABEL_MY_TIER_1":"own"},
          "container":{"type":"DOCKER","docker":{"image":"java:21"}}})";
  const job::Job job = Import(app);
  const auto& env = job.roles[0].env;
  const std::pair<const char*, const char*> kExpected[] = {
      {"MARATHON_APP_ID", "/team/web"},       {"MARATHON_APP_RESOURCE_CPUS", "0.5"},
      {"MARATHON_APP_RESOURCE_MEM", "512.0"}, {"MARATHON_APP_RESOURCE_DISK", "0.0"},
      {"MARATHON_APP_RESOURCE_GPUS", "0"},    {"MARATHON_APP_DOCKER_IMAGE", "java:21"},
      {"MARATHON_APP_LABELS", "MY_TIER_1"},   {"MARATHON_APP_LABEL_MY_TIER_1", "own"}};
  for (const auto& [name, value] : kExpected) {
    ASSERT_TRUE(env.contains(name)) << name;
    EXPECT_EQ(env.at(name), value) << name;
  }
  const job::Job plain = Import(R"({"id":"/a","cmd":"a"})");
  EXPECT_EQ(plain.roles[0].resources.cpu, 1);
  EXPECT_EQ(plain.roles[0].resources.memory_bytes, int64_t{128} << 20);
  EXPECT_NE(Told(R"({"id":"/a","cmd":"echo $MESOS_TASK_ID"})").find("only Marathon knows"),
            std::string::npos);
}

TEST(Marathon, AnAppsOwnVariablesComeBeforeMarathons) {
  const auto job = Import(
      R"({"id": "/a", "cmd": "serve", "env": {"HOST": "0.0.0.0", "PORT": "80", "PORT_WEB": "81"},
          "portDefinitions": [{"port": 0, "name": "web"}]})");
  EXPECT_EQ(job.roles[0].env.at("HOST"), "0.0.0.0");
  EXPECT_EQ(job.roles[0].command.back(),
            "export PORT0=$SHOAL_PORT_WEB PORTS=$SHOAL_PORT_WEB\nserve");
  const auto plain = Import(R"({"id": "/a", "cmd": "serve"})");
  EXPECT_EQ(plain.roles[0].env.at("HOST"), "{{shoal.host}}");
}

TEST(Marathon, AnAppThatNamesNoPortHasOne) {
  const auto plain = Import(R"({"id":"/a","cmd":"serve $PORT0"})");
  EXPECT_EQ(plain.roles[0].command.back(),
            "export PORT=$SHOAL_PORT PORT0=$SHOAL_PORT_DEFAULT PORT_DEFAULT=$SHOAL_PORT_DEFAULT "
            "PORTS=$SHOAL_PORT_DEFAULT\nserve $PORT0");
  for (const char* ports : {R"("ports":[])", R"("portDefinitions":[])"}) {
    const auto none = Import(std::string(R"({"id":"/a","cmd":"serve",)") + ports + "}");
    EXPECT_EQ(none.roles[0].command.back(), "serve") << ports;
    EXPECT_TRUE(none.roles[0].ports.empty()) << ports;
  }
  const auto mapped = Import(
      R"({"id":"/a","cmd":"serve","container":{"docker":{"image":"i"},"portMappings":[{"containerPort":80}]}})");
  EXPECT_EQ(mapped.roles[0].ports.size(), 1U);
}

TEST(Marathon, WaitsOfMoreThanAnHourAreMentioned) {
  const auto mentioned = [](const std::string& seconds) {
    const auto imported =
        ImportText(R"({"id":"/a","cmd":"a","maxLaunchDelaySeconds":)" + seconds + "}", "f.json");
    return imported.ok() && std::ranges::any_of((*imported)->losses, [](const ImportLoss& loss) {
             return loss.field == "maxLaunchDelaySeconds";
           });
  };
  EXPECT_TRUE(mentioned("36000"));
  EXPECT_FALSE(mentioned("3600"));
  EXPECT_EQ(
      Import(R"({"id":"/a","cmd":"a","maxLaunchDelaySeconds":36000})").roles[0].restart.backoff_max,
      std::chrono::hours(1));
}

TEST(Kubeflow, XgboostJobsOfTheirFirstOperatorAreTheSame) {
  const std::string text =
      "apiVersion: xgboostjob.kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: x}\nspec: "
      "{xgbReplicaSpecs: {Master: {template: {spec: {containers: [{name: xgboostjob, command: "
      "[a]}]}}}}}\n";
  const auto imported = ImportText(text, "f.yaml");
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_TRUE(imported->has_value());
  EXPECT_EQ((*imported)->job.roles.at(0).name, "master");
  std::string other = text;
  other.replace(other.find("xgboostjob.kubeflow"), 19, "other.kubeflow");
  EXPECT_FALSE(ImportText(other, "f.yaml").ok());
}

TEST(Marathon, PortsKeepTheirNumbersHoweverTheyAreCalled) {
  const std::string line = Line(
      R"("cmd": "serve", "portDefinitions": [{"port": 0, "name": "metrics-endpoint-a"},
          {"port": 8080, "name": "metrics-endpoint-b"}, {"port": 0}])");
  EXPECT_EQ(line,
            "export PORT=$SHOAL_PORT PORT0=$SHOAL_PORT_METRICS_ENDPOIN "
            "PORT_METRICS_ENDPOINT_A=$SHOAL_PORT_METRICS_ENDPOIN PORT1=$SHOAL_PORT_PORT1 "
            "PORT_METRICS_ENDPOINT_B=$SHOAL_PORT_PORT1 PORT_8080=$SHOAL_PORT_PORT1 "
            "PORT2=$SHOAL_PORT_PORT2 PORT_PORT2=$SHOAL_PORT_PORT2 "
            "PORTS=$SHOAL_PORT_METRICS_ENDPOIN,$SHOAL_PORT_PORT1,$SHOAL_PORT_PORT2\nserve");
  std::string many = R"({"id": "/a", "cmd": "serve", "ports": [0)";
  for (int i = 0; i < 15; ++i) many += ", 0";
  EXPECT_FALSE(ImportText(many + "]}", "f.json").ok());
}

TEST(Marathon, NumbersOfPortsAreToldWhereProgramsNeedThem) {
  EXPECT_NE(Told(R"({"id": "/a", "cmd": "b", "ports": [8080], "requirePorts": true})")
                .find("port 8080 itself was asked for"),
            std::string::npos);
  EXPECT_EQ(Told(R"({"id": "/a", "cmd": "b", "ports": [8080]})").find("8080"), std::string::npos);
  EXPECT_NE(Told(R"({"id": "/a", "cmd": "b", "container": {"docker": {"image": "i"},
                     "portMappings": [{"containerPort": 8080, "hostPort": 0}]}})")
                .find("listened at port 8080"),
            std::string::npos);
}

TEST(Marathon, CommandsThatKeepABackgroundProgramAliveStay) {
  EXPECT_EQ(Line(R"("cmd": "train; tail -f /dev/null")"), "train");
  EXPECT_EQ(Line(R"("cmd": "train > log 2>&1 && sleep infinity")"), "train > log 2>&1 ");
  for (const char* line : {"daemon & tail -f /dev/null", "daemon & echo up; tail -f /dev/null",
                           "nohup daemon > log 2>&1 & wait-for-it; sleep infinity"}) {
    EXPECT_EQ(Line("\"cmd\": \"" + std::string(line) + "\""), line);
  }
}

TEST(DmlcSubmit, FlagsBecomeRoles) {
  const auto imported = ImportDmlcSubmit({{"num-workers", {"1", "4"}},
                                          {"num-servers", {"2"}},
                                          {"cluster", {"yarn"}},
                                          {"server-memory", {"1.5G"}},
                                          {"env", {"A:1,B:2"}},
                                          {"env-worker", {"A:3"}}},
                                         {"./linear.dmlc", "data.conf"});
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const job::Job& job = imported->job;
  EXPECT_EQ(job.framework, job::Framework::kPsLite);
  EXPECT_EQ(job.name, "linear.dmlc");
  EXPECT_EQ(job.FindRole("worker")->replicas, 4);
  EXPECT_EQ(job.FindRole("scheduler")->replicas, 1);
  EXPECT_EQ(job.FindRole("server")->resources.memory_bytes, int64_t{1536} << 20);
  EXPECT_EQ(job.FindRole("worker")->env.at("A"), "3");
  EXPECT_EQ(job.FindRole("server")->env.at("A"), "1");
  EXPECT_EQ(imported->losses.size(), 2u);
  const auto rabit = ImportDmlcSubmit({{"num-workers", {"3"}}}, {"./a"});
  ASSERT_TRUE(rabit.ok());
  EXPECT_EQ(rabit->job.framework, job::Framework::kRabit);
}

TEST(DmlcSubmit, WordsAreJoinedForBashAsThere) {
  const auto command = [](const std::vector<std::string>& words) {
    const auto imported = ImportDmlcSubmit({{"num-workers", {"2"}}, {"num-servers", {"1"}}}, words);
    EXPECT_TRUE(imported.ok());
    return imported->job.command;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(command({"python", "a.py", "--n=1"}), (Words{"python", "a.py", "--n=1"}));
  EXPECT_EQ(command({"python a.py", "$DATA/*.txt", "|", "tee", "x y"}),
            (Words{"bash", "-c", "python a.py $DATA/*.txt | tee x y"}));
  const auto job = ImportDmlcSubmit({{"num-workers", {"2"}}, {"num-servers", {"1"}}}, {"a"})->job;
  EXPECT_EQ(job.FindRole("worker")->env.at("DMLC_TASK_ID"), "{{shoal.index}}");
  EXPECT_EQ(job.FindRole("server")->env.at("DMLC_TASK_ID"), "2");
}

TEST(DmlcSubmit, NumbersOfSeveralServersAreMentioned) {
  for (const char* servers : {"1", "2"}) {
    const auto imported =
        ImportDmlcSubmit({{"num-workers", {"1"}}, {"num-servers", {servers}}}, {"a"});
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    const bool mentioned = std::ranges::any_of(imported->losses, [](const ImportLoss& loss) {
      return loss.sentence.find("DMLC_TASK_ID") != std::string::npos;
    });
    EXPECT_EQ(mentioned, std::string(servers) == "2");
  }
}

TEST(DmlcSubmit, WrongFlagsAreNamed) {
  const auto message = [](const std::string& name, const std::string& value) {
    return ImportDmlcSubmit({{"num-workers", {"1"}}, {name, {value}}}, {"a"}).status().message();
  };
  EXPECT_EQ(message("num-servers", "-1"),
            "--num-servers: got '-1', expected an integer from 0 to 100000");
  EXPECT_EQ(message("worker-memory", "1k"),
            "--worker-memory: got '1k', expected a number that ends with g or m, such as 1g");
  EXPECT_EQ(message("env", "A=1"),
            "--env: got 'A=1', expected NAME:VALUE, several with ',' between them");
  EXPECT_FALSE(ImportDmlcSubmit({{"num-workers", {"1"}}}, {}).ok());
  EXPECT_FALSE(ImportDmlcSubmit({}, {"a"}).ok());
}

}  // namespace
}  // namespace shoal::importer
