// TrainJobs with their runtimes: what they become.
#include <gtest/gtest.h>

#include "import/import.h"

namespace shoal::importer {
namespace {

using Words = std::vector<std::string>;

Result<ImportedJob> Load(const std::string& text) {
  TRY_ASSIGN(auto imported, ImportText(text, "f.yaml"));
  if (!imported) return InvalidArgument("not a job of another system");
  return FinishImport(std::move(*imported), {});
}

std::string Runtime(const std::string& policy, const std::string& container = "") {
  return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\n"
         "metadata: {name: r}\nspec:\n  mlPolicy: {" +
         policy +
         "}\n  template:\n    spec:\n      replicatedJobs:\n        - name: node\n"
         "          template:\n            metadata: {labels: "
         "{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}\n"
         "            spec: {template: {spec: {containers: [{name: node, image: i, env: "
         "[{name: A, value: a}, {name: B, value: b}]" +
         container + "}]}}}\n---\n";
}

std::string TrainJob(const std::string& spec) {
  return "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: t}\n"
         "spec:\n  runtimeRef: {name: r}\n" +
         spec;
}

job::Job JobOf(const std::string& text) {
  auto loaded = Load(text);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? loaded->job : job::Job();
}

std::string ErrorOf(const std::string& text) {
  const auto loaded = Load(text);
  return loaded.ok() ? "" : loaded.status().message();
}

bool Told(const std::string& text, const std::string& words) {
  const auto loaded = Load(text);
  if (!loaded.ok()) return false;
  for (const ImportLoss& loss : loaded->losses) {
    if ((loss.field + ": " + loss.sentence).find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(TrainJob, ItsTrainerReplacesTheRuntimes) {
  const job::Job job = JobOf(Runtime("numNodes: 5, torch: {}", ", command: [a], args: [old]") +
                             TrainJob("  trainer:\n    image: other\n    numNodes: 3\n"
                                      "    command: [python, t.py]\n    env: [{name: B, value: c}, "
                                      "{name: C, value: d}]\n"));
  ASSERT_EQ(job.roles.size(), 1u);
  const job::Role& worker = job.roles[0];
  EXPECT_EQ(worker.name, "worker");
  EXPECT_EQ(worker.replicas, 3);
  EXPECT_EQ(worker.command, (Words{"python", "t.py", "old"}));
  EXPECT_EQ(worker.env.at("A"), "a");
  EXPECT_EQ(worker.env.at("B"), "c");
  EXPECT_EQ(worker.env.at("C"), "d");
  EXPECT_EQ(job.image, "other");
  EXPECT_EQ(job.framework, job::Framework::kPytorch);
}

TEST(TrainJob, TheRuntimesNumbersAreDefaults) {
  EXPECT_EQ(JobOf(Runtime("numNodes: 5", ", command: [a]") + TrainJob("")).roles[0].replicas, 5);
  const std::string torch = Runtime("torch: {numProcPerNode: 4}", ", command: [torchrun, t.py]");
  EXPECT_EQ(JobOf(torch + TrainJob("")).roles[0].processes, 4);
  EXPECT_EQ(JobOf(torch + TrainJob("  trainer: {numProcPerNode: 2}\n")).roles[0].processes, 2);
  // By default as many as GPUs, or else as processors.
  const std::string plain = Runtime("torch: {}", ", command: [torchrun, t.py]");
  EXPECT_EQ(JobOf(plain + TrainJob("  trainer: {resourcesPerNode: {limits: {cpu: 3}}}\n"))
                .roles[0]
                .processes,
            3);
  EXPECT_EQ(JobOf(plain + TrainJob("  trainer: {resourcesPerNode: {limits: {cpu: 8, "
                                   "nvidia.com/gpu: 2}}}\n"))
                .roles[0]
                .processes,
            2);
}

TEST(TrainJob, ThePolicyIsTheFramework) {
  const auto framework = [](const std::string& policy) {
    return JobOf(Runtime(policy, ", command: [a]") + TrainJob("")).framework;
  };
  EXPECT_EQ(framework("jax: {}"), job::Framework::kJax);
  EXPECT_EQ(framework("numNodes: 2"), job::Framework::kGeneric);
  const job::Job boost =
      JobOf(Runtime("numNodes: 2, xgboost: {}", ", command: [a]") + TrainJob(""));
  EXPECT_NE(boost.roles[0].command.at(2).find("DMLC_NUM_WORKER=2"), std::string::npos);
  EXPECT_NE(ErrorOf(Runtime("flux: {}", ", command: [a]") + TrainJob("")).find("policy flux"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Runtime("jax: {}, torch: {}", ", command: [a]") + TrainJob(""))
                .find("got torch and jax, expected one"),
            std::string::npos);
}

TEST(TrainJob, AMissingRuntimeIsAnErrorThatSaysHowToGetIt) {
  const std::string error = ErrorOf(TrainJob(""));
  EXPECT_NE(error.find("f.yaml:5:22: spec.runtimeRef.name: got the runtime 'r'"), std::string::npos)
      << error;
  EXPECT_NE(error.find("kubectl get clustertrainingruntime r -o yaml"), std::string::npos);
  // Another kind of the same name is not the runtime.
  std::string other = Runtime("torch: {}", ", command: [a]");
  other.replace(other.find("Cluster"), 7, "");
  EXPECT_NE(ErrorOf(other + TrainJob("")).find("kind ClusterTrainingRuntime"), std::string::npos);
}

TEST(TrainJob, ARuntimeWithoutATrainerIsAnError) {
  std::string text = Runtime("torch: {}", ", command: [a]");
  text.replace(text.find("step: trainer"), 13, "step: other");
  EXPECT_NE(ErrorOf(text + TrainJob("")).find("no replicated job of the training"),
            std::string::npos);
}

TEST(TrainJob, MpiNeedsNodesBesideTheLauncher) {
  const std::string error = ErrorOf(Runtime("mpi: {}", ", command: [a]") + TrainJob(""));
  EXPECT_NE(error.find("no replicated job node beside the trainer"), std::string::npos) << error;
}

TEST(TrainJob, AContainerThatIsNoSectionIsAnError) {
  std::string text = Runtime("torch: {}");
  const size_t begin = text.find("[{name: node, image");
  text.replace(begin, text.find("}]}}}", begin) + 2 - begin, "[x]");
  EXPECT_NE(ErrorOf(text + TrainJob("  trainer: {image: i, env: [{name: A, value: a}], "
                                    "resourcesPerNode: {limits: {cpu: 1}}}\n"))
                .find("f.yaml:"),
            std::string::npos);
}

TEST(TrainJob, WrongTypesAreErrorsAtTheirPlace) {
  const std::string runtime = Runtime("torch: {}", ", command: [a]");
  for (const char* wrong :
       {"  trainer: x\n", "  trainer: {numNodes: 0}\n", "  trainer: {command: a}\n",
        "  trainer: {env: {A: b}}\n", "  trainer: {env: [a]}\n",
        "  trainer: {resourcesPerNode: 3}\n", "  trainer: {numProcPerNode: none}\n",
        "  runtimePatches: {}\n", "  runtimePatches: [{trainingRuntimeSpec: {template: x}}]\n",
        "  podTemplateOverrides: [{targetJobs: [{name: x}]}]\n", "  initializer: 1\n",
        "  initializer: {model: {storageUri: x}}\n", "  activeDeadlineSeconds: 0\n"}) {
    EXPECT_NE(ErrorOf(runtime + TrainJob(wrong)).find("f.yaml:"), std::string::npos) << wrong;
  }
  for (const char* wrong : {"spec: 1\n", "spec: {template: 1}\n", "spec: {template: {spec: 1}}\n",
                            "spec: {template: {spec: {replicatedJobs: 1}}}\n",
                            "spec: {mlPolicy: 1, template: {spec: {replicatedJobs: []}}}\n"}) {
    EXPECT_NE(ErrorOf("apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\n"
                      "metadata: {name: r}\n" +
                      std::string(wrong) + "---\n" + TrainJob(""))
                  .find("f.yaml:"),
              std::string::npos)
        << wrong;
  }
}

TEST(TrainJob, OverridesChangeThePodsOfTheirTargets) {
  const std::string runtime = Runtime("torch: {}", ", command: [a]");
  for (const char* more :
       {"  podTemplateOverrides: [{targetJobs: [{name: node}], spec: {nodeSelector: {p: g}}}]\n",
        "  podSpecOverrides: [{targetJobs: [{name: node}], nodeSelector: {p: g}}]\n",
        "  runtimePatches: [{manager: m, trainingRuntimeSpec: {template: {spec: {replicatedJobs: "
        "[{name: node, template: {spec: {template: {spec: {nodeSelector: {p: g}}}}}}]}}}}]\n"}) {
    const job::Job job = JobOf(runtime + TrainJob(more));
    EXPECT_EQ(job.kubernetes.node_selector, (std::map<std::string, std::string>{{"p", "g"}}))
        << more;
  }
  EXPECT_TRUE(Told(runtime + TrainJob("  suspend: true\n"), "spec.suspend"));
  // The runtime is a part of the job, not one of its surroundings.
  EXPECT_FALSE(Told(runtime + TrainJob(""), "the file also has"));
}

}  // namespace
}  // namespace shoal::importer
