// What is sent to the cluster, against the definitions of its API: tests/golden/kubernetes has
// those of the objects that we make, without their descriptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/file.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/plan_jobs.h"

namespace shoal::engine::kubernetes {
namespace {

class Definitions {
 public:
  Definitions() {
    const auto text =
        ReadFile(std::string(SHOAL_SOURCE_DIR) + "/tests/golden/kubernetes/schemas.json", 1 << 20);
    EXPECT_TRUE(text.ok()) << text.status().message();
    if (text.ok()) all_ = ParseJsonObject(*text).value_or({});
  }
  // "" if it is as the definition says, else what is wrong.
  std::string Check(const std::string& name, const json::value& value) const {
    return Differs(value, {{"$ref", name}}, name.substr(name.rfind('.') + 1));
  }

 private:
  static bool Fits(const json::object& schema, const json::value& value) {
    const std::string type = GetStringOr(schema, "type", "");
    if (schema.contains("oneOf") || GetStringOr(schema, "format", "") == "int-or-string")
      return value.is_string() || value.is_int64() || value.is_uint64();
    return type.empty() || (type == "string" && value.is_string()) ||
           (type == "integer" && (value.is_int64() || value.is_uint64())) ||
           (type == "boolean" && value.is_bool()) || (type == "number" && value.is_number()) ||
           (type == "array" && value.is_array()) || (type == "object" && value.is_object());
  }

  std::string Differs(const json::value& value, const json::object& given,
                      const std::string& where) const {
    const std::string ref = GetStringOr(given, "$ref", "");
    if (!ref.empty() && !all_.contains(ref)) return where + ": there is no definition " + ref;
    const json::object& schema = ref.empty() ? given : all_.at(ref).as_object();
    if (!Fits(schema, value)) return where + ": got " + ToText(value);
    if (value.is_array() && schema.contains("items")) {
      for (const json::value& item : value.get_array()) {
        const std::string wrong = Differs(item, schema.at("items").as_object(), where + "[]");
        if (!wrong.empty()) return wrong;
      }
    }
    return value.is_object() ? Members(value.get_object(), schema, where) : "";
  }

  std::string Members(const json::object& value, const json::object& schema,
                      const std::string& where) const {
    if (const json::value* required = schema.if_contains("required"); required != nullptr) {
      for (const json::value& name : required->as_array()) {
        if (!value.contains(name.as_string())) return where + ": " + ToText(name) + " is required";
      }
    }
    const json::value* properties = schema.if_contains("properties");
    const json::value* others = schema.if_contains("additionalProperties");
    for (const auto& [name, member] : value) {
      const json::value* known =
          properties == nullptr ? nullptr : properties->as_object().if_contains(name);
      if (known == nullptr) known = others;
      if (known == nullptr && properties == nullptr) continue;
      if (known == nullptr) return where + "." + std::string(name) + " is not in the definition";
      const std::string wrong =
          Differs(member, known->as_object(), where + "." + std::string(name));
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  json::object all_;
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

TEST(Schema, AllThatIsSentIsInTheDefinitions) {
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
