// What all kinds with pods have: resources, labels, references.
#include <gtest/gtest.h>

#include "import/kubernetes/pod_environment.h"
#include "import/kubernetes/pod_template.h"
#include "import/test_imports.h"

namespace shoal::importer {
namespace {

TEST(Kubernetes, ALongTimeToEndIsTheLongestThereIs) {
  const std::string text =
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {spec: "
      "{terminationGracePeriodSeconds: 90000, restartPolicy: Never, containers: [{name: c, image: "
      "i, command: [a]}]}}}\n";
  EXPECT_EQ(Import(text).limits.stop_grace, std::chrono::hours(1));
  EXPECT_NE(Told(text).find("90000 s were"), std::string::npos);
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

}  // namespace
}  // namespace shoal::importer
