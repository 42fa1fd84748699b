// The parts of the Slurm engine that need no Slurm: what is asked for, who sits where, what the
// agent decides, what is read of Slurm's output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/file.h"
#include "engine/agent/desired_state.h"
#include "engine/agent/task_table.h"
#include "engine/process/child_process.h"
#include "engine/slurm/batch_script.h"
#include "engine/slurm/cell_placement.h"
#include "engine/slurm/grant.h"
#include "engine/slurm/immediate_allocation.h"
#include "engine/slurm/slurm_commands.h"
#include "engine/slurm/slurm_helper.h"
#include "engine/slurm/slurm_job.h"
#include "engine/slurm/step_protocol.h"

namespace shoal::engine::slurm {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

DesiredTask Task(const std::string& role, int index, const job::Resources& resources = {}) {
  DesiredTask task;
  task.role = role;
  task.index = index;
  task.argv = {"/bin/true"};
  task.resources = resources;
  return task;
}

DesiredJob JobOf(std::vector<DesiredTask> tasks) {
  DesiredJob job;
  job.job_id = "job-1";
  job.job_dir = "/shared/job-1";
  job.tasks = std::move(tasks);
  return job;
}

// ---- what is asked for ----

// Of a job that asks for an ordinary allocation.
Result<CellPlan> PlanOf(const DesiredJob& job) {
  TRY_ASSIGN(const std::vector<CellPlan> plan, PlanComponents(job));
  EXPECT_EQ(plan.size(), 1u);
  return plan[0];
}

TEST(Cells, SmallTasksOfARoleShareOne) {
  const job::Resources big{4, int64_t{8} << 30, 0};
  const job::Resources small{1, int64_t{2} << 30, 0};
  auto plan = PlanOf(JobOf({Task("coordinator", 0), Task("ps", 0, small), Task("ps", 1, small),
                            Task("ps", 2, small), Task("worker", 0, big), Task("worker", 1, big)}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->cell.count, 3);
  EXPECT_EQ(plan->cell.cpus, 4);
  EXPECT_EQ(plan->cell.memory_mib, 8192);
  EXPECT_EQ(plan->shares["ps"].per_cell, 4);
  EXPECT_EQ(plan->shares["worker"].per_cell, 1);
}

TEST(Cells, NoGpuIsAskedForInVain) {
  const job::Resources gpu{2, 0, 1};
  auto plan = PlanOf(JobOf({Task("ps", 0), Task("ps", 1), Task("ps", 2), Task("worker", 0, gpu),
                            Task("worker", 1, gpu)}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->cell.count, 2);
  EXPECT_EQ(plan->cell.gpus, 1);
  EXPECT_EQ(plan->cell.cpus, 2 + 2);
  EXPECT_TRUE(plan->shares["ps"].beside);
}

TEST(Cells, ElasticRolesGetRoomForAllThereMayBe) {
  DesiredJob job = JobOf({Task("worker", 0)});
  job.max_tasks["worker"] = 5;
  EXPECT_EQ(PlanOf(job)->cell.count, 5);
}

TEST(Cells, EveryTaskOfAJobFindsItsPlace) {
  const job::Resources big{4, 0, 0};
  const job::Resources middle{2, 0, 0};
  DesiredJob job = JobOf({});
  for (int i = 0; i < 3; ++i) job.tasks.push_back(Task("big", i, big));
  for (int i = 0; i < 5; ++i) job.tasks.push_back(Task("middle", i, middle));
  for (int i = 0; i < 6; ++i) job.tasks.push_back(Task("small", i));
  const auto plan = PlanOf(job);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->cell.count, 3 + 3 + 2);
  CellPlacement placement;
  placement.Add(0, {"a", "b", "c"}, {3, 3, 2});
  for (const DesiredTask& task : job.tasks) {
    const auto share = plan->shares.at(task.role);
    const auto taken = placement.Reserve(task.role, share);
    ASSERT_TRUE(taken) << task.role << task.index;
    EXPECT_TRUE(taken->fresh);
  }
  EXPECT_FALSE(placement.Reserve("big", {}));
}

// ps in one partition, worker and aide in another.
DesiredJob HeterogeneousJob() {
  DesiredJob job = JobOf({Task("coordinator", 0), Task("ps", 0), Task("worker", 0, {2, 0, 1}),
                          Task("worker", 1, {2, 0, 1}), Task("aide", 0)});
  job.slurm.partition = "cpu";
  job.slurm.account = "physics";
  job.slurm.nodes = 1;
  job::SlurmSettings gpu;
  gpu.partition = "gpu";
  gpu.gpu_type = "a100";
  gpu.options = {"--licenses=matlab"};
  job.slurm_settings = {{"ps", {}}, {"worker", gpu}, {"aide", gpu}};
  return job;
}

TEST(Components, RolesThatAskAlikeShareOne) {
  const auto plan = PlanComponents(HeterogeneousJob());
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->size(), 2u);
  EXPECT_EQ(plan->at(0).slurm.partition, "cpu");
  EXPECT_EQ(plan->at(0).slurm.nodes, 1);
  EXPECT_EQ(plan->at(0).cell.count, 1);
  EXPECT_EQ(plan->at(0).cell.gpus, 0);
  EXPECT_EQ(plan->at(1).slurm.partition, "gpu");
  EXPECT_EQ(plan->at(1).slurm.account, "physics");
  EXPECT_EQ(plan->at(1).slurm.nodes, 0);
  EXPECT_EQ(plan->at(1).cell.count, 2);
  EXPECT_EQ(plan->at(1).cell.gpus, 1);
  EXPECT_EQ(ShareOf(*plan, "ps")->component, 0);
  EXPECT_EQ(ShareOf(*plan, "worker")->component, 1);
  EXPECT_TRUE(ShareOf(*plan, "aide")->beside);
  EXPECT_EQ(ShareOf(*plan, "coordinator"), nullptr);
}

TEST(Components, OnesThatAllAskForTheSameAreAnOrdinaryAllocation) {
  DesiredJob job = HeterogeneousJob();
  job.slurm_settings[0].second = job.slurm_settings[1].second;
  const auto plan = PlanComponents(job);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->size(), 1u);
  EXPECT_EQ(plan->at(0).slurm.partition, "gpu");
  EXPECT_THAT(RenderScript(job, *plan, "/shoal").value(), Not(HasSubstr("hetjob")));
}

TEST(Components, AreCountedAlikeWhenARoleHasNoTasksForATime) {
  DesiredJob job = HeterogeneousJob();
  job.max_tasks["ps"] = 3;
  std::erase_if(job.tasks, [](const DesiredTask& task) { return task.role == "ps"; });
  EXPECT_EQ(ShareOf(PlanComponents(job).value(), "worker")->component, 1);
  job.max_tasks.clear();  // it never has any: nothing is asked for it
  EXPECT_EQ(PlanComponents(job)->size(), 1u);
}

TEST(Components, MoreThanSlurmTakesAreRefused) {
  DesiredJob job = JobOf({});
  for (int i = 0; i < 129; ++i) {
    const std::string role = "r" + std::to_string(i);
    job.tasks.push_back(Task(role, 0));
    job::SlurmSettings ask;
    ask.constraint = role;
    job.slurm_settings.emplace_back(role, ask);
  }
  EXPECT_THAT(PlanComponents(job).status().message(), HasSubstr("expected at most 128"));
}

TEST(Components, TasksStayInTheirOwn) {
  CellPlacement placement;
  placement.Add(0, {"a"}, {1});
  placement.Add(1, {"b", "c"}, {1, 1});
  const CellShare second{1, false, 1};
  EXPECT_EQ(placement.node(placement.Reserve("worker", second)->cell), "b");
  EXPECT_EQ(placement.node(placement.Reserve("worker", second)->cell), "c");
  EXPECT_FALSE(placement.Reserve("worker", second));
  placement.LoseNode("b");
  EXPECT_EQ(placement.node(*placement.ReserveLeastUsed("worker", 1)), "c");
  placement.LoseNode("c");
  EXPECT_FALSE(placement.ReserveLeastUsed("worker", 1));
  EXPECT_EQ(placement.node(placement.Reserve("ps", {})->cell), "a");
}

TEST(CellPlacement, WhoFollowsInAPlaceOverlapsUntilTheStepIsOver) {
  CellPlacement placement;
  placement.Add(0, {"a"}, {1});
  const auto first = placement.Reserve("worker", {});
  ASSERT_TRUE(first && first->fresh);
  EXPECT_FALSE(placement.Reserve("worker", {}));
  placement.Release(first->cell, "worker");
  const auto second = placement.Reserve("worker", {});
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->fresh);
  placement.Release(second->cell, "worker");
  placement.ReleaseStep(first->cell, "worker");
  EXPECT_TRUE(placement.Reserve("worker", {})->fresh);
}

TEST(CellPlacement, ALostNodesCellsAreGone) {
  CellPlacement placement;
  placement.Add(0, {"a", "b"}, {1, 1});
  const auto first = placement.Reserve("worker", {});
  EXPECT_EQ(placement.node(first->cell), "a");
  placement.LoseNode("a");
  EXPECT_TRUE(placement.lost(first->cell));
  EXPECT_EQ(placement.node(placement.Reserve("worker", {})->cell), "b");
  EXPECT_FALSE(placement.Reserve("worker", {}));
  EXPECT_EQ(placement.node(*placement.ReserveLeastUsed("worker", 0)), "b");
  placement.LoseNode("b");
  EXPECT_FALSE(placement.ReserveLeastUsed("worker", 0));
}

TEST(Lists, AreExpandedAsSlurmWritesThem) {
  EXPECT_THAT(*ExpandHosts("n1"), ElementsAre("n1"));
  EXPECT_THAT(*ExpandHosts("n[1-3,07-08],b"), ElementsAre("n1", "n2", "n3", "n07", "n08", "b"));
  EXPECT_THAT(*ExpandHosts("r[1-2]n[3,4]-ib"),
              ElementsAre("r1n3-ib", "r1n4-ib", "r2n3-ib", "r2n4-ib"));
  EXPECT_THAT(*ExpandCounts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  for (const char* bad : {"", "n[", "n[1", "n]", "n[a-b]", "n[3-1]", "n[1-999999999]", "n[1,]"})
    EXPECT_FALSE(ExpandHosts(bad).ok()) << bad;
  for (const char* bad : {"", "a", "2(x", "2(x3", "-1", "1(x999999999)"})
    EXPECT_FALSE(ExpandCounts(bad).ok()) << bad;
}

TEST(Script, AsksForWhatTheJobFileSays) {
  DesiredJob job = JobOf({Task("worker", 0, {2, int64_t{3} << 30, 1}), Task("worker", 1)});
  job.slurm.partition = "gpu,long";
  job.slurm.time = std::chrono::hours(26);
  job.slurm.gpu_type = "a100";
  job.slurm.requeue = false;
  job.slurm.options = {"--licenses=matlab"};
  const auto plan = PlanComponents(job);
  auto script = RenderScript(job, *plan, "/opt/shoal's/shoal");
  ASSERT_TRUE(script.ok()) << script.status().message();
  for (const char* line :
       {"--ntasks=2\n", "--cpus-per-task=2\n", "--mem-per-cpu=1536M\n", "--gpus-per-task=a100:1\n",
        "--partition=gpu,long\n", "--time=1-02:00:00\n", "--no-requeue\n", "--no-kill\n",
        "--signal=B:USR1@120\n", "--licenses=matlab\n", "--comment=shoal:job-1\n",
        "'/opt/shoal'\\''s/shoal' slurm agent"})
    EXPECT_THAT(*script, HasSubstr(line));
  job.slurm.account = "a b";
  EXPECT_THAT(RenderScript(job, *PlanComponents(job), "/shoal").status().message(),
              HasSubstr("slurm.account"));
  job.slurm.account = "";
  job.slurm.options = {"rm"};
  EXPECT_THAT(RenderScript(job, *PlanComponents(job), "/shoal").status().message(),
              HasSubstr("slurm.options"));
  job.slurm.options = {};
  job.job_dir = "/a\nb";
  EXPECT_FALSE(RenderScript(job, *plan, "/shoal").ok());
}

TEST(Script, StartsTheAgentThoughItsLogCannotBeOpened) {
  const TempDir dir = TempDir::Create("script").value();
  std::filesystem::create_directories(dir.path() / "engine" / "slurm.log");  // no file
  ASSERT_TRUE(WriteFileAtomically(dir.path() / "engine" / "orders.json", "{}", 0600).ok());
  const auto agent = dir.path() / "agent";
  const std::string started = (dir.path() / "started").string();
  ASSERT_TRUE(WriteFileAtomically(agent, "#!/bin/sh\n: >" + started + "\n", 0700).ok());
  DesiredJob job = HeterogeneousJob();
  job.job_dir = dir.path();
  const auto script = RenderScript(job, PlanComponents(job).value(), agent);
  ASSERT_TRUE(script.ok()) << script.status().message();
  const auto file = dir.path() / "batch.sh";
  ASSERT_TRUE(WriteFileAtomically(file, *script, 0700).ok());
  EXPECT_EQ(std::system(file.c_str()), 0);  // NOLINT: the test's own file
  EXPECT_TRUE(std::filesystem::exists(started));
}

TEST(Script, AComponentHasLinesOfItsOwn) {
  const DesiredJob job = HeterogeneousJob();
  const std::string script = RenderScript(job, PlanComponents(job).value(), "/opt/shoal").value();
  const std::string mark = "#SBATCH hetjob\n";
  const size_t border = script.find(mark);
  ASSERT_NE(border, std::string::npos);
  EXPECT_EQ(script.find(mark, border + 1), std::string::npos);
  const std::string first = script.substr(0, border);
  const std::string second = script.substr(border);
  for (const std::string& part : {first, second}) {
    for (const char* line : {"--comment=shoal:job-1\n", "--chdir=/shared/job-1\n", "--no-kill\n",
                             "--requeue\n", "--account=physics\n"})
      EXPECT_THAT(part, HasSubstr(line));
  }
  for (const char* line : {"--partition=cpu\n", "--ntasks=1\n", "--nodes=1\n"})
    EXPECT_THAT(first, HasSubstr(line));
  for (const char* line : {"--partition=gpu\n", "--ntasks=2\n", "--gpus-per-task=a100:1\n",
                           "--licenses=matlab\n", "exec '/opt/shoal' slurm agent"})
    EXPECT_THAT(second, HasSubstr(line));
  EXPECT_THAT(second, Not(HasSubstr("--nodes=")));
  EXPECT_EQ(StepArgv({}, 1, "f", false, HetGroupOption(1))[1], "--het-group=1");
}

// ---- what Slurm says ----

TEST(Script, AtOnceTheSameIsAskedFor) {
  DesiredJob job = JobOf({Task("coordinator", 0), Task("worker", 0)});
  job.slurm.partition = "batch";
  job.slurm.save_before = milliseconds(90'000);
  const auto plan = PlanComponents(job);
  const auto request = MakeImmediateRequest(job, plan->at(0), "/opt/shoal");
  ASSERT_TRUE(request.ok());
  const std::string script = RenderScript(job, *plan, "/opt/shoal").value();
  for (const std::string& word : request->salloc) {
    const bool own = word == "--immediate=1" || word == "--kill-command=TERM";
    if (!word.starts_with("--") || own) continue;
    EXPECT_THAT(script, HasSubstr("#SBATCH " + word + "\n"));
  }
  EXPECT_THAT(request->salloc, testing::Contains("--partition=batch"));
  EXPECT_EQ(request->salloc.back(), kReportGrantScript);
  EXPECT_THAT(request->agent, ElementsAre("/opt/shoal", "slurm", "agent", "/shared/job-1", "90"));
  EXPECT_FALSE(CanAllocateImmediately({"PATH=/bin", "SBATCH_PARTITION=x"}));
  EXPECT_TRUE(CanAllocateImmediately({"PATH=/bin", "SLURM_CONF=/x"}));
}

// What comes of an salloc and an agent that are these scripts.
Result<ImmediateAllocation> AllocateBy(const TempDir& dir, const std::string& salloc,
                                       const std::string& agent) {
  EXPECT_TRUE(MakeDirectories(dir.path() / "engine", 0700).ok());
  ImmediateRequest request;
  request.salloc = {"/bin/sh", "-c", salloc};
  request.agent = {"/bin/sh", "-c", agent};
  return AllocateImmediately(request, CurrentEnvironment(), dir.path(), milliseconds(300));
}

TEST(ImmediateAllocation, TheAgentHearsOfTheAllocationAndHoldsItByItsInput) {
  const TempDir dir = TempDir::Create().value();
  const std::string salloc =
      std::string(
          "exec env SLURM_JOB_ID=4711 SLURM_JOB_NODELIST='n[1-3]' SLURM_TASKS_PER_NODE='2(x3)' "
          "SLURM_SUBMIT_HOST=login /bin/sh -c '") +
      kReportGrantScript + "'";
  const auto at_once = AllocateBy(dir, salloc, "read line; echo \"$line\" > heard; echo 4711");
  ASSERT_TRUE(at_once.ok()) << at_once.status().message();
  EXPECT_EQ(at_once->number, 4711);
  std::string heard = ReadFile(dir.path() / "heard", 4096).value();
  heard.pop_back();
  const auto grant = ParseGrant(heard);
  ASSERT_TRUE(grant.ok()) << grant.status().message();
  EXPECT_EQ(grant->number, 4711);
  EXPECT_EQ(grant->nodes, "n[1-3]");
  EXPECT_EQ(grant->tasks_per_node, "2(x3)");
  EXPECT_EQ(grant->submit_host, "login");
  EXPECT_EQ(ReapChild(at_once->agent), 0);
  EXPECT_EQ(ReapChild(at_once->salloc), 0);  // its command ends when the agent has
}

TEST(ImmediateAllocation, ARefusalIsSaidInItsOwnWords) {
  const TempDir dir = TempDir::Create().value();
  const auto at_once = AllocateBy(
      dir,
      "echo 'salloc: error: Unable to allocate resources: Requested nodes are busy' >&2; exit 1",
      "read line; exit 1");
  EXPECT_EQ(at_once.status().code(), Code::kUnavailable);
  EXPECT_THAT(at_once.status().message(), HasSubstr("Requested nodes are busy"));
}

TEST(ImmediateAllocation, OneThatDoesNotAnswerIsToldToGiveBackWhatItGets) {
  const TempDir dir = TempDir::Create().value();
  const auto at_once =
      AllocateBy(dir, "trap 'echo revoked >&2; exit 1' TERM; while :; do sleep 0.02; done",
                 "read line; exit 1");
  EXPECT_EQ(at_once.status().code(), Code::kUnavailable);
  EXPECT_THAT(at_once.status().message(), HasSubstr("revoked"));
}

TEST(Grant, IsCheckedWordByWord) {
  EXPECT_EQ(ParseGrant("7 8 n1 1 ").value().submit_host, "");
  for (const char* line : {"", "7", "7 8", "7 8 n1", "x 8 n1 1", "0 8 n1 1", "7 -1 n1 1",
                           "7 8 n1 1 login more", "7 8  1"})
    EXPECT_FALSE(ParseGrant(line).ok()) << line;
}

TEST(Queue, TheTimeThatIsLeftIsRead) {
  using std::chrono::seconds;
  EXPECT_EQ(ParseTimeLeft("0:07\n"), seconds(7));
  EXPECT_EQ(ParseTimeLeft("59:01"), seconds(3541));
  EXPECT_EQ(ParseTimeLeft("2:00:00"), seconds(7200));
  EXPECT_EQ(ParseTimeLeft("1-02:03:04"), seconds(93784));
  for (const char* text :
       {"", "UNLIMITED\n", "INVALID", "NOT_SET", "1-", "-1:00", "1:x", "9999999999"})
    EXPECT_EQ(ParseTimeLeft(text), std::nullopt) << text;
}

TEST(Ports, AreThoseOfSruns) {
  const auto range = [](const char* text) {
    const PortRange ports = ParseSrunPorts(text);
    return std::pair(ports.first, ports.last);
  };
  EXPECT_EQ(
      range("SlurmUser = root(0)\nSrunEpilog              = (null)\nSrunPortRange           = "
            "60001-63000\nSrunProlog = (null)\n"),
      std::pair(60001, 63000));
  for (const char* text : {"", "SrunPortRange = 0-0\n", "SrunPortRange = 9-8", "SrunPortRange",
                           "SrunPortRange = 1-70000", "SrunPortRange = x\n1-2"})
    EXPECT_EQ(range(text), std::pair(0, 0)) << text;
}

TEST(Ports, AreReadWhereSlurmsConfigurationIs) {
  const auto range = [](const char* text) {
    const auto ports = SrunPortsOfFile(text);
    return ports ? std::pair(ports->first, ports->last) : std::pair(-1, -1);
  };
  EXPECT_EQ(range("ClusterName=a\n  srunportRange = 60001-63000 # open\n"),
            std::pair(60001, 63000));
  EXPECT_EQ(range("#SrunPortRange=1-2\nSlurmctldPort=1-2\n"), std::pair(0, 0));
  EXPECT_EQ(range("SrunPortRange=1-2\nInclude /etc/slurm/more.conf\n"), std::pair(-1, -1));
}

class JobViewTest : public testing::Test {
 protected:
  void Begin(const Allocation& allocation) {
    DesiredJob job = JobOf({Task("coordinator", 0), Task("worker", 0)});
    job.job_dir = dir_.path();
    view_ = SlurmJob::Make(job.job_id, job.job_dir).value();
    DesiredState rest;
    rest.program = "/opt/shoal";
    ASSERT_TRUE(view_->WriteDesired(job, PlanComponents(job).value(), rest).ok());
    ASSERT_TRUE(view_->RecordSubmission(allocation).ok());
    Say(EventKind::kAgentStarted);
  }
  void Say(EventKind sign) {
    std::string text = ReadFile(AgentEventsPath(dir_.path()), 1 << 20).value_or("");
    text += EncodeAgentEvent({sign, {}, 1, ""});
    ASSERT_TRUE(WriteFileAtomically(AgentEventsPath(dir_.path()), text, 0600, false).ok());
    (void)view_->ReadEvents();
  }

  TempDir dir_ = TempDir::Create().value();
  std::unique_ptr<SlurmJob> view_;
};

TEST_F(JobViewTest, AnAttendedJobThatSavedIsToBeSubmittedWhenItsAgentHasEnded) {
  Begin({7, true});
  EXPECT_FALSE(view_->waits());
  Say(EventKind::kNeedsNewAllocation);
  EXPECT_FALSE(view_->needs_new_allocation());  // it may still run tasks
  EXPECT_FALSE(view_->closed());
  Say(EventKind::kAgentExited);
  EXPECT_TRUE(view_->needs_new_allocation());
  EXPECT_FALSE(view_->closed());  // a stop must still look for it
  ASSERT_TRUE(view_->RecordSubmission({8, false}).ok());
  EXPECT_FALSE(view_->needs_new_allocation());
  EXPECT_TRUE(view_->waits());
  EXPECT_FALSE(view_->closed());
  Say(EventKind::kAgentStarted);
  EXPECT_FALSE(view_->waits());
  Say(EventKind::kAgentExited);
  EXPECT_TRUE(view_->closed());
  EXPECT_EQ(SlurmJob::Find("job-1", dir_.path()).value()->number(), 8);
}

TEST_F(JobViewTest, WhatSlurmItselfEndsGoesOnOnlyWhereItMayBeRequeued) {
  EXPECT_TRUE(IsEndedBySlurm("PREEMPTED"));
  EXPECT_FALSE(IsEndedBySlurm("CANCELLED"));
  Begin({7, true});
  EXPECT_FALSE(view_->needs_new_allocation());
  view_->RequestNewAllocation();
  EXPECT_FALSE(view_->needs_new_allocation());  // it is in the queue
  for (int look = 0; look < 2; ++look) (void)view_->ApplyQueueState(nullptr, TimePoint{});
  EXPECT_TRUE(view_->needs_new_allocation());
  Begin({7, false});
  view_->RequestNewAllocation();
  for (int look = 0; look < 2; ++look) (void)view_->ApplyQueueState(nullptr, TimePoint{});
  EXPECT_FALSE(view_->needs_new_allocation());  // Slurm starts batch jobs again
}

TEST(Queue, IsReadLineByLine) {
  const auto jobs = ParseQueue(
      "7|PENDING|Resources|2026-11-22T11:06:57||n/a|/home/a/jobs/x|shoal:x-1\n"
      "garbage\n0|RUNNING|None|N/A|n1|n1|/|c\n9_4|RUNNING|None|N/A|n1|n1|/|c\n"
      "8|RUNNING|None|2026|n[1-3]|n1|/|a|b");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(JobIdOfComment(jobs[0].comment), "x-1");
  EXPECT_EQ(jobs[0].work_dir, "/home/a/jobs/x");
  EXPECT_EQ(DescribeWait(jobs[0]),
            "waits in Slurm's queue (job 7): Resources, what it asks for is in use by other jobs; "
            "expected to start at 2026-11-22T11:06:57");
  EXPECT_EQ(jobs[1].comment, "a|b");
  EXPECT_EQ(JobIdOfComment("shoal:../x"), "");
  EXPECT_FALSE(HasLostBatchNode(jobs[0]));
  EXPECT_FALSE(HasLostBatchNode(jobs[1]));
  EXPECT_TRUE(HasLostBatchNode(ParseQueue("8|RUNNING|None|2026|n[2-3]|n1|/|c").at(0)));
  EXPECT_TRUE(IsPending("PENDING"));
  EXPECT_TRUE(IsActive("COMPLETING"));
  EXPECT_FALSE(IsActive("CANCELLED"));
}

TEST(Queue, ComponentsAreOneJob) {
  const auto one = [](const std::string& head, const std::string& other) {
    return ParseQueue("7+1|" + other + "|/|shoal:x-1\n7+0|" + head + "|/|shoal:x-1\n").at(0);
  };
  const QueuedJob waits =
      one("PENDING|Resources|2026-11-22T11:06:57||n/a", "PENDING|ReqNodeNotAvail|N/A||n/a");
  EXPECT_EQ(waits.number, 7);
  EXPECT_TRUE(waits.heterogeneous);
  EXPECT_EQ(waits.reason, "ReqNodeNotAvail");
  EXPECT_EQ(waits.start, "N/A");
  EXPECT_FALSE(waits.torn);
  const std::string runs = "RUNNING|None|2026|n2|n2";
  const QueuedJob both = one("RUNNING|None|2026|n1|n1", runs);
  EXPECT_EQ(both.nodes, "n1");
  EXPECT_FALSE(both.torn);
  // As Slurm requeues it, and as it ends.
  EXPECT_FALSE(one("COMPLETING|None|2026|n1|n1", "PENDING|BeginTime|2026||n/a").torn);
  EXPECT_FALSE(one("COMPLETED|None|2026|n1|n1", "COMPLETING|None|2026|n2|n2").torn);
  EXPECT_FALSE(one("FAILED|None|2026|n1|n1", "FAILED|None|2026|n2|n2").torn);
  // As the loss of a node leaves it.
  EXPECT_TRUE(one("PENDING|BeginTime|2026||n/a", runs).torn);
  EXPECT_TRUE(one("PENDING|BeginTime|2026||n/a", "FAILED|JobLaunchFailure|2026|n2|n2").torn);
  const QueuedJob headless = one("NODE_FAIL|None|2026||n1", runs);
  EXPECT_TRUE(headless.torn);
  EXPECT_TRUE(IsActive(headless.state));
  EXPECT_FALSE(ParseQueue("8|RUNNING|None|2026|n1|n1|/|c").at(0).heterogeneous);
  EXPECT_TRUE(ParseQueue("8+x|RUNNING|None|2026|n1|n1|/|c").empty());
}

TEST_F(JobViewTest, WhatIsTornGoesOnInAnotherAllocation) {
  Begin({7, false});
  QueuedJob torn;
  torn.state = "PENDING";
  torn.torn = true;
  (void)view_->ApplyQueueState(&torn, TimePoint{});
  EXPECT_FALSE(view_->is_torn());  // it may be for a moment
  EXPECT_TRUE(view_->waits());
  (void)view_->ApplyQueueState(&torn, TimePoint{});
  ASSERT_TRUE(view_->is_torn());
  view_->RequestNewAllocation();
  EXPECT_TRUE(view_->needs_new_allocation());
  ASSERT_TRUE(view_->RecordSubmission({8, false}).ok());
  EXPECT_FALSE(view_->is_torn());
  EXPECT_FALSE(view_->needs_new_allocation());
}

TEST_F(JobViewTest, ASuspendedJobIsStoppedAndNotLost) {
  Begin({7, true});
  const QueuedJob runs = ParseQueue("7|RUNNING|None|2026|n1|n1|/|c").at(0);
  const QueuedJob stopped = ParseQueue("7|SUSPENDED|None|2026|n1|n1|/|c").at(0);
  EXPECT_TRUE(view_->ApplyQueueState(&runs, TimePoint{}).empty());
  const auto told = view_->ApplyQueueState(&stopped, TimePoint{});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].stopped, true);
  EXPECT_EQ(told[0].phase, TaskPhase::kRunning);
  EXPECT_THAT(told[0].end.reason, HasSubstr("Slurm has suspended the job"));
  EXPECT_TRUE(view_->ApplyQueueState(&stopped, TimePoint{}).empty()) << "told once";
  EXPECT_FALSE(view_->vanished());
  const auto again = view_->ApplyQueueState(&runs, TimePoint{});
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].stopped, false);
}

TEST(Queue, OnlyANodeThatWasTheJobsOwnCanBeLost) {
  const QueuedJob headless = ParseQueue("8|RUNNING|None|2026|n[2-3]|n1|/|c").at(0);
  // On a front end the batch script's host is never among the allocation's.
  for (const std::string began : {"n1", ""}) {
    TempDir dir = std::move(TempDir::Create("slurm-head").value());
    auto view = SlurmJob::Make("job-1", dir.path());
    ASSERT_TRUE(view.ok()) << view.status().message();
    const AgentEvent line{EventKind::kAgentStarted, {}, 1, began};
    ASSERT_TRUE(WriteFileAtomically(AgentEventsPath(dir.path()), EncodeAgentEvent(line)).ok());
    EXPECT_TRUE((*view)->ReadEvents().empty());
    (void)(*view)->ApplyQueueState(&headless, TimePoint());
    EXPECT_EQ((*view)->wants_requeue(), began == "n1");
  }
}

TEST(Ends, AreExplained) {
  const auto ended = ParseEndedJob(
      "JobId=7 JobName=x JobState=FAILED Reason=NonZeroExitCode Dependency=(null) BatchHost=n2 "
      "ExitCode=72:0 Comment=JobState=LIE");
  ASSERT_TRUE(ended.ok());
  EXPECT_THAT(DescribeEnd(*ended, "/shared/x"),
              HasSubstr("node n2 does not see the job's directory"));
  EndedJob job;
  job.state = "TIMEOUT";
  EXPECT_THAT(DescribeEnd(job, ""), HasSubstr("slurm.time"));
  job.state = "CANCELLED";
  EXPECT_THAT(DescribeEnd(job, ""), HasSubstr("scancel"));
  EXPECT_FALSE(ParseEndedJob("slurm_load_jobs error").ok());
}

TEST(Nodes, AreAddedUpOnceAndOnlyThoseThatWork) {
  const Capacity capacity = ParseNodes(
      "n1|idle|4|4000|gpu:2\nn1|idle|4|4000|gpu:2\nn2|mixed|8|8000|gpu:a100:4(S:0-1),shard:8\n"
      "n3|down*|4|4000|gpu:2\nn4|drained|4|4000|(null)\nbroken\n");
  EXPECT_EQ(capacity.cpu, 12);
  EXPECT_EQ(capacity.memory_bytes, int64_t{12000} << 20);
  EXPECT_EQ(capacity.gpu, 6);
}

// What `sbatch` of this directory makes of a job.
Status SubmitWith(const std::string& directory) {
  (void)::signal(SIGPIPE, SIG_IGN);  // as our programs do: an sbatch that refuses reads nothing
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", directory.c_str(), 1);
  const auto number = SlurmCommands({"PATH=" + directory}).Submit("#!/bin/sh\n");
  ::setenv("PATH", path.c_str(), 1);
  return number.status();
}

TEST(CommandsTest, WithoutSlurmTheSentenceSaysWhatIsMissing) {
  const Status status = SubmitWith("/no/such/directory");
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("there is no sbatch here"));
}

TEST(CommandsTest, WithoutAConfigurationTheSentenceSaysWhereItIsLookedFor) {
  const TempDir dir = TempDir::Create().value();
  const std::string says =
      "#!/bin/sh\n"
      "echo 'sbatch: error: resolve_ctls_from_dns_srv: Unknown host' >&2\n"
      "echo 'sbatch: fatal: Could not establish a configuration source' >&2\n"
      "exit 1\n";
  ASSERT_TRUE(WriteFileAtomically(dir.path() / "sbatch", says, 0700, false).ok());
  const Status status = SubmitWith(dir.path());
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("sbatch finds no configuration of Slurm"));
  EXPECT_THAT(status.message(), HasSubstr("set SLURM_CONF"));
  EXPECT_THAT(status.message(), Not(HasSubstr("fatal")));
}

TEST(ChildTest, OutputIsBoundedInTimeAndBytes) {
  CommandLimits limits;
  limits.time = milliseconds(50);
  EXPECT_EQ(RunCommand({"sleep", "10"}, {}, "", limits).status().code(), Code::kDeadlineExceeded);
  limits = {};
  limits.bytes = 1000;
  EXPECT_EQ(RunCommand({"yes"}, {}, "", limits).status().code(), Code::kResourceExhausted);
  const auto ran = RunCommand({"sh", "-c", "cat; echo bad >&2; exit 3"}, {}, "some input");
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->out, "some input");
  EXPECT_EQ(ran->err, "bad\n");
  EXPECT_EQ(ran->exit_code, 3);
}

// ---- what the two write for each other ----

TEST(StepLines, GoThroughTextUnchanged) {
  StepEvent line{StepEventKind::kEnded, 3, {}};
  line.end.signal = 9;
  const std::string text = EncodeStepEvent(line);
  for (const std::string& label : {std::string(), std::string("  3: ")}) {
    const auto read = DecodeStepEvent(label + text);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->word, StepEventKind::kEnded);
    EXPECT_EQ(read->task, 3);
    EXPECT_EQ(read->end.signal, 9);
  }
  EXPECT_FALSE(DecodeStepEvent("3: hello").ok());
  EXPECT_FALSE(DecodeStepEvent(R"({"task":-1,"word":"started"})").ok());
  EXPECT_FALSE(DecodeStepEvent(std::string(5000, 'x')).ok());
  const auto order = DecodeStepSignal("usr1 4");
  ASSERT_TRUE(order);
  EXPECT_EQ(order->signal, SIGUSR1);
  EXPECT_EQ(order->task, 4);
  EXPECT_FALSE(DecodeStepSignal("hup 4"));
  EXPECT_EQ(FailedNodes("srun: error: Node failure on n[2-3]"), "n[2-3]");
  EXPECT_EQ(FailedNodes("1: Node failure on n2"), "");
}

TEST(Environment, HasNothingOfSlurmsOwn) {
  EXPECT_THAT(WithoutSlurm({"PATH=/bin", "SLURM_PROCID=1", "PMI_RANK=0", "SBATCH_ACCOUNT=x",
                            "SLURM_TMPDIR=/scratch", "CUDA_VISIBLE_DEVICES=0"}),
              ElementsAre("PATH=/bin", "SLURM_TMPDIR=/scratch", "CUDA_VISIBLE_DEVICES=0"));
}

// ---- what the agent decides ----

class TaskTableTest : public testing::Test {
 protected:
  DesiredState OrdersOf(int64_t number, std::vector<AgentTask> tasks) {
    DesiredState orders;
    orders.job_id = "job-1";
    orders.revision = number;
    orders.restart.first = milliseconds(100);
    orders.tasks = std::move(tasks);
    return orders;
  }
  TaskTable::Incarnation Incarnation(int incarnation) { return {{"worker", 0}, incarnation}; }
  std::vector<TaskPhase> Told() {
    std::vector<TaskPhase> phases;
    for (const TaskEvent& event : table_.DrainEvents()) phases.push_back(event.phase);
    return phases;
  }
  TaskTable table_{"job-1"};
  TimePoint now_{std::chrono::seconds(100)};
  const AgentTask task_{Task("worker", 0), 0, 1, false};
};

TEST_F(TaskTableTest, ALostTaskIsStartedAgainAfterAPause) {
  table_.ApplyDesiredState(OrdersOf(1, {task_}), now_);
  EXPECT_THAT(table_.Step(now_).start, ElementsAre(Incarnation(0)));
  table_.OnStarted(Incarnation(0), now_);
  TaskEnd end;
  end.signal = 9;
  table_.OnEnded(Incarnation(0), now_, end, "");
  EXPECT_TRUE(table_.Step(now_).start.empty());
  EXPECT_THAT(table_.Step(now_ + milliseconds(100)).start, ElementsAre(Incarnation(1)));
  EXPECT_THAT(Told(), ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning, TaskPhase::kLost,
                                  TaskPhase::kStarting));
  table_.OnEnded(Incarnation(0), now_, end, "");  // of an earlier life: means nothing
  EXPECT_TRUE(table_.AnyAlive());
}

TEST_F(TaskTableTest, OneThatIsNotNamedIsToldToEndAsSoonAsItRuns) {
  table_.ApplyDesiredState(OrdersOf(1, {task_}), now_);
  (void)table_.Step(now_);
  table_.ApplyDesiredState(OrdersOf(2, {}), now_);
  EXPECT_TRUE(table_.Step(now_).term.empty());
  table_.OnStarted(Incarnation(0), now_);
  EXPECT_THAT(table_.Step(now_).term, ElementsAre(Incarnation(0)));
  EXPECT_THAT(table_.Step(now_ + milliseconds(10'000)).kill, ElementsAre(Incarnation(0)));
  table_.OnEnded(Incarnation(0), now_, {}, "");
  EXPECT_FALSE(table_.AnyAlive());
}

TEST_F(TaskTableTest, NamedAgainInAnotherRoundItLivesAgain) {
  table_.ApplyDesiredState(OrdersOf(1, {task_}), now_);
  (void)table_.Step(now_);
  table_.OnStarted(Incarnation(0), now_);
  AgentTask again = task_;
  again.revision = 1;  // the orders between were not seen
  table_.ApplyDesiredState(OrdersOf(3, {again}), now_);
  EXPECT_THAT(table_.Step(now_).term, ElementsAre(Incarnation(0)));
  TaskEnd end;
  end.signal = 15;
  table_.OnEnded(Incarnation(0), now_, end, "");
  EXPECT_THAT(table_.Step(now_).start, ElementsAre(Incarnation(1)));
}

TEST_F(TaskTableTest, AnotherAgentMakesGoodWhatWasLostWithTheAllocation) {
  table_.Replay({"job-1", "worker", 0, 2, TaskPhase::kRunning, {}});
  table_.Replay({"job-1", "worker", 1, 0, TaskPhase::kEnded, {}});
  table_.MarkRunningLost(now_, "was lost with its allocation");
  EXPECT_THAT(Told(), ElementsAre(TaskPhase::kLost));
  AgentTask other = task_;
  other.task.index = 1;
  table_.ApplyDesiredState(OrdersOf(1, {task_, other}), now_);
  EXPECT_THAT(table_.Step(now_).start, ElementsAre(Incarnation(3)));
}

TEST_F(TaskTableTest, AfterASaveAllAreStartedAnew) {
  table_.Replay({"job-1", "worker", 0, 2, TaskPhase::kEnded, {}});
  table_.Reset();
  table_.MarkRunningLost(now_, "");
  table_.ApplyDesiredState(OrdersOf(1, {task_}), now_);
  EXPECT_THAT(table_.Step(now_).start, ElementsAre(Incarnation(3)));
}

TEST_F(TaskTableTest, WhatSlurmEndsIsLostAndNotEnded) {
  table_.ApplyDesiredState(OrdersOf(1, {task_}), now_);
  (void)table_.Step(now_);
  table_.OnStarted(Incarnation(0), now_);
  table_.StopAll(now_ + milliseconds(500), true);
  EXPECT_THAT(table_.Step(now_).term, ElementsAre(Incarnation(0)));
  table_.OnEnded(Incarnation(0), now_, {}, "");
  EXPECT_THAT(Told(), ElementsAre(TaskPhase::kStarting, TaskPhase::kRunning, TaskPhase::kLost));
  EXPECT_TRUE(table_.Step(now_ + std::chrono::hours(1)).start.empty());
}

}  // namespace
}  // namespace shoal::engine::slurm
