// Jobs of Volcano.
#include <gtest/gtest.h>

#include "import/test_imports.h"

namespace shoal::importer {
namespace {

using job::RestartScope;
using job::RestartWhen;
using job::SuccessRule;

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

// Volcano's applyPolicies takes the first policy of the list that covers the pod's end.
TEST(Volcano, TheFirstPolicyThatCoversAFailureDecides) {
  const auto codes = [](const std::string& policies, const std::string& restart) {
    std::string text;
    const auto job = Import(VolcanoJob("", policies, restart));
    for (const job::ExitRule& rule : job.FindRole("worker")->on_exit) text += rule.code + " ";
    return text;
  };
  const std::string failed = "{event: PodFailed, action: RestartJob}";
  const std::string three = "{exitCode: 3, action: AbortJob}";
  EXPECT_EQ(codes(three + ", " + failed, "Never"), "3 126-127 ");
  EXPECT_EQ(codes(failed + ", " + three, "Never"), "126-127 ");
  // The kubelet restarts these in their pod, which does not fail.
  EXPECT_EQ(codes(three, "OnFailure"), "126-127 ");
}

TEST(Volcano, TasksWithoutANameAreCountedAsByItsWebhook) {
  const std::string pod = "template: {spec: {containers: [{command: [sh, -c, ";
  const auto job = Import(
      "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n"
      "  plugins: {svc: []}\n  tasks:\n"
      "    - {" +
      pod +
      "'a']}]}}}\n"
      "    - {dependsOn: {name: [default0]}, " +
      pod + "'cat /etc/volcano/default1.host']}]}}}\n");
  ASSERT_NE(job.FindRole("default1"), nullptr);
  const job::Role& second = *job.FindRole("default1");
  EXPECT_EQ(second.after.roles, std::vector<std::string>{"default0"});
  EXPECT_EQ(second.env.at("VC_DEFAULT1_HOSTS"), "{{shoal.hosts.default1}}");
  EXPECT_NE(second.command[2].find("default1.host\""), std::string::npos) << second.command[2];
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

}  // namespace
}  // namespace shoal::importer
