// JobSets and CronJobs: what they become.
#include <gtest/gtest.h>

#include <algorithm>

#include "import/import.h"

namespace shoal::importer {
namespace {

using Words = std::vector<std::string>;

Result<ImportedJob> Load(const std::string& text) {
  TRY_ASSIGN(auto imported, ImportText(text, "f.yaml"));
  if (!imported) return InvalidArgument("not a job of another system");
  return FinishImport(std::move(*imported), {});
}

job::Job JobOf(const std::string& text) {
  auto loaded = Load(text);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? loaded->job : job::Job();
}

std::string JobSetOf(const std::string& more, const std::string& spec, const std::string& second) {
  const auto job = [&](const std::string& name, const std::string& beside,
                       const std::string& fields) {
    return "    - name: " + name + "\n" + beside + "      template: {spec: {" + fields +
           "template: {spec: {containers: [{name: c, command: [a]}]}}}}\n";
  };
  return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set}\nspec:\n" +
         more + "  replicatedJobs:\n" + job("driver", "", spec) + job("workers", second, spec);
}

TEST(JobSet, EachReplicatedJobIsARole) {
  const job::Job job =
      JobOf(JobSetOf("  successPolicy: {operator: All, targetReplicatedJobs: [driver]}\n"
                     "  failurePolicy: {maxRestarts: 3}\n",
                     "completions: 2, parallelism: 2, backoffLimit: 0, ",
                     "      replicas: 3\n      dependsOn: [{name: driver, status: Ready}]\n"));
  ASSERT_EQ(job.roles.size(), 2u);
  EXPECT_EQ(job.FindRole("driver")->replicas, 2);
  EXPECT_EQ(job.FindRole("driver")->env.at("JOB_COMPLETION_INDEX"), "{{shoal.index}}");
  const job::Role& workers = *job.FindRole("workers");
  EXPECT_EQ(workers.replicas, 6);
  EXPECT_EQ(workers.command,
            (Words{"sh", "-c", "export JOB_COMPLETION_INDEX=$((SHOAL_INDEX % 2))\nexec \"$@\"",
                   "sh", "a"}));
  EXPECT_EQ(workers.after.roles, Words{"driver"});
  EXPECT_EQ(workers.restart.when, job::RestartWhen::kAlways);
  EXPECT_EQ(workers.restart.scope, job::RestartScope::kJob);
  EXPECT_EQ(workers.restart.limit, 3);
  EXPECT_EQ(job.success.roles, Words{"driver"});
}

TEST(JobSet, AnnotationsForItsControllerAreNotKept) {
  const std::string topology = "alpha.jobset.sigs.k8s.io/exclusive-topology";
  const auto loaded = Load(
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set, annotations: {" +
      topology +
      ": rack, mine: kept}}\nspec:\n  replicatedJobs:\n    - name: a\n      template: "
      "{spec: {template: {spec: {containers: [{name: c, command: [a]}]}}}}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_FALSE(loaded->job.kubernetes.annotations.contains(topology));
  EXPECT_TRUE(std::any_of(loaded->losses.begin(), loaded->losses.end(), [](const auto& loss) {
    return loss.sentence.find("only JobSet's controller heeds it") != std::string::npos;
  }));
}

TEST(JobSet, WithoutAPolicyTheFirstFailureEndsIt) {
  const job::Job job =
      JobOf(JobSetOf("  startupPolicy: {startupPolicyOrder: InOrder}\n", "backoffLimit: 0, ", ""));
  EXPECT_EQ(job.roles[1].restart.when, job::RestartWhen::kNever);
  EXPECT_EQ(job.roles[1].after.roles, Words{"driver"});
  EXPECT_EQ(job.success.roles, (Words{"driver", "workers"}));
  EXPECT_NE(Load(JobSetOf("", "", "      dependsOn: [{name: none, status: Ready}]\n"))
                .status()
                .message()
                .find("expected the name of a replicated job"),
            std::string::npos);
}

TEST(JobSet, HostsOfPodsInVariablesAreThoseOfTheTasks) {
  const auto import = [](const std::string& value, const std::string& pods) {
    const std::string text =
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set}\nspec:\n"
        "  replicatedJobs:\n    - name: w\n      template: {spec: {completions: " +
        pods + ", parallelism: " + pods +
        ", template: {spec: {containers: [{name: c, "
        "command: [a], env: [{name: MASTER, value: '" +
        value + "'}]}]}}}}\n";
    return Load(text);
  };
  const auto role = [&](const std::string& value, const std::string& pods) {
    return import(value, pods)->job.roles[0];
  };
  EXPECT_EQ(role("tcp://set-w-0-0.set:3389", "1").env.at("MASTER"), "tcp://{{shoal.hosts.w}}:3389");
  const job::Role several = role("tcp://set-w-0-0.set.ns.svc:3389", "4");
  EXPECT_EQ(several.env.at("MASTER"), "tcp://{{shoal.hosts.w}}");
  EXPECT_EQ(several.command,
            (Words{"sh", "-c", "export MASTER=\"${MASTER%%,*}\"':3389'\nexec \"$@\"", "sh", "a"}));
  for (const char* other : {"set-w-0-1.set", "myset-w-0-0.set", "set-w-0-0.other"}) {
    const auto loaded = import(other, "4");
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->job.roles[0].env.at("MASTER"), other);
  }
  const auto left = import("set-w-0-1.set", "4");
  EXPECT_TRUE(std::ranges::any_of(left->losses, [](const ImportLoss& loss) {
    return !loss.minor && loss.sentence.find("names the host 'set-w-…'") != std::string::npos;
  }));
}

TEST(JobSet, VariablesOfThePodsIndexCountWithinTheirJob) {
  const auto loaded = Load(
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set}\nspec:\n"
      "  replicatedJobs:\n    - name: w\n      replicas: 2\n      template: {spec: {completions: "
      "3, parallelism: 3, template: {spec: {containers: [{name: c, command: [a], env: [{name: "
      "RANK, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['batch.kubernetes.io/"
      "job-completion-index']\"}}}]}]}}}}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->job.roles[0].command.at(2),
            "export JOB_COMPLETION_INDEX=$((SHOAL_INDEX % 3)) RANK=$((SHOAL_INDEX % 3))\n"
            "exec \"$@\"");
}

TEST(JobSet, NamesOfTheSetAreKnown) {
  const auto loaded = Load(
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set}\nspec:\n"
      "  replicatedJobs:\n    - name: w\n      template: {spec: {template: {spec: {containers: "
      "[{name: c, command: [a, $(SET)], env: [{name: SET, valueFrom: {fieldRef: {fieldPath: "
      "\"metadata.annotations['jobset.sigs.k8s.io/jobset-name']\"}}}, {name: PART, valueFrom: "
      "{fieldRef: {fieldPath: "
      "\"metadata.labels['jobset.sigs.k8s.io/replicatedjob-name']\"}}}]}]}}}}\n");
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->job.roles[0].env.at("SET"), "set");
  EXPECT_EQ(loaded->job.roles[0].env.at("PART"), "w");
  EXPECT_EQ(loaded->job.roles[0].command, (Words{"a", "set"}));
}

// A set of two Jobs of one pod, then three Jobs of four pods whose variables come from the labels.
std::string SetWithLabels(const std::string& policy, const std::string& spec,
                          const std::string& labels) {
  std::string env;
  int i = 0;
  for (size_t at = 0; at < labels.size();) {
    const size_t end = std::min(labels.find(' ', at), labels.size());
    env += (env.empty() ? "{name: V" : ", {name: V") + std::to_string(i++) +
           ", valueFrom: {fieldRef: {fieldPath: \"metadata.labels['jobset.sigs.k8s.io/" +
           labels.substr(at, end - at) + "']\"}}}";
    at = end + 1;
  }
  return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set}\nspec:\n" +
         policy +
         "  replicatedJobs:\n    - {name: first, replicas: 2, template: {spec: {template: {spec: "
         "{containers: [{name: c, command: [a]}]}}}}}\n    - {name: w_2, replicas: 3, template: "
         "{spec: {completions: 4, parallelism: 4, " +
         spec + "template: {spec: {containers: [{name: c, command: [a], env: [" + env +
         "]}]}}}}}\n";
}

TEST(JobSet, LabelsOfItsControllerAreCounted) {
  const auto loaded = Load(SetWithLabels(
      "", "",
      "job-index job-global-index job-group-index replicatedjob-name replicatedjob-replicas "
      "global-replicas group-name restart-attempt jobset-uid"));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const job::Role& role = loaded->job.roles.at(1);
  EXPECT_EQ(role.command.at(2),
            "export JOB_COMPLETION_INDEX=$((SHOAL_INDEX % 4)) V0=$((SHOAL_INDEX / 4)) "
            "V1=$((SHOAL_INDEX / 4 + 2)) V2=$((SHOAL_INDEX / 4 + 2))\nexec \"$@\"");
  EXPECT_EQ(role.env.at("V3"), "w_2");
  EXPECT_EQ(role.env.at("V4"), "3");
  EXPECT_EQ(role.env.at("V5"), "5");
  EXPECT_EQ(role.env.at("V6"), "default");
  EXPECT_EQ(role.env.at("V7"), "0");
  EXPECT_EQ(role.env.count("V8"), 0u);
  const auto says = [&](const std::string& text) {
    return std::ranges::any_of(loaded->losses, [&](const ImportLoss& loss) {
      return loss.sentence.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("kept as the index of the task's Job in the set"));
  EXPECT_TRUE(says("V8 came from the cluster"));
}

TEST(JobSet, SshToOtherPodsIsTold) {
  const auto told = [](const std::string& command) {
    const auto loaded = Load(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set}\nspec:\n"
        "  replicatedJobs:\n    - {name: w, template: {spec: {template: {spec: {containers: "
        "[{name: c, command: [sh, -c, '" +
        command + "']}]}}}}}\n");
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    return loaded.ok() && std::ranges::any_of(loaded->losses, [](const ImportLoss& loss) {
             return !loss.minor && loss.sentence.starts_with("the command calls ssh");
           });
  };
  EXPECT_TRUE(told("until ssh -p 222 $OTHER hostname; do sleep 1; done"));
  EXPECT_FALSE(told("ls /root/.ssh"));
}

TEST(JobSet, TheCoordinatorsPodIsAHost) {
  const auto loaded =
      Load(SetWithLabels("  coordinator: {replicatedJob: first}\n", "", "coordinator"));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->job.roles.at(1).env.at("V0"), "{{shoal.hosts.first}}");
}

TEST(JobSet, RestartsOfTheSetAreThoseOfTasksThatRestartWithIt) {
  const std::string policy = "  failurePolicy: {maxRestarts: 2}\n";
  const auto together = Load(SetWithLabels(policy, "backoffLimit: 0, ", "restart-attempt"));
  ASSERT_TRUE(together.ok()) << together.status().message();
  EXPECT_NE(together->job.roles.at(1).command.at(2).find(" V0=$SHOAL_ATTEMPT\n"),
            std::string::npos);
  const auto alone = Load(SetWithLabels(policy, "", "restart-attempt"));
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ(alone->job.roles.at(1).env.count("V0"), 0u);
  EXPECT_TRUE(std::ranges::any_of(alone->losses, [](const ImportLoss& loss) {
    return !loss.minor && loss.sentence.starts_with("V0 counted the restarts of the whole set");
  }));
}

TEST(JobSet, PodsOfSeveralJobsWithOnePodHaveTheIndex0) {
  const auto load = [](const std::string& spec) {
    return Load(
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: set}\nspec:\n"
        "  replicatedJobs:\n    - {name: w, replicas: 4, template: {spec: {" +
        spec + "template: {spec: {containers: [{name: c, image: i}]}}}}}\n");
  };
  const auto alone = load("");
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ(alone->job.roles[0].env.at("JOB_COMPLETION_INDEX"), "0");
  // Before an image's own entry point nothing can count.
  const auto two = load("completions: 2, parallelism: 2, ");
  ASSERT_TRUE(two.ok()) << two.status().message();
  EXPECT_FALSE(two->job.roles[0].env.contains("JOB_COMPLETION_INDEX"));
  EXPECT_TRUE(std::ranges::any_of(two->losses, [](const ImportLoss& loss) {
    return !loss.minor && loss.sentence.find("JOB_COMPLETION_INDEX") != std::string::npos;
  }));
}

TEST(JobSet, AFailedJobStartsAllAgainAsOftenAsTheSetSays) {
  const job::Job job = JobOf(
      JobSetOf("  failurePolicy: {maxRestarts: 3}\n",
               "backoffLimit: 0, activeDeadlineSeconds: 60, podFailurePolicy: {rules: [{action: "
               "FailJob, onExitCodes: {operator: In, values: [42]}}]}, ",
               ""));
  // Each starts all tasks, so that both roles' restarts count together.
  EXPECT_EQ(job.limits.restarts, 3);
  EXPECT_EQ(job.limits.deadline, std::chrono::seconds(60));
  for (const job::Role& role : job.roles) {
    EXPECT_EQ(role.restart.limit, 3);
    EXPECT_EQ(role.on_exit.at(0), (job::ExitRule{"42", job::EndAction::kRestartJob}));
  }
  const job::Job once = JobOf(
      JobSetOf("",
               "backoffLimit: 2, ttlSecondsAfterFinished: 5, podFailurePolicy: {rules: [{action: "
               "FailJob, onExitCodes: {operator: In, values: [42]}}]}, ",
               ""));
  EXPECT_EQ(once.limits.restarts, 4);
  EXPECT_EQ(once.limits.keep_records.count(), 0);
  EXPECT_EQ(once.roles[0].on_exit.at(0), (job::ExitRule{"42", job::EndAction::kFail}));
}

TEST(CronJob, IsAJobWithASchedule) {
  const std::string spec =
      "  schedule: 30 2 * * *\n  timeZone: Europe/Berlin\n  concurrencyPolicy: Forbid\n"
      "  startingDeadlineSeconds: 60\n  suspend: true\n  jobTemplate: {spec: {";
  const std::string pod = "template: {spec: {containers: [{name: c, command: [a]}]}}";
  for (const std::string& text :
       {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: n}\nspec:\n" + spec + pod + "}}\n",
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: CronJob\nmetadata: {name: n}\nspec:\n" +
            spec + "tasks: [{name: t, " + pod + "}]}}\n"}) {
    const job::Job job = JobOf(text);
    EXPECT_EQ(job.schedule.cron, "30 2 * * *");
    EXPECT_EQ(job.schedule.time_zone, "Europe/Berlin");
    EXPECT_EQ(job.schedule.concurrency, job::Concurrency::kForbid);
    EXPECT_EQ(job.schedule.start_deadline, std::chrono::seconds(60));
    std::string replaced = text;
    replaced.replace(replaced.find("Forbid"), 6, "Replace");
    EXPECT_EQ(JobOf(replaced).schedule.concurrency, job::Concurrency::kReplace);
    EXPECT_FALSE(job.schedule.enabled);
    ASSERT_EQ(job.roles.size(), 1u);
    EXPECT_EQ(job.roles[0].command, Words{"a"});
  }
}

}  // namespace
}  // namespace shoal::importer
