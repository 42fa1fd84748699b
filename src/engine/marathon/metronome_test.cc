// What Metronome is sent of a scheduled job, and what is made of its answers; without sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/marathon/metronome_spec.h"

namespace shoal::engine::marathon {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

job::Job Nightly() {
  job::Job job;
  job.name = "Text_vectors";
  job.marathon.group = "/ml/jobs";
  job.limits.stop_grace = seconds(10);
  job.schedule.cron = "  30 2  * * 1-5 ";
  job.schedule.time_zone = "Europe/Berlin";
  return job;
}

const ScheduledRun kRun{"/nfs/it's/schedules/n.yaml", "/nfs/it's", "/nfs/work"};

TEST(MetronomeSpec, AJobRunsTheController) {
  const json::object made = MakeScheduledJob(Nightly(), kRun, "/opt/shoal", "http://m:8080");
  EXPECT_THAT(std::string(made.at("id").as_string()),
              testing::MatchesRegex("ml\\.jobs\\.text-vectors-[0-9a-f]{8}"));
  EXPECT_EQ(made.at("labels").at(kScheduleLabel).as_string(), "Text_vectors");
  const json::object& run = made.at("run").as_object();
  EXPECT_EQ(run.at("cmd").as_string(),
            "cd '/nfs/work' && exec '/opt/shoal' run --engine marathon --directory . "
            "'/nfs/it'\\''s/schedules/n.yaml'");
  EXPECT_EQ(run.at("env").at("SHOAL_HOME").as_string(), "/nfs/it's");
  EXPECT_EQ(run.at("env").at("SHOAL_MARATHON_URL").as_string(), "http://m:8080");
  EXPECT_EQ(run.at("restart").at("policy").as_string(), "NEVER");
  EXPECT_EQ(run.at("taskKillGracePeriodSeconds").as_int64(), 40);
  EXPECT_EQ(run.at("maxLaunchDelay").as_int64(), 3600);
  EXPECT_FALSE(run.contains("artifacts"));
  EXPECT_FALSE(run.contains("secrets"));
}

TEST(MetronomeSpec, SettingsOfTheJobFile) {
  job::Job job = Nightly();
  job.marathon.constraints = {"@hostname:UNIQUE", "rack:LIKE:r[1-3]", "zone:GROUP_BY:2",
                              "disk:UNLIKE:hdd"};
  job.marathon.fetch = {"http://files/shoal", "http://files/text8.tgz"};
  job.marathon.user = "trainer";
  job.marathon.secrets = {{"KEY", "not/the/controllers"}};
  job.schedule.secrets = {{"SHOAL_MARATHON_TOKEN", "ml/token"}};
  job.schedule.start_deadline = std::chrono::milliseconds(90'500);
  const json::object made = MakeScheduledJob(job, kRun, "shoal", "http://m:8080");
  const json::object& run = made.at("run").as_object();
  EXPECT_THAT(std::string(run.at("cmd").as_string()),
              HasSubstr("exec \"$MESOS_SANDBOX\"/'shoal' "));
  EXPECT_TRUE(run.at("artifacts").at(0).at("executable").as_bool());
  EXPECT_EQ(run.at("user").as_string(), "trainer");
  EXPECT_EQ(run.at("maxLaunchDelay").as_int64(), 91);
  const json::array& placed = run.at("placement").at("constraints").as_array();
  ASSERT_EQ(placed.size(), 2u);  // how an app's instances lie says nothing of one task
  EXPECT_EQ(placed[0].at("attribute").as_string(), "rack");
  EXPECT_EQ(placed[1].at("operator").as_string(), "UNLIKE");
  EXPECT_EQ(run.at("env").at("SHOAL_MARATHON_TOKEN").at("secret").as_string(), "secret0");
  EXPECT_EQ(run.at("secrets").at("secret0").at("source").as_string(), "ml/token");
  EXPECT_FALSE(run.at("env").as_object().contains("KEY"));
}

TEST(MetronomeSpec, TheTimes) {
  job::Job job = Nightly();
  const json::object plain = MakeSchedule(job.schedule);
  EXPECT_EQ(plain.at("cron").as_string(), "30 2 * * 1-5");
  EXPECT_EQ(plain.at("timezone").as_string(), "Europe/Berlin");
  EXPECT_EQ(plain.at("concurrencyPolicy").as_string(), "FORBID");
  EXPECT_TRUE(plain.at("enabled").as_bool());
  EXPECT_FALSE(plain.contains("startingDeadlineSeconds"));
  job.schedule.concurrency = job::Concurrency::kAllow;
  job.schedule.start_deadline = seconds(60);
  EXPECT_EQ(MakeSchedule(job.schedule).at("concurrencyPolicy").as_string(), "ALLOW");
  EXPECT_EQ(MakeSchedule(job.schedule).at("startingDeadlineSeconds").as_int64(), 60);
}

TEST(MetronomeSpec, MetronomeStandsBesideMarathonOnDcos) {
  EXPECT_EQ(*MetronomeUrl("", "https://dcos.example.org/service/marathon/"),
            "https://dcos.example.org/service/metronome");
  EXPECT_EQ(*MetronomeUrl("http://m:9000", "https://dcos.example.org/service/marathon"),
            "http://m:9000");
  EXPECT_THAT(MetronomeUrl("", "http://leader.mesos:8080").status().message(),
              HasSubstr("SHOAL_METRONOME_URL"));
}

TEST(MetronomeSpec, Answers) {
  const auto job = DecodeMetronomeJob(R"({"id": "shoal.n", "labels": {"SHOAL_SCHEDULE": "n"},
    "run": {}, "schedules": [{"id": "other", "cron": "no"}, {"id": "shoal", "cron": "* * * * *",
    "timezone": "UTC", "enabled": false, "nextRunAt": "2026-03-02T01:30:00.000+0000"}],
    "activeRuns": [{"id": "20260302013000AbCdE", "status": "ACTIVE"}],
    "historySummary": {"successCount": 3, "failureCount": 1, "lastSuccessAt": "yes\nterday",
    "lastFailureAt": null}})");
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->status.name, "n");
  EXPECT_EQ(job->status.cron, "* * * * *");
  EXPECT_FALSE(job->status.enabled);
  EXPECT_THAT(job->status.active, ElementsAre("20260302013000AbCdE"));
  EXPECT_EQ(job->status.successes, 3);
  EXPECT_EQ(job->status.last_success, "yes terday");
  EXPECT_EQ(job->status.last_failure, "");
  // Somebody else's are passed by, whatever they are called.
  const auto jobs = DecodeMetronomeJobs(R"([{"id": "prod.x"}, {"id": "cleanDb --force"}])");
  ASSERT_TRUE(jobs.ok());
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->at(0).status.name, "");
}

TEST(MetronomeSpec, NonsenseIsRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"id": "a/../b"})", R"({"id": "a", "schedules": 3})",
        R"({"id": "a", "activeRuns": [{"id": "x y"}]})", R"({"id": "a", "activeRuns": [7]})"})
    EXPECT_FALSE(DecodeMetronomeJob(text).ok()) << text;
  EXPECT_FALSE(DecodeMetronomeJobs("{}").ok());
  EXPECT_FALSE(DecodeMetronomeJobs("[1]").ok());
  EXPECT_FALSE(DecodeMetronomeRun(R"({"id": ""})").ok());
}

}  // namespace
}  // namespace shoal::engine::marathon
