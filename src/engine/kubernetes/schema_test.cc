// What is sent to the cluster, against the definitions of its API: tests/golden/kubernetes has
// those of the objects that we make, without their descriptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/plan_jobs.h"
#include "engine/test_schema.h"

namespace shoal::engine::kubernetes {
namespace {

class Definitions {
 public:
  Definitions() : all_(ReadGolden("kubernetes/schemas.json")) {}
  // "" if it is as the definition says, else what is wrong.
  std::string Check(const std::string& name, const json::value& value) const {
    return Differs(value, {{"$ref", name}}, name.substr(name.rfind('.') + 1), all_);
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
    task.argv = {"/opt/shoal", "task", "--index", kIndexMark};
    task.env = {{"A", "b"}};
    task.resources = {1.5, 1 << 30, 2};
    job.tasks.push_back(task);
  }
  job.seed = {{"token", "t"}, {"job.json", "{}"}};
  job.kubernetes.labels = {{"kueue.x-k8s.io/queue-name", "q"}};
  job.kubernetes.node_selector = {{"zone", "b"}};
  job.kubernetes.tolerations = {"gpu", "gpu=yes", "gpu=yes:NoSchedule"};
  job.kubernetes.service_account = "runner";
  job.kubernetes.image_pull_secrets = {"registry"};
  job.kubernetes.priority_class = "high";
  job.kubernetes.volumes = {"pvc:a:/a", "host:/b:/b:ro", "nfs:s:/c:/c", "empty:1Gi:/d"};
  job.kubernetes.host_network = true;
  job.kubernetes.resources = {"rdma/hca=1"};
  return job;
}

TEST(KubernetesSchema, AllThatIsSentIsInTheDefinitions) {
  const Definitions definitions;
  const ObjectOptions options{.program = "/opt/shoal", .launcher_image = "launcher:1"};
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

}  // namespace
}  // namespace shoal::engine::kubernetes
