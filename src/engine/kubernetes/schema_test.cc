// What is sent to the cluster, against the definitions of its API: tests/golden/kubernetes has
// those of the objects that we make, without their descriptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/plan_jobs.h"
#include "engine/testing/test_json_schema.h"
#include "job/file/pod_fields.h"

namespace shoal::engine::kubernetes {
namespace {

class Definitions {
 public:
  Definitions() : all_(ReadGolden("kubernetes/schemas.json")) {}
  // "" if it is as the definition says, else what is wrong.
  std::string Check(const std::string& name, const json::value& value) const {
    return DescribeDifference(value, {{"$ref", name}}, name.substr(name.rfind('.') + 1), all_);
  }

 private:
  const json::object all_;
};

// A job that asks for all there is.
DesiredJob FullJob() {
  DesiredJob job;
  job.job_id = "text-0a1b2c";
  job.image = "program:1";
  job.container.user = "1000:100";
  job.container.work_dir = "/work";
  job.container.shm_bytes = 1 << 20;
  for (const char* role : {"coordinator", "worker"}) {
    DesiredTask task;
    task.role = role;
    task.argv = {"/opt/shoal", "task", "--index", kIndexPlaceholder};
    task.env = {{"A", "b"}};
    task.resources = {1.5, 1 << 30, 2};
    if (task.role == "worker") task.excluded_hosts = {"node1"};
    job.tasks.push_back(task);
  }
  job.bootstrap_files = {{"token", "t"}, {"job.json", "{}"}};
  job.kubernetes.labels = {{"kueue.x-k8s.io/queue-name", "q"}};
  job.kubernetes.annotations = {{"sidecar.istio.io/inject", "false"}};
  job.kubernetes.node_selector = {{"zone", "b"}};
  job.kubernetes.tolerations = {"gpu", "gpu=yes", "gpu=yes:NoSchedule"};
  job.kubernetes.service_account = "runner";
  job.kubernetes.image_pull_secrets = {"registry"};
  job.kubernetes.priority_class = "high";
  job.kubernetes.volumes = {"pvc:a:/a", "host:/b:/b:ro", "nfs:s:/c:/c", "empty:1Gi:/d"};
  job.kubernetes.affinity =
      R"({"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
      {"weight":1,"podAffinityTerm":{"topologyKey":"zone","labelSelector":{"matchLabels":
      {"shoal.dev/job":"{{shoal.job}}"}}}}]},"nodeAffinity":
      {"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":
      [{"key":"gpu","operator":"Exists"}]},{"matchExpressions":[{"key":"tpu","operator":"Exists"}]}]}}})";
  job.kubernetes.topology_spread =
      R"([{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}])";
  job.kubernetes.security_context =
      R"({"runAsNonRoot":true,"runAsUser":7,"sysctls":[{"name":"a","value":"b"}]})";
  job.kubernetes.container_security_context =
      R"({"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}})";
  job.kubernetes.host_network = true;
  job.kubernetes.resources = {"rdma/hca=1"};
  job.pod_settings["worker"].runtime_class = "nvidia";
  job.pod_settings["worker"].volumes = {"pvc:a:/a", "memory:1Gi:/dev/shm", "empty:/d"};
  return job;
}

class KubernetesSchema : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(WithImageVolumesAndWithout, KubernetesSchema, testing::Bool());

TEST_P(KubernetesSchema, AllThatIsSentIsInTheDefinitions) {
  const Definitions definitions;
  const ObjectOptions options{
      .program = "/opt/shoal", .launcher_image = "launcher:1", .image_volumes = GetParam()};
  const DesiredJob job = FullJob();
  ASSERT_TRUE(CheckObjects(options, job).ok()) << CheckObjects(options, job).message();
  const Owner owner{"shoal-text-0a1b2c-coordinator", "uid"};
  const JobChanges changes = PlanJobs(options, job, "team", {}, {});
  ASSERT_EQ(changes.make.size(), 2u);
  for (const RoleJob& role : changes.make) {
    EXPECT_EQ(
        definitions.Check("io.k8s.api.batch.v1.Job", JobObject(options, job, role, owner, true)),
        "");
  }
  EXPECT_EQ(
      definitions.Check(
          "io.k8s.api.batch.v1.Job",
          JobObject(options, job, AsSingleJob(options, job, job.tasks[1], "team", 3), {}, false)),
      "");
  EXPECT_EQ(definitions.Check("io.k8s.api.core.v1.Secret", *SecretObject(job, owner)), "");
  EXPECT_EQ(definitions.Check("io.k8s.api.core.v1.Service", ServiceObject(job, owner)), "");
  const json::object remove{{"propagationPolicy", "Background"}, {"gracePeriodSeconds", 1}};
  EXPECT_EQ(definitions.Check("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", remove), "");
  EXPECT_NE(definitions.Check("io.k8s.api.core.v1.Secret", {{"dta", json::object()}}), "");
}

// "text" and the like, as job/file/pod_fields.h has it.
std::string TypeOf(const json::object& schema) {
  if (const json::value* ref = schema.if_contains("$ref")) {
    const std::string name(ref->as_string());
    return name.substr(name.rfind('.') + 1);
  }
  const std::string type(schema.at("type").as_string());
  if (type == "array") return "[" + TypeOf(schema.at("items").as_object()) + "]";
  if (type == "object") return "{" + TypeOf(schema.at("additionalProperties").as_object()) + "}";
  return type == "string" ? "text" : type == "integer" ? "int" : "flag";
}

TEST(KubernetesSchema, TheFieldsOfPodsInJobFilesAreTheApis) {
  const json::object all = ReadGolden("kubernetes/schemas.json");
  for (const job::PodDefinition& one : job::PodDefinitions()) {
    const bool meta = one.name.starts_with("LabelSelector");
    const json::object& there =
        all.at((meta ? "io.k8s.apimachinery.pkg.apis.meta.v1." : "io.k8s.api.core.v1.") +
               std::string(one.name))
            .as_object();
    std::set<std::string> required;
    if (const json::value* names = there.if_contains("required")) {
      for (const json::value& name : names->as_array()) required.emplace(name.as_string());
    }
    std::string fields;
    for (const auto& field : there.at("properties").as_object()) {
      const std::string name(field.key());
      if (name == "windowsOptions") continue;  // pods of Linux
      fields += (fields.empty() ? "" : " ") + name + (required.contains(name) ? "!=" : "=") +
                TypeOf(field.value().as_object());
    }
    EXPECT_EQ(fields, one.fields) << one.name;
  }
}

TEST(KubernetesSchema, WhatTheJobSaysStandsBesideWhatWeNeed) {
  const ObjectOptions options{.program = "/opt/shoal", .launcher_image = "launcher:1"};
  const DesiredJob job = FullJob();
  const std::string pod = ToText(PodTemplate(options, job, job.tasks[1], "team", true));
  // Any one term lets a node be used, so both exclude the host.
  const std::string without =
      R"("matchFields":[{"key":"metadata.name","operator":"NotIn","values":["node1"]}])";
  EXPECT_NE(pod.find(without), pod.rfind(without));
  EXPECT_NE(pod.find(R"("shoal.dev/job":"text-0a1b2c"}}}}])"), std::string::npos) << pod;
  EXPECT_NE(
      pod.find(R"("securityContext":{"seccompProfile":{"type":"RuntimeDefault"},"runAsUser":7,)"
               R"("runAsGroup":100,"fsGroup":100,"runAsNonRoot":true)"),
      std::string::npos)
      << pod;
  // The coordinator is on the job's nodes, but is none of those that shun each other.
  const std::string coordinator = ToText(PodTemplate(options, job, job.tasks[0], "team", true));
  EXPECT_NE(coordinator.find("nodeAffinity"), std::string::npos);
  EXPECT_EQ(coordinator.find("podAntiAffinity"), std::string::npos);
  EXPECT_EQ(coordinator.find("topologySpreadConstraints"), std::string::npos);
  // Of the launcher's container too, or the namespace would not take the pod.
  const std::string closed =
      R"({"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}})";
  EXPECT_NE(pod.find(closed), pod.rfind(closed));
}

}  // namespace
}  // namespace shoal::engine::kubernetes
