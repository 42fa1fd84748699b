// The NetworkPolicies of a team's job.
#include "engine/kubernetes/network_policy.h"

#include <gtest/gtest.h>

#include "engine/kubernetes/test_kube_job.h"

namespace shoal::engine::kubernetes {
namespace {

DesiredJob TeamJob() {
  DesiredJob job;
  job.job_id = "text-0a1b2c";
  job.kubernetes.labels[kTeamLabel] = "red";
  return job;
}

TEST(NetworkPolicyTest, AJobWithoutTeamHasNone) {
  DesiredJob job = TeamJob();
  job.kubernetes.labels.clear();
  EXPECT_TRUE(NetworkPolicyObjects(job, {}).empty());
}

TEST(NetworkPolicyTest, AdmitsTheTeamAndTheCoordinatorsPort) {
  const auto made = NetworkPolicyObjects(TeamJob(), {"shoal-text-0a1b2c-coordinator", "uid-1"});
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].at("metadata").at("name"), "shoal-text-0a1b2c");
  EXPECT_EQ(made[0].at("metadata").at("ownerReferences").at(0).at("uid"), "uid-1");
  // No namespaceSelector: pods with the label elsewhere are not the team's.
  EXPECT_EQ(
      ToText(made[0].at("spec")),
      R"({"podSelector":{"matchLabels":{"shoal.dev/job":"text-0a1b2c"}},"policyTypes":["Ingress"],"ingress":[{"from":[{"podSelector":{"matchLabels":{"shoal.dev/team":"red"}}}]}]})");
  const std::string port = std::to_string(CoordinatorAddress("text-0a1b2c", "").port);
  EXPECT_EQ(
      ToText(made[1].at("spec")),
      R"({"podSelector":{"matchLabels":{"shoal.dev/job":"text-0a1b2c","shoal.dev/role":"coordinator"}},"policyTypes":["Ingress"],"ingress":[{"ports":[{"protocol":"TCP","port":)" +
          port + "}]}]}");
}

TEST(NetworkPolicyTest, ThePlanShowsThemAndThePodsHaveTheLabel) {
  const std::string text = DescribeObjects({}, TeamJob(), "research");
  EXPECT_EQ(text.find("kind: NetworkPolicy"), std::string::npos) << "there is no task";
  DesiredJob job = TeamJob();
  DesiredTask coordinator;
  coordinator.role = kCoordinatorRole;
  coordinator.argv = {"shoal"};
  job.tasks = {coordinator};
  job.image = "x";
  const std::string plan = DescribeObjects({}, job, "research");
  EXPECT_NE(plan.find("kind: NetworkPolicy"), std::string::npos) << plan;
  const json::object pod = PodTemplate({}, job, coordinator, "research", true);
  EXPECT_EQ(pod.at("metadata").at("labels").at(kTeamLabel), "red");
}

}  // namespace
}  // namespace shoal::engine::kubernetes
