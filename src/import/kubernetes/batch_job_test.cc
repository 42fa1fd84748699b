// A plain Job of Kubernetes becomes one role whose tasks are its completions.
#include <gtest/gtest.h>

#include <algorithm>

#include "import/import.h"
#include "job/spec/cluster_reference.h"

namespace shoal::importer {
namespace {

ImportedJob ImportJob(const std::string& spec) {
  const std::string text =
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec:\n" + spec +
      "  template: {spec: {restartPolicy: Never, containers: [{name: c, command: [a, "
      "$(JOB_COMPLETION_INDEX)]}]}}\n";
  auto imported = ImportText(text, "f.yaml");
  EXPECT_TRUE(imported.ok()) << imported.status().message();
  if (!imported.ok() || !imported->has_value()) return {};
  auto finished = FinishImport(std::move(**imported), {});
  EXPECT_TRUE(finished.ok()) << finished.status().message();
  return finished.ok() ? std::move(*finished) : ImportedJob{};
}

TEST(BatchJob, IndexedTasksKnowTheirIndex) {
  const job::Job job =
      ImportJob("  completions: 3\n  parallelism: 3\n  completionMode: Indexed\n").job;
  ASSERT_EQ(job.roles.size(), 1U);
  EXPECT_EQ(job.roles[0].replicas, 3);
  EXPECT_EQ(job.roles[0].env.at("JOB_COMPLETION_INDEX"), "{{shoal.index}}");
  EXPECT_EQ(job.roles[0].command,
            (std::vector<std::string>{"sh", "-c", "exec 'a' \"$JOB_COMPLETION_INDEX\""}));
  EXPECT_EQ(job.success, (job::Success{job::SuccessRule::kAll, {"task"}, 0}));
}

TEST(BatchJob, PodsAreMadeAgainUpToTheBackoffLimit) {
  const job::Job six = ImportJob("  completions: 1\n").job;
  EXPECT_EQ(six.limits.restarts, 6);
  EXPECT_EQ(six.roles[0].restart.when, job::RestartWhen::kAlways);
  EXPECT_EQ(ImportJob("  backoffLimit: 0\n").job.limits.restarts, 0);
  const job::Job each = ImportJob("  completions: 2\n  backoffLimitPerIndex: 1\n").job;
  EXPECT_FALSE(each.limits.restarts.has_value());
  EXPECT_EQ(each.roles[0].restart.limit, 1);
}

TEST(BatchJob, FailurePoliciesAreRulesOfExitCodes) {
  const auto rules = [](const std::string& op, const std::string& action) {
    return ImportJob("  podFailurePolicy: {rules: [{action: " + action +
                     ", onExitCodes: {operator: " + op + ", values: [42, 43, 50]}}]}\n")
        .job.roles[0]
        .on_exit;
  };
  const auto in = rules("In", "FailJob");
  ASSERT_GE(in.size(), 2U);
  EXPECT_EQ(in[0], (job::ExitRule{"42-43", job::EndAction::kFail}));
  EXPECT_EQ(in[1], (job::ExitRule{"50", job::EndAction::kFail}));
  const auto others = rules("NotIn", "Count");
  ASSERT_GE(others.size(), 3U);
  EXPECT_EQ(others[0], (job::ExitRule{"1-41", job::EndAction::kRetry}));
  EXPECT_EQ(others[1], (job::ExitRule{"44-49", job::EndAction::kRetry}));
  EXPECT_EQ(others[2], (job::ExitRule{"51-255", job::EndAction::kRetry}));
}

bool IsTold(const ImportedJob& imported, const std::string& field) {
  return std::any_of(imported.losses.begin(), imported.losses.end(), [&](const ImportLoss& loss) {
    return loss.field.ends_with(field) && !loss.minor && loss.engine.empty();
  });
}

TEST(BatchJob, FewerPodsAtOnceAreTold) {
  const ImportedJob imported = ImportJob("  completions: 4\n  parallelism: 2\n");
  EXPECT_EQ(imported.job.roles[0].replicas, 4);
  EXPECT_TRUE(IsTold(imported, "spec.parallelism"));
}

TEST(BatchJob, AnAttemptThatFindsFilesOfTheLastIsTold) {
  EXPECT_TRUE(IsTold(ImportJob("  backoffLimit: 2\n"), "spec.template"));
  EXPECT_TRUE(IsTold(ImportJob("  completions: 2\n  backoffLimitPerIndex: 1\n"), "spec.template"));
  EXPECT_FALSE(IsTold(ImportJob("  backoffLimit: 0\n"), "spec.template"));
}

TEST(BatchJob, SuccessOfIndex0AloneIsThatOfTheFirstTask) {
  const auto import = [](const std::string& rule) {
    return ImportJob("  completions: 2\n  successPolicy: {rules: [{" + rule + "}]}\n");
  };
  const job::Success first{job::SuccessRule::kFirst, {"task"}, 0};
  EXPECT_EQ(import("succeededIndexes: \"0\"").job.success, first);
  EXPECT_FALSE(IsTold(import("succeededIndexes: \"0\""), "succeededIndexes"));
  EXPECT_EQ(import("succeededIndexes: 0, succeededCount: 1").job.success, first);
  const ImportedJob others = import("succeededIndexes: \"0,1\"");
  EXPECT_EQ(others.job.success, (job::Success{job::SuccessRule::kAll, {"task"}, 0}));
  EXPECT_TRUE(IsTold(others, "succeededIndexes"));
}

ImportedJob ImportPod(const std::string& spec, const std::string& container) {
  auto imported = ImportText(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec:\n  template: {spec: {"
      "restartPolicy: Never, " +
          spec + "containers: [{name: c, command: [a], " + container + "}]}}\n",
      "f.yaml");
  EXPECT_TRUE(imported.ok()) << imported.status().message();
  if (!imported.ok() || !imported->has_value()) return {};
  return std::move(**imported);
}

TEST(BatchJob, TokenOfAnAccountThatIsNotMountedIsTold) {
  const std::string field = "automountServiceAccountToken";
  EXPECT_TRUE(IsTold(ImportPod("serviceAccountName: trainer, ", ""), field));
  EXPECT_TRUE(IsTold(ImportPod("automountServiceAccountToken: true, ", ""), field));
  EXPECT_FALSE(IsTold(ImportPod("", ""), field));
  const auto none =
      ImportPod("serviceAccountName: trainer, automountServiceAccountToken: false, ", "");
  EXPECT_FALSE(IsTold(none, field));
}

TEST(BatchJob, OneEmptyDirectoryAtTwoPathsIsTold) {
  const std::string volumes = "volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}], ";
  const auto told = [&](const std::string& second) {
    return IsTold(ImportPod(volumes, "volumeMounts: [{name: a, mountPath: /a}, {name: " + second +
                                         ", mountPath: /b}]"),
                  "volumeMounts[1].mountPath");
  };
  EXPECT_TRUE(told("a"));
  EXPECT_FALSE(told("b"));
}

// As kubectl reads and runs it: YAML's own tags, and braces that mean nothing to Kubernetes.
TEST(BatchJob, TagsAndBracesOfItsFileKeepTheirMeaning) {
  auto imported = ImportText(
      "apiVersion: batch/v1\nkind: Job\nmetadata: !!map {name: j}\nspec:\n  template:\n    spec:\n"
      "      containers:\n      - name: c\n        command: !!seq [!!str a]\n        env:\n"
      "        - {name: N, value: !!str 5}\n        - {name: T, value: \"{{shoal.index}}\"}\n"
      "        - {name: U, value: \"$(T) {{\"}\n",
      "f.yaml");
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  ASSERT_TRUE(imported->has_value());
  const auto finished = FinishImport(std::move(**imported), {});
  ASSERT_TRUE(finished.ok()) << finished.status().message();
  const auto& env = finished->job.roles.at(0).env;
  EXPECT_EQ(env.at("N"), "5");
  EXPECT_EQ(env.at("T"), "{{shoal.braces}}shoal.index}}");
  EXPECT_EQ(env.at("U"), "{{shoal.braces}}shoal.index}} {{");
  const auto parts = job::ParseReferences(env.at("T"));
  ASSERT_TRUE(parts.ok()) << parts.status().message();
  std::string text;
  for (const auto& part : *parts) {
    EXPECT_EQ(part.to, job::ReferenceTo::kText);
    text += part.text;
  }
  EXPECT_EQ(text, "{{shoal.index}}");
}

Result<ImportedJob> ImportManifest(const std::string& head, const std::string& pod) {
  const std::string text = "apiVersion: batch/v1\nkind: Job\nmetadata: " + head +
                           "\nspec: {template: {spec: {restartPolicy: Never, " + pod + "}}}\n";
  TRY_ASSIGN(auto imported, ImportText(text, "of-the-file.yaml"));
  return FinishImport(std::move(*imported), {});
}

TEST(BatchJob, FlagsAreThoseOfYaml11AsForKubectl) {
  const auto imported = ImportManifest(
      "{name: x, labels: {suspend: 'yes'}}",
      "hostNetwork: Yes, securityContext: {runAsNonRoot: True}, containers: [{name: c, "
      "command: [echo, yes], env: [{name: A, value: 'on'}], securityContext: {privileged: off}}]");
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const job::Role& role = imported->job.roles[0];
  EXPECT_TRUE(role.kubernetes.host_network || imported->job.kubernetes.host_network);
  EXPECT_EQ(role.command, (std::vector<std::string>{"echo", "yes"}));
  EXPECT_EQ(role.env.at("A"), "on");
  EXPECT_EQ(imported->job.kubernetes.labels.at("suspend"), "yes");
  EXPECT_FALSE(
      ImportManifest("{name: x}", "hostNetwork: 'yes', containers: [{command: [a]}]").ok());
  EXPECT_FALSE(
      ImportManifest("{name: x}", "hostNetwork: maybe, containers: [{command: [a]}]").ok());
}

TEST(BatchJob, ImagesThatKubernetesPullsEachTimeAreMentioned) {
  const auto mentioned = [](const std::string& image, const std::string& policy) {
    const auto imported = ImportManifest(
        "{name: x}", "containers: [{command: [a], image: '" + image + "'" + policy + "}]");
    return imported.ok() && std::ranges::any_of(imported->losses, [](const ImportLoss& loss) {
             return loss.sentence.find("tag 'latest'") != std::string::npos;
           });
  };
  for (const char* image : {"python", "python:latest", "registry:5000/team/python"})
    EXPECT_TRUE(mentioned(image, "")) << image;
  for (const char* image : {"python:3", "r.example/a/b:v1", "python@sha256:0123"})
    EXPECT_FALSE(mentioned(image, "")) << image;
  EXPECT_FALSE(mentioned("python", ", imagePullPolicy: IfNotPresent"));
}

TEST(BatchJob, ANamesPrefixIsTheName) {
  const auto imported = ImportManifest("{generateName: train-}", "containers: [{command: [a]}]");
  ASSERT_TRUE(imported.ok());
  EXPECT_EQ(imported->job.name, "train");
  EXPECT_TRUE(std::ranges::any_of(imported->losses, [](const ImportLoss& loss) {
    return loss.field == "metadata.generateName" && loss.minor;
  }));
  EXPECT_EQ(ImportManifest("{name: x, generateName: y-}", "containers: [{command: [a]}]")->job.name,
            "x");
}

TEST(BatchJob, AVariableOfATemplateInPlaceOfANumberIsExplained) {
  const auto imported = ImportText(
      "apiVersion: batch/v1\nkind: Job\nspec: {completions: $N, template: {spec: "
      "{containers: [{command: [a], resources: {limits: {nvidia.com/gpu: $GPUS, "
      "vendor.com/rdma: '${RDMA}'}}}]}}}\n",
      "f.yaml");
  ASSERT_FALSE(imported.ok());
  const std::string& message = imported.status().message();
  size_t hints = 0;
  for (size_t at = message.find("envsubst"); at != message.npos;
       at = message.find("envsubst", at + 1))
    ++hints;
  EXPECT_EQ(hints, 3U) << message;
}

}  // namespace
}  // namespace shoal::importer
