// What is sent to Marathon, what it answers, and what is made of both; without sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "engine/marathon/app_spec.h"
#include "engine/marathon/decode.h"
#include "engine/marathon/marathon_helper.h"
#include "engine/marathon/marathon_job.h"
#include "engine/tasks/job_files.h"

namespace shoal::engine::marathon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DesiredTask Task(const std::string& role, int index) {
  DesiredTask task;
  task.role = role;
  task.index = index;
  task.argv = {"/opt/shoal", "task"};
  return task;
}

DesiredJob Job(const std::string& dir, int workers) {
  DesiredJob job{"job-1", dir, {Task("coordinator", 0)}};
  for (int i = 0; i < workers; ++i) job.tasks.push_back(Task("worker", i));
  return job;
}

const json::object& AppOf(const json::object& group, const std::string& role) {
  for (const json::value& app : group.at("apps").as_array()) {
    if (app.at("labels").at(kRoleLabel).as_string() == role) return app.as_object();
  }
  static const json::object none;
  return none;
}

TEST(AppSpec, NamesBecomePartsOfPaths) {
  EXPECT_EQ(PathPart("worker"), "worker");
  EXPECT_EQ(PathPart("job-7f"), "job-7f");
  EXPECT_THAT(PathPart("My_Job.1"), testing::MatchesRegex("my-job-1-[0-9a-f]{8}"));
  EXPECT_NE(PathPart("My_Job"), PathPart("my.job"));
  EXPECT_THAT(PathPart("___"), testing::MatchesRegex("x[0-9a-f]{8}"));
  EXPECT_LT(PathPart(std::string(200, 'a')).size(), 64u);
}

TEST(AppSpec, TheCoordinatorHasANameInMesosDns) {
  job::Marathon settings;
  EXPECT_EQ(CoordinatorService(settings, "job-1"),
            "_coordinator._coordinator-job-1-shoal._tcp.marathon.mesos");
  settings.group = "/ml/jobs";
  EXPECT_EQ(CoordinatorService(settings, "job-1"),
            "_coordinator._coordinator-job-1-jobs-ml._tcp.marathon.mesos");
  EXPECT_EQ(CoordinatorService(settings, std::string(48, 'a')), "");  // no label of DNS
}

TEST(AppSpec, ARoleIsAnApp) {
  DesiredJob job = Job("/nfs/it's", 3);
  job.tasks[2].resources = {2, (int64_t{1} << 30) + 1, 1};
  const json::object group = MakeGroup(job, RoleRequirements(job), "/opt/shoal");
  EXPECT_EQ(group.at("id").as_string(), "/shoal/job-1");
  const json::object& worker = AppOf(group, "worker");
  EXPECT_EQ(worker.at("id").as_string(), "/shoal/job-1/worker");
  EXPECT_EQ(worker.at("instances").as_int64(), 3);
  EXPECT_EQ(worker.at("cpus").as_double(), 2);
  EXPECT_EQ(worker.at("mem").as_int64(), 1025);
  EXPECT_EQ(worker.at("gpus").as_int64(), 1);
  EXPECT_EQ(worker.at("cmd").as_string(),
            "exec '/opt/shoal' marathon hold '/nfs/it'\\''s' 'worker'");
  EXPECT_TRUE(worker.at("portDefinitions").as_array().empty());
  EXPECT_EQ(AppOf(group, "coordinator").at("portDefinitions").as_array().size(), 1u);
  // Instances alone tell two versions of it apart.
  json::object more =
      MakeGroup(Job("/nfs/it's", 4), RoleRequirements(Job("/nfs/it's", 4)), "/opt/shoal");
  json::object less =
      MakeGroup(Job("/nfs/it's", 2), RoleRequirements(Job("/nfs/it's", 2)), "/opt/shoal");
  json::object a = AppOf(more, "worker"), b = AppOf(less, "worker");
  a.erase("instances");
  b.erase("instances");
  EXPECT_EQ(a, b);
}

TEST(AppSpec, SettingsOfTheJobFile) {
  DesiredJob job = Job("/nfs/job", 1);
  job.image = "mxnet/python";
  job.marathon.constraints = {"@hostname:UNIQUE", "rack:LIKE:r[1-3]"};
  job.marathon.fetch = {"http://files/shoal", "hdfs://nn/text8.tgz"};
  job.marathon.program = "shoal";
  job.marathon.secrets = {{"KEY", "training/key"}};
  job.marathon.parameters = {"ipc=host"};
  job.marathon.privileged = true;
  job.marathon.port = 4711;
  ASSERT_TRUE(CheckSettings(job).ok());
  const json::object group = MakeGroup(job, RoleRequirements(job), "shoal");
  const json::object& worker = AppOf(group, "worker");
  EXPECT_THAT(std::string(worker.at("cmd").as_string()), HasSubstr("\"$MESOS_SANDBOX\"/'shoal'"));
  EXPECT_EQ(worker.at("constraints").as_array().size(), 2u);
  EXPECT_EQ(worker.at("constraints").at(1).at(2).as_string(), "r[1-3]");
  EXPECT_TRUE(worker.at("fetch").at(0).at("executable").as_bool());
  EXPECT_FALSE(worker.at("fetch").at(1).as_object().contains("executable"));
  EXPECT_EQ(worker.at("env").at("KEY").at("secret").as_string(), "secret0");
  EXPECT_EQ(worker.at("secrets").at("secret0").at("source").as_string(), "training/key");
  EXPECT_EQ(worker.at("container").at("type").as_string(), "DOCKER");
  EXPECT_EQ(worker.at("container").at("docker").at("parameters").at(0).at("key").as_string(),
            "ipc");
  EXPECT_TRUE(AppOf(group, "coordinator").at("requirePorts").as_bool());
  EXPECT_FALSE(AppOf(group, "coordinator").contains("constraints"));
}

TEST(AppSpec, HealthIsAskedByACommandInThePlace) {
  DesiredJob job = Job("/nfs/it's", 2);
  job.health["worker"].by = job::ReadyBy::kTcp;
  job.health["worker"].every = std::chrono::milliseconds(1500);
  const json::object group = MakeGroup(job, RoleRequirements(job), "/opt/shoal");
  EXPECT_FALSE(AppOf(group, "coordinator").contains("healthChecks"));
  const json::value& check = AppOf(group, "worker").at("healthChecks").at(0);
  EXPECT_EQ(check.at("protocol").as_string(), "COMMAND");
  EXPECT_EQ(check.at("command").at("value").as_string(),
            "exec '/opt/shoal' marathon health '/nfs/it'\\''s' 'worker'");
  EXPECT_EQ(check.at("intervalSeconds").as_int64(), 2);
  EXPECT_EQ(check.at("timeoutSeconds").as_int64(), 22);
  EXPECT_EQ(check.at("gracePeriodSeconds").as_int64(), 300);
  EXPECT_EQ(check.at("maxConsecutiveFailures").as_int64(), 3);
}

TEST(AppSpec, WhatIsWrongIsNamed) {
  const auto says = [](auto change) {
    DesiredJob job = Job("/nfs/job", 1);
    change(&job);
    return CheckSettings(job).message();
  };
  EXPECT_THAT(says([](auto* job) { job->marathon.group = "/Shoal"; }), HasSubstr("marathon.group"));
  EXPECT_THAT(says([](auto* job) { job->marathon.group = "shoal"; }), HasSubstr("marathon.group"));
  EXPECT_EQ(says([](auto* job) { job->marathon.group = "/"; }), "");
  EXPECT_THAT(says([](auto* job) { job->marathon.constraints = {"hostname"}; }),
              HasSubstr("FIELD:OPERATOR"));
  EXPECT_THAT(says([](auto* job) { job->marathon.constraints = {"hostname:NEAR"}; }),
              HasSubstr("FIELD:OPERATOR"));
  EXPECT_THAT(says([](auto* job) { job->marathon.containerizer = "docker"; }),
              HasSubstr("needs the job's image"));
  EXPECT_THAT(says([](auto* job) { job->marathon.url = "leader"; }), HasSubstr("marathon.url"));
  EXPECT_THAT(says([](auto* job) { job->job_dir = "here"; }), HasSubstr("absolute"));
}

TEST(Decode, AppsWithTheirTasks) {
  const auto apps = DecodeApps(
      R"({"apps":[{"id":"/shoal/j/worker","instances":2,"labels":{"SHOAL_ROLE":"worker","SHOAL_DIR":"/d"},
      "tasks":[{"id":"w.1","host":"n1","state":"TASK_RUNNING","ports":[31000]}],
      "lastTaskFailure":{"taskId":"w.0","host":"n2","message":"no\nsuch","state":"TASK_FAILED"}}]})");
  ASSERT_TRUE(apps.ok()) << apps.status().message();
  ASSERT_EQ(apps->size(), 1u);
  EXPECT_EQ((*apps)[0].role, "worker");
  EXPECT_EQ((*apps)[0].dir, "/d");
  EXPECT_EQ((*apps)[0].tasks[0].host, "n1");
  EXPECT_EQ((*apps)[0].last_failure.message, "no such");
  EXPECT_FALSE(DecodeApps("{}").ok());
  EXPECT_FALSE(DecodeApps(R"({"apps":[{"id":"","tasks":[]}]})").ok());
  EXPECT_FALSE(DecodeApps(R"({"apps":[{"id":"/a","tasks":[{"id":7}]}]})").ok());
}

TEST(Decode, WhyAnAppWaits) {
  const auto waiting = DecodeQueue(
      R"({"queue":[{"app":{"id":"/a"},"delay":{"overdue":true,"timeLeftSeconds":0},"processedOffersSummary":
      {"rejectSummaryLastOffers":[{"reason":"InsufficientCpus","declined":0,"processed":3},
      {"reason":"InsufficientMemory","declined":2,"processed":3},{"reason":"Odd","declined":1,"processed":1}]}},
      {"app":{"id":"/b"},"delay":{"overdue":false,"timeLeftSeconds":7}},{"pod":{}},{"app":{"id":"/c"}}]})");
  ASSERT_TRUE(waiting.ok()) << waiting.status().message();
  ASSERT_EQ(waiting->size(), 3u);
  EXPECT_EQ((*waiting)[0].reason,
            "no offer of Mesos fits: not enough memory (2 of 3 offers), Odd (1 of 1 offers)");
  EXPECT_THAT((*waiting)[1].reason, HasSubstr("in 7 s"));
  EXPECT_EQ((*waiting)[2].reason, "waits for an offer of Mesos");
}

TEST(Decode, EventsInPieces) {
  ServerSentEventParser cutter;
  std::vector<Event> events;
  const std::string text =
      "event: status_update_event\r\ndata: "
      "{\"eventType\":\"status_update_event\",\"taskId\":\"w.1\",\"taskStatus\":\"TASK_FAILED\","
      "\"message\":\"m\",\"host\":\"n\"}\r\n\r\n\r\ndata: nonsense\n\ndata: "
      "{\"eventType\":\ndata: \"x\"}\n\n";
  for (const char c : text) ASSERT_TRUE(cutter.Feed(std::string(1, c), &events).ok());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].task, "w.1");
  EXPECT_EQ(events[0].status, "TASK_FAILED");
  EXPECT_EQ(events[1].type, "x");
  EXPECT_FALSE(cutter.Feed("data:" + std::string(2 << 20, 'a'), &events).ok());
}

TEST(Decode, ConflictsAndComplaints) {
  EXPECT_THAT(DecodeConflict(R"({"message":"locked","deployments":[{"id":"d1"},{"id":"d2"}]})"),
              ElementsAre("d1", "d2"));
  EXPECT_THAT(DecodeConflict("<html>"), IsEmpty());
  EXPECT_EQ(DecodeErrorMessage(
                R"({"message":"Object is not valid","details":[{"path":"/id","errors":["bad"]}]})"),
            "Object is not valid; /id: bad");
}

// A job's directory with the files that an executor writes.
class JobTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = MarathonJob::Make("job-1", dir_.path());
    ASSERT_TRUE(made.ok()) << made.status().message();
    job_ = std::move(*made);
  }
  void WriteDesired(int workers) {
    DesiredState orders;
    orders.program = "/opt/shoal";
    ASSERT_TRUE(job_->WriteDesired(Job(dir_.path(), workers), orders).ok());
  }
  void Write(const std::string& role, int index, int incarnation, TaskPhase phase,
             const std::string& mesos_task) {
    AgentEvent line{EventKind::kTask, {"", role, index, incarnation, phase, {}}, 0, mesos_task};
    text_[{role, index}] += EncodeAgentEvent(line);
    ASSERT_TRUE(WriteFileAtomically(SlotPath(dir_.path(), role, index), text_[{role, index}]).ok());
  }
  static App WorkerApp(int instances, const std::vector<std::string>& tasks) {
    App app{"/shoal/job-1/worker", "worker", "", instances, {}, {}};
    for (const std::string& id : tasks) app.tasks.push_back({id, "n1", "TASK_RUNNING"});
    return app;
  }
  static std::vector<App> WithCoordinator(App workers) {
    return {App{"/shoal/job-1/coordinator", "coordinator", "", 1, {}, {}}, std::move(workers)};
  }
  int64_t Instances() {
    return AppOf(job_->Group("/opt/shoal"), "worker").at("instances").as_int64();
  }

  TempDir dir_ = std::move(TempDir::Create("marathon").value());
  std::unique_ptr<MarathonJob> job_;
  std::map<std::pair<std::string, int>, std::string> text_;
};

TEST_F(JobTest, AMesosTaskThatIsGoneIsALossOnce) {
  WriteDesired(2);
  Write("worker", 0, 0, TaskPhase::kRunning, "w.a");
  EXPECT_EQ(job_->ReadEvents().size(), 1u);
  const auto running = job_->Running();
  const std::map<std::string, Failure> said{{"w.a", {"w.a", "n1", "agent gone", "TASK_GONE"}}};
  EXPECT_THAT(job_->ReconcileApps({WorkerApp(2, {"w.a", "w.b"})}, running, said), IsEmpty());
  const auto events = job_->ReconcileApps({WorkerApp(2, {"w.b"})}, running, said);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].phase, TaskPhase::kLost);
  EXPECT_THAT(events[0].end.reason, HasSubstr("TASK_GONE, agent gone"));
  // Its successor says so too.
  Write("worker", 0, 0, TaskPhase::kLost, "w.b");
  Write("worker", 0, 1, TaskPhase::kRunning, "w.b");
  const auto read = job_->ReadEvents();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].incarnation, 1);
}

// Its agent was out of reach: its end is the only word that will come of it.
TEST_F(JobTest, AnEndAfterALossOnMarathonsWordIsTold) {
  WriteDesired(1);
  Write("coordinator", 0, 0, TaskPhase::kRunning, "c.a");
  EXPECT_EQ(job_->ReadEvents().size(), 1u);
  EXPECT_EQ(job_->ReconcileApps({WorkerApp(1, {})}, job_->Running(), {}).size(), 1u);
  Write("coordinator", 0, 0, TaskPhase::kEnded, "c.a");
  const auto read = job_->ReadEvents();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].phase, TaskPhase::kEnded);
}

TEST_F(JobTest, ItShrinksByTasksThatNobodyNeeds) {
  WriteDesired(3);
  for (int i = 0; i < 3; ++i) Write("worker", i, 0, TaskPhase::kRunning, "w." + std::to_string(i));
  (void)job_->ReadEvents();
  WriteDesired(2);
  bool shrinks = false;
  EXPECT_EQ(Instances(), 3);
  EXPECT_THAT(job_->Surplus(WithCoordinator(WorkerApp(3, {"w.0", "w.2", "w.1"})), &shrinks),
              IsEmpty());
  EXPECT_TRUE(job_->Waits());
  Write("worker", 2, 0, TaskPhase::kEnded, "w.2");
  (void)job_->ReadEvents();
  EXPECT_THAT(job_->Surplus(WithCoordinator(WorkerApp(3, {"w.0", "w.2", "w.1"})), &shrinks),
              ElementsAre("w.2"));
  EXPECT_FALSE(shrinks);
  EXPECT_THAT(job_->Surplus(WithCoordinator(WorkerApp(2, {"w.0", "w.1"})), &shrinks), IsEmpty());
  EXPECT_EQ(Instances(), 2);
}

TEST_F(JobTest, ItShrinksByInstancesThatNeverBegan) {
  WriteDesired(3);
  WriteDesired(1);
  bool shrinks = false;
  EXPECT_THAT(job_->Surplus(WithCoordinator(WorkerApp(3, {})), &shrinks), IsEmpty());
  EXPECT_TRUE(shrinks);
  EXPECT_EQ(Instances(), 1);
}

TEST_F(JobTest, WhatAnotherPartyScalesDownIsSentAgain) {
  WriteDesired(2);
  bool differs = false;
  EXPECT_THAT(job_->Surplus(WithCoordinator(WorkerApp(2, {"w.0", "w.1"})), &differs), IsEmpty());
  EXPECT_FALSE(differs);
  EXPECT_THAT(job_->Surplus(WithCoordinator(WorkerApp(1, {"w.0"})), &differs), IsEmpty());
  EXPECT_TRUE(differs);
  EXPECT_EQ(Instances(), 2);
  EXPECT_THAT(job_->Surplus({WorkerApp(2, {"w.0", "w.1"})}, &differs), IsEmpty());
  EXPECT_TRUE(differs);  // the coordinator's app is gone
}

TEST_F(JobTest, ARoleWhoseMesosTasksEndBeforeTheyBeginIsGivenUp) {
  WriteDesired(1);
  std::vector<TaskEvent> events;
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(events, IsEmpty());
    App app = WorkerApp(1, {});
    app.last_failure = {"w." + std::to_string(i), "n3", "exited with status 127", "TASK_FAILED"};
    events = job_->ReconcileApps({app}, {}, {});
    EXPECT_THAT(job_->ReconcileApps({app}, {}, {}), IsEmpty());
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].phase, TaskPhase::kRefused);
  EXPECT_THAT(events[0].end.reason, HasSubstr("n3: exited with status 127"));
}

TEST_F(JobTest, WhyItWaitsIsToldOnce) {
  WriteDesired(1);
  const std::vector<PendingApp> waiting{{"/other/app", "x"}, {"/shoal/job-1/worker", "waits"}};
  const auto events = job_->ReportPendingApps(waiting);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].role, "coordinator");
  EXPECT_EQ(events[0].end.reason, "waits in Marathon's queue: worker waits");
  EXPECT_THAT(job_->ReportPendingApps(waiting), IsEmpty());
}

TEST_F(JobTest, AnotherEngineFindsItsPlaces) {
  WriteDesired(2);
  Write("worker", 1, 3, TaskPhase::kRunning, "w.b");
  const auto found = MarathonJob::Find("job-1", dir_.path());
  ASSERT_TRUE(found.ok()) << found.status().message();
  const auto list = (*found)->List();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[2].incarnation, 3);
  EXPECT_EQ((*found)->MesosTaskOf("worker", 1), "w.b");
  EXPECT_FALSE(MarathonJob::Find("job-2", dir_.path()).ok());
}

TEST(Inside, ProgramsSeeNothingOfMesos) {
  EXPECT_THAT(WithoutMarathon({"PATH=/bin", "PORT0=1", "PORT=1", "PORTS=1", "PORT_X=1", "PORTAL=1",
                               "HOST=h", "MESOS_SANDBOX=/s", "MESOS_SLAVE_ID=1",
                               "MARATHON_APP_ID=/a", "LIBPROCESS_IP=1"}),
              ElementsAre("PATH=/bin", "PORTAL=1", "MESOS_SANDBOX=/s"));
}

}  // namespace
}  // namespace shoal::engine::marathon
