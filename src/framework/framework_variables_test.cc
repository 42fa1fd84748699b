// The exact environment of tasks of each foreign framework, over that of framework generic.
#include <gtest/gtest.h>

#include "framework/framework_environment.h"
#include "job/file/parse.h"
#include "job/spec/framework.h"

namespace shoal::framework {
namespace {

job::Job Parsed(const std::string& text) {
  auto job = job::ParseJob("command: [a]\n" + text, "job.yaml");
  EXPECT_TRUE(job.ok()) << job.status().message();
  return job.ok() ? *job : job::Job{};
}

// Task i of role r (from 1) is at 10.0.r.i, its ports r·1000 + 10·i, and one up for each.
ClusterDescription ClusterOf(const job::Job& job) {
  ClusterDescription cluster;
  for (const job::Role& role : job.roles) {
    const int number = static_cast<int>(cluster.roles.size()) + 1;
    ClusterRole members;
    members.name = role.name;
    for (const job::Port& port : role.ports) members.port_names.push_back(port.name);
    for (int i = 0; i < role.replicas; ++i) {
      ClusterMember member;
      member.host = "10.0." + std::to_string(number) + "." + std::to_string(i);
      for (size_t p = 0; p < role.ports.size(); ++p) {
        member.ports.push_back(static_cast<uint16_t>(number * 1000 + 10 * i + static_cast<int>(p)));
      }
      members.members.push_back(std::move(member));
    }
    cluster.roles.push_back(std::move(members));
  }
  return cluster;
}

TaskContext Task(const std::string& role, int index) {
  TaskContext task;
  task.job_id = "mnist-1";
  task.role = role;
  task.index = index;
  task.attempt = 2;
  return task;
}

// The variables that the framework adds to the environment of the same task in framework generic.
Environment Added(const job::Job& job, const ClusterDescription& cluster, const TaskContext& task) {
  auto env = RenderEnvironment(job, cluster, task);
  EXPECT_TRUE(env.ok()) << env.status().message();
  job::Job generic = job;
  generic.framework = job::Framework::kGeneric;
  const auto common = RenderEnvironment(generic, cluster, task);
  EXPECT_TRUE(common.ok());
  if (!env.ok() || !common.ok()) return {};
  for (const auto& [name, value] : *common) {
    EXPECT_EQ((*env)[name], value) << name;
    env->erase(name);
  }
  return *env;
}

Environment Added(const job::Job& job, const std::string& role, int index) {
  return Added(job, ClusterOf(job), Task(role, index));
}

TEST(Tensorflow, ChiefWorkersAndServersInIndexOrder) {
  const job::Job job =
      Parsed("framework: tensorflow\nroles: {ps: 2, worker: 3, chief: 1, board: 1}\n");
  const std::string cluster = R"({"cluster":{"chief":["10.0.3.0:3000"],)"
                              R"("worker":["10.0.2.0:2000","10.0.2.1:2010","10.0.2.2:2020"],)"
                              R"("ps":["10.0.1.0:1000","10.0.1.1:1010"]},)";
  EXPECT_EQ(
      Added(job, "worker", 2),
      (Environment{
          {"TF_CONFIG", cluster + R"("task":{"type":"worker","index":2},"environment":"cloud"})"},
          {"TF_GRPC_REUSE_PORT", "1"},
      }));
  EXPECT_EQ(Added(job, "chief", 0)["TF_CONFIG"],
            cluster + R"("task":{"type":"chief","index":0},"environment":"cloud"})");
  EXPECT_EQ(Added(job, "board", 0), Environment{});
}

TEST(Tensorflow, OnlyTheEvaluatorSeesTheEvaluator) {
  const job::Job job = Parsed("framework: tensorflow\nroles: {master: 1, evaluator: 1}\n");
  EXPECT_EQ(Added(job, "master", 0)["TF_CONFIG"],
            R"({"cluster":{"master":["10.0.1.0:1000"]},)"
            R"("task":{"type":"master","index":0},"environment":"cloud"})");
  EXPECT_EQ(Added(job, "evaluator", 0)["TF_CONFIG"],
            R"({"cluster":{"master":["10.0.1.0:1000"],"evaluator":["10.0.2.0:2000"]},)"
            R"("task":{"type":"evaluator","index":0},"environment":"cloud"})");
}

TEST(Tensorflow, OneTaskIsNoCluster) {
  const job::Job job = Parsed("framework: tensorflow\nroles: {worker: 1, board: 3}\n");
  EXPECT_EQ(Added(job, "worker", 0), (Environment{{"TF_GRPC_REUSE_PORT", "1"}}));
}

TEST(Tensorflow, DynamicWorkersSeeThemselvesAndTheServers) {
  const job::Job job =
      Parsed("framework: tensorflow\nroles: {ps: 2, worker: {replicas: 3, min: 1}}\n");
  ClusterDescription cluster = ClusterOf(job);
  EXPECT_EQ(Added(job, cluster, Task("worker", 1))["TF_CONFIG"],
            R"({"cluster":{"worker":{"1":"10.0.2.1:2010"},)"
            R"("ps":["10.0.1.0:1000","10.0.1.1:1010"]},"task":{"type":"worker","index":1}})");
  EXPECT_EQ(Added(job, cluster, Task("ps", 1))["TF_CONFIG"],
            R"({"cluster":{"worker":{},"ps":{"1":"10.0.1.1:1010"}},)"
            R"("task":{"type":"ps","index":1}})");
  const job::Job led =
      Parsed("framework: tensorflow\nroles: {chief: 1, worker: {replicas: 3, min: 1}}\n");
  cluster = ClusterOf(led);
  cluster.roles[1].members[1] = ClusterMember{};
  EXPECT_EQ(Added(led, cluster, Task("chief", 0))["TF_CONFIG"],
            R"({"cluster":{"chief":["10.0.1.0:1000"],)"
            R"("worker":{"0":"10.0.2.0:2000","2":"10.0.2.2:2020"}},)"
            R"("task":{"type":"chief","index":0}})");
}

TEST(Tensorflow, ThousandsOfTasksThatFitNoVariableAreRefused) {
  const job::Job job = Parsed("framework: tensorflow\nroles: {worker: 9000}\n");
  const auto env = RenderEnvironment(job, ClusterOf(job), Task("worker", 0));
  EXPECT_EQ(env.status().code(), Code::kResourceExhausted);
  EXPECT_NE(env.status().message().find("TF_CONFIG"), std::string::npos);
}

TEST(Pytorch, MasterIsRankZeroAndWorkersFollow) {
  const job::Job job = Parsed(
      "framework: pytorch\nroles: {worker: {replicas: 2, processes: 4}, master: {processes: 2}, "
      "board: 1}\nsuccess: {all: [worker, master]}\n");
  EXPECT_EQ(Added(job, "worker", 1), (Environment{
                                         {"GROUP_RANK", "2"},
                                         {"GROUP_WORLD_SIZE", "3"},
                                         {"LOCAL_RANK", "0"},
                                         {"LOCAL_WORLD_SIZE", "4"},
                                         {"MASTER_ADDR", "10.0.2.0"},
                                         {"MASTER_PORT", "2000"},
                                         {"NCCL_ASYNC_ERROR_HANDLING", "1"},
                                         {"OMP_NUM_THREADS", "1"},
                                         {"PET_MASTER_ADDR", "10.0.2.0"},
                                         {"PET_MASTER_PORT", "2000"},
                                         {"PET_NNODES", "3"},
                                         {"PET_NODE_RANK", "2"},
                                         {"PET_NPROC_PER_NODE", "4"},
                                         {"PET_RDZV_ENDPOINT", "10.0.2.0:2000"},
                                         {"RANK", "6"},
                                         {"ROLE_NAME", "worker"},
                                         {"ROLE_RANK", "4"},
                                         {"ROLE_WORLD_SIZE", "8"},
                                         {"TORCHELASTIC_MAX_RESTARTS", "3"},
                                         {"TORCHELASTIC_RESTART_COUNT", "1"},
                                         {"TORCHELASTIC_RUN_ID", "mnist-1"},
                                         {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                                         {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
                                         {"WORLD_SIZE", "10"},
                                     }));
  EXPECT_EQ(Added(job, "master", 0)["RANK"], "0");
  EXPECT_EQ(Added(job, "board", 0), Environment{});
}

TEST(Pytorch, EveryProcessOfATaskHasItsRank) {
  const job::Job job =
      Parsed("framework: pytorch\nroles: {master: 1, worker: {replicas: 2, processes: 2}}\n");
  const ClusterDescription cluster = ClusterOf(job);
  const auto env = RenderEnvironment(job, cluster, Task("worker", 1));
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->at("RANK"), "3");
  const auto processes = RenderProcesses(job, cluster, Task("worker", 1), *env);
  ASSERT_TRUE(processes.ok());
  EXPECT_EQ(
      *processes,
      (std::vector<Environment>{
          {},
          {{"LOCAL_RANK", "1"}, {"RANK", "4"}, {"ROLE_RANK", "3"}, {"SHOAL_LOCAL_RANK", "1"}}}));
}

TEST(Pytorch, TorchrunInsideATaskFindsItsNodesAndItsProcessesAreCounted) {
  const job::Job job = Parsed(
      "framework: pytorch\nenv: {PET_NPROC_PER_NODE: \"4\"}\nroles: {master: 1, worker: 2}\n");
  Environment env = Added(job, "worker", 1);
  EXPECT_EQ(env["PET_NNODES"], "3");
  EXPECT_EQ(env["PET_NODE_RANK"], "2");
  EXPECT_EQ(env["PET_MASTER_ADDR"], env["MASTER_ADDR"]);
  EXPECT_EQ(env["PET_MASTER_PORT"], env["MASTER_PORT"]);
  EXPECT_EQ(env["WORLD_SIZE"], "12");  // of processes
  EXPECT_EQ(env["RANK"], "2");         // of tasks
  const job::Job automatic = Parsed(
      "framework: pytorch\nenv: {PET_NPROC_PER_NODE: auto}\nroles: {master: 1, worker: 2}\n");
  EXPECT_EQ(Added(automatic, "worker", 1)["WORLD_SIZE"], "3");
}

TEST(Pytorch, RanksHaveNoGapsWhereTasksAreMissing) {
  const job::Job job = Parsed("framework: pytorch\nroles: {trainer: {replicas: 4, min: 2}}\n");
  ClusterDescription cluster = ClusterOf(job);
  cluster.roles[0].members[0] = ClusterMember{};
  cluster.roles[0].members[2] = ClusterMember{};
  Environment env = Added(job, cluster, Task("trainer", 3));
  EXPECT_EQ(env["RANK"], "1");
  EXPECT_EQ(env["WORLD_SIZE"], "2");
  EXPECT_EQ(env["GROUP_RANK"], "1");
  EXPECT_EQ(env["MASTER_ADDR"], "10.0.1.1");
  EXPECT_EQ(env["MASTER_PORT"], "1010");
  EXPECT_FALSE(env.contains("OMP_NUM_THREADS"));
}

TEST(Jax, ProcessesMeetAtTheFirst) {
  const job::Job job = Parsed("framework: jax\nroles: {worker: {replicas: 2, processes: 2}}\n");
  EXPECT_EQ(Added(job, "worker", 1), (Environment{
                                         {"COORDINATOR_ADDRESS", "10.0.1.0"},
                                         {"COORDINATOR_PORT", "1000"},
                                         {"JAX_COORDINATOR_ADDRESS", "10.0.1.0:1000"},
                                         {"JAX_NUM_PROCESSES", "4"},
                                         {"JAX_PROCESS_ID", "2"},
                                         {"NUM_PROCESSES", "4"},
                                         {"PROCESS_ID", "2"},
                                         {"PYTHONUNBUFFERED", "1"},
                                     }));
  const ClusterDescription cluster = ClusterOf(job);
  const auto env = RenderEnvironment(job, cluster, Task("worker", 1));
  ASSERT_TRUE(env.ok());
  const auto processes = RenderProcesses(job, cluster, Task("worker", 1), *env);
  ASSERT_TRUE(processes.ok());
  EXPECT_EQ((*processes)[1],
            (Environment{{"JAX_PROCESS_ID", "3"}, {"PROCESS_ID", "3"}, {"SHOAL_LOCAL_RANK", "1"}}));
}

TEST(Paddle, TrainersMeetAtTheFirst) {
  const job::Job job = Parsed("framework: paddle\nroles: {worker: {replicas: 2}}\n");
  EXPECT_EQ(Added(job, "worker", 1),
            (Environment{
                {"PADDLE_CURRENT_ENDPOINT", "10.0.1.1:1010"},
                {"PADDLE_JOB_ID", job.name},
                {"PADDLE_MASTER", "10.0.1.0:1000"},
                {"PADDLE_NNODES", "2"},
                {"PADDLE_TRAINERS_NUM", "2"},
                {"PADDLE_TRAINER_ENDPOINTS", "10.0.1.0:1000,10.0.1.1:1010"},
                {"PADDLE_TRAINER_ID", "1"},
                {"PYTHONUNBUFFERED", "1"},
            }));
  const job::Job servers = Parsed("framework: paddle\nroles: {master: 1, worker: 2}\n");
  EXPECT_EQ(Added(servers, "master", 0)["PADDLE_SERVER_NUM"], "1");
  Environment worker = Added(servers, "worker", 1);
  EXPECT_EQ(worker["PADDLE_TRAINER_NUM"], "1");
  EXPECT_EQ(worker["PADDLE_NNODES"], "3");
  EXPECT_EQ(worker["PADDLE_MASTER"], "10.0.1.0:1000");
  EXPECT_FALSE(worker.contains("PADDLE_TRAINER_ENDPOINTS"));
}

TEST(PsLite, SchedulerIsATaskOfTheJob) {
  const job::Job job = Parsed("framework: ps-lite\nroles: {server: 2, worker: 3, board: 1}\n");
  ASSERT_EQ(job.roles.front().name, "scheduler");
  EXPECT_EQ(Added(job, "worker", 1), (Environment{
                                         {"DMLC_NODE_HOST", "10.0.3.1"},
                                         {"DMLC_NUM_SERVER", "2"},
                                         {"DMLC_NUM_WORKER", "3"},
                                         {"DMLC_PS_ROOT_PORT", "1000"},
                                         {"DMLC_PS_ROOT_URI", "10.0.1.0"},
                                         {"DMLC_ROLE", "worker"},
                                         {"PORT", "3010"},
                                         {"PS_HEARTBEAT_INTERVAL", "1"},
                                         {"PS_HEARTBEAT_TIMEOUT", "5"},
                                     }));
  EXPECT_EQ(Added(job, "scheduler", 0)["DMLC_ROLE"], "scheduler");
  EXPECT_EQ(Added(job, "server", 1)["PORT"], "2010");
  EXPECT_EQ(Added(job, "board", 0), Environment{});
}

TEST(Spark, TheWorkersOwnProcessHasRoom) {
  const auto worker = [](const std::string& memory) {
    const job::Job job = Parsed(
        "framework: spark\nroles: {driver: 1, worker: {resources: {memory: " + memory + "}}}\n");
    Environment env = Added(job, "worker", 0);
    return env["SPARK_WORKER_MEMORY"] + " " + env["SPARK_DAEMON_MEMORY"] + " " +
           Added(job, "driver", 0)["SPARK_EXECUTOR_MEMORY"];
  };
  EXPECT_EQ(worker("8Gi"), "7168m 512m ");
  EXPECT_EQ(worker("2Gi"), "1024m 512m ");
  EXPECT_EQ(worker("1Gi"), "512m 256m 512m");
  EXPECT_EQ(worker("640Mi"), "480m 80m 480m");
}

TEST(Spark, AClusterInsideTheJob) {
  const job::Job job = Parsed(
      "framework: spark\nroles: {worker: {replicas: 2, ports: [rpc, web], resources: {cpu: 1.5, "
      "memory: 1Gi}}, driver: 1}\n");
  ASSERT_EQ(job.roles.front().name, "master");
  EXPECT_EQ(Added(job, "worker", 1), (Environment{
                                         {"MASTER", "spark://10.0.1.0:1000"},
                                         {"SPARK_DAEMON_MEMORY", "256m"},
                                         {"SPARK_LOCAL_IP", "10.0.2.1"},
                                         {"SPARK_WORKER_CORES", "1"},
                                         {"SPARK_WORKER_MEMORY", "512m"},
                                         {"SPARK_WORKER_PORT", "2010"},
                                         {"SPARK_WORKER_WEBUI_PORT", "2011"},
                                     }));
  EXPECT_EQ(Added(job, "master", 0), (Environment{
                                         {"MASTER", "spark://10.0.1.0:1000"},
                                         {"SPARK_LOCAL_IP", "10.0.1.0"},
                                         {"SPARK_MASTER_HOST", "10.0.1.0"},
                                         {"SPARK_MASTER_PORT", "1000"},
                                     }));
  EXPECT_EQ(Added(job, "driver", 0), (Environment{
                                         {"MASTER", "spark://10.0.1.0:1000"},
                                         {"SPARK_EXECUTOR_MEMORY", "512m"},
                                         {"SPARK_LOCAL_IP", "10.0.3.0"},
                                     }));
}

TEST(Rabit, WorkersFindTheirTracker) {
  const job::Job job = Parsed("framework: rabit\nroles: {worker: {replicas: 3, processes: 2}}\n");
  EXPECT_EQ(Added(job, "tracker", 0), (Environment{
                                          {"DMLC_TRACKER_URI", "10.0.1.0"},
                                          {"DMLC_TRACKER_PORT", "1000"},
                                          {"DMLC_NUM_WORKER", "6"},
                                          {"DMLC_NUM_SERVER", "0"},
                                      }));
  EXPECT_EQ(Added(job, "worker", 1), (Environment{
                                         {"DMLC_TRACKER_URI", "10.0.1.0"},
                                         {"DMLC_TRACKER_PORT", "1000"},
                                         {"DMLC_NUM_WORKER", "6"},
                                         {"DMLC_NUM_SERVER", "0"},
                                         {"DMLC_ROLE", "worker"},
                                         {"DMLC_TASK_ID", "2"},
                                         {"DMLC_NUM_ATTEMPT", "1"},
                                     }));
  const ClusterDescription cluster = ClusterOf(job);
  const auto env = RenderEnvironment(job, cluster, Task("worker", 1));
  const auto processes = RenderProcesses(job, cluster, Task("worker", 1), *env);
  ASSERT_TRUE(processes.ok());
  EXPECT_EQ(processes->at(1), (Environment{{"DMLC_TASK_ID", "3"}, {"SHOAL_LOCAL_RANK", "1"}}));
}

const Environment kReach = {
    {"OMPI_MCA_plm", "rsh"},
    {"OMPI_MCA_plm_rsh_no_tree_spawn", "1"},
    {"OMPI_MCA_orte_leave_session_attached", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"PRTE_MCA_plm", "ssh"},
    {"PRTE_MCA_plm_ssh_no_tree_spawn", "1"},
    {"PRTE_MCA_prte_leave_session_attached", "1"},
    {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
    {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
    {"HYDRA_LAUNCHER", "ssh"},
    {"HYDRA_ENV", "none"},
    {"I_MPI_HYDRA_BOOTSTRAP", "ssh"},
};

TEST(Mpi, TheLauncherFindsHostsAndSlots) {
  const job::Job job = Parsed("framework: mpi\nroles: {worker: {replicas: 2, processes: 3}}\n");
  Environment launcher = kReach;
  launcher["SHOAL_MPI_HOSTS"] = "worker-0:3 worker-1:3";
  EXPECT_EQ(Added(job, "launcher", 0), launcher);
  EXPECT_EQ(Added(job, "worker", 1), (Environment{{"SHOAL_MPI_HOST", "0.0.0.0"}}));
  // mpirun starts them.
  const ClusterDescription cluster = ClusterOf(job);
  const auto env = RenderEnvironment(job, cluster, Task("worker", 1));
  const auto processes = RenderProcesses(job, cluster, Task("worker", 1), *env);
  ASSERT_TRUE(processes.ok());
  EXPECT_EQ(*processes, std::vector<Environment>(1));
}

TEST(Mpi, WorkersOfOneMachineShareItsCoresAndStayOnIt) {
  const job::Job job = Parsed(
      "framework: mpi\nenv: {HYDRA_IFACE: eth7}\nroles: {worker: {replicas: 3, min: 1}, web: 1}\n");
  ClusterDescription cluster = ClusterOf(job);
  for (ClusterRole& role : cluster.roles) {
    for (ClusterMember& member : role.members) member.host = "127.0.0.1";
  }
  cluster.roles[1].members[1].host = "";  // not there
  Environment launcher = kReach;
  launcher.insert({{"SHOAL_MPI_HOSTS", "worker-0:1 worker-2:1"},
                   {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                   {"OMPI_MCA_mpi_yield_when_idle", "1"},
                   {"PRTE_MCA_hwloc_default_binding_policy", "none"},
                   {"I_MPI_PIN", "off"},
                   {"I_MPI_HYDRA_IFACE", "lo"},
                   {"OMPI_MCA_oob_tcp_if_include", "127.0.0.0/8"},
                   {"OMPI_MCA_btl_tcp_if_include", "127.0.0.0/8"}});
  EXPECT_EQ(Added(job, cluster, Task("launcher", 0)), launcher);
  EXPECT_EQ(Added(job, cluster, Task("worker", 2)), (Environment{{"SHOAL_MPI_HOST", "127.0.0.1"},
                                                                 {"UCX_NET_DEVICES", "lo"},
                                                                 {"FI_TCP_IFACE", "lo"}}));
  EXPECT_EQ(Added(job, cluster, Task("web", 0)), Environment());
}

TEST(Horovod, RanksFindTheirGroupsAndTheStore) {
  const job::Job job = Parsed(
      "framework: horovod\nroles: {chief: {replicas: 1, processes: 3},"
      " worker: {replicas: 2, processes: 2}, board: {follows: worker}}\n");
  EXPECT_EQ(Added(job, "rendezvous", 0),
            (Environment{{"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.1.0"},
                         {"HOROVOD_GLOO_RENDEZVOUS_PORT", "1000"},
                         {"SHOAL_HOROVOD_HOSTS", "chief-0:3 worker-0:2 worker-1:2"}}));
  EXPECT_EQ(Added(job, "board", 0), Environment());
  EXPECT_EQ(Added(job, "worker", 1), (Environment{
                                         {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.1.0"},
                                         {"HOROVOD_GLOO_RENDEZVOUS_PORT", "1000"},
                                         {"HOROVOD_CONTROLLER", "gloo"},
                                         {"HOROVOD_CPU_OPERATIONS", "gloo"},
                                         {"HOROVOD_HOSTNAME", "worker-1"},
                                         {"HOROVOD_RANK", "5"},
                                         {"HOROVOD_SIZE", "7"},
                                         {"HOROVOD_LOCAL_RANK", "0"},
                                         {"HOROVOD_LOCAL_SIZE", "2"},
                                         {"HOROVOD_CROSS_RANK", "2"},
                                         {"HOROVOD_CROSS_SIZE", "3"},
                                         {"OMP_NUM_THREADS", "1"},
                                     }));
  const ClusterDescription cluster = ClusterOf(job);
  const auto env = RenderEnvironment(job, cluster, Task("chief", 0));
  const auto processes = RenderProcesses(job, cluster, Task("chief", 0), *env);
  ASSERT_TRUE(processes.ok());
  EXPECT_EQ(processes->at(2), (Environment{{"HOROVOD_RANK", "2"},
                                           {"HOROVOD_LOCAL_RANK", "2"},
                                           {"HOROVOD_CROSS_SIZE", "1"},
                                           {"SHOAL_LOCAL_RANK", "2"}}));
}

TEST(Frameworks, AJobsOwnValueCountsWhereOursIsADefault) {
  const job::Job job = Parsed(
      "framework: ps-lite\nenv: {PS_HEARTBEAT_TIMEOUT: \"60\", DMLC_NODE_HOST: me}\n"
      "roles: {server: 1, worker: 1}\n");
  const auto env = RenderEnvironment(job, ClusterOf(job), Task("worker", 0));
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->at("PS_HEARTBEAT_TIMEOUT"), "60");
  EXPECT_EQ(env->at("DMLC_NODE_HOST"), "me");
}

// Job files cannot override variables that depend on the cluster: the parser's lists cover them
// all.
TEST(Frameworks, JobFilesCannotSetRenderedVariables) {
  struct Case {
    const char* text;
    std::vector<std::string> defaults;  // may be set
  };
  const Case cases[] = {
      {"framework: tensorflow\nroles: {ps: 1, worker: 2}\n", {"TF_GRPC_REUSE_PORT"}},
      {"framework: pytorch\nroles: {worker: {replicas: 2, processes: 2}}\n",
       {"NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "OMP_NUM_THREADS",
        "PET_NPROC_PER_NODE", "PET_RDZV_ENDPOINT"}},
      {"framework: ps-lite\nroles: {server: 1, worker: 2}\n",
       {"DMLC_NODE_HOST", "PS_HEARTBEAT_INTERVAL", "PS_HEARTBEAT_TIMEOUT"}},
      {"framework: spark\nroles: {driver: 1, worker: {replicas: 2, resources: {cpu: 2, memory: "
       "1Gi}}}\n",
       {"SPARK_LOCAL_IP", "SPARK_WORKER_CORES", "SPARK_WORKER_MEMORY", "SPARK_DAEMON_MEMORY"}},
      {"framework: rabit\nroles: {worker: 2}\n", {}},
  };
  for (const Case& one : cases) {
    const job::Job job = Parsed(one.text);
    const Environment added = Added(job, "worker", 1);
    EXPECT_GT(added.size(), one.defaults.size());
    for (const auto& [name, value] : added) {
      const bool may =
          std::find(one.defaults.begin(), one.defaults.end(), name) != one.defaults.end();
      const auto again =
          job::ParseJob("command: [a]\nenv: {" + name + ": x}\n" + one.text, "job.yaml");
      EXPECT_EQ(again.ok(), may) << name;
      if (may) {
        auto env = RenderEnvironment(*again, ClusterOf(*again), Task("worker", 1));
        EXPECT_EQ(env->at(name), "x");
      }
    }
  }
}

TEST(Frameworks, AMissingPortIsExplained) {
  job::Job job = Parsed("framework: tensorflow\nroles: {ps: 1, worker: 2}\n");
  job.roles[0].ports.clear();
  const auto env = RenderEnvironment(job, ClusterOf(job), Task("worker", 0));
  EXPECT_EQ(env.status().message(),
            "role ps has no port, and framework tensorflow needs one: leave out its `ports`, or "
            "name one");
}

// ---- What a job file itself makes of the cluster
// --------------------------------------------------

TEST(References, AreFilledInFromTheCluster) {
  const job::Job job = Parsed(
      "env: {HOSTS: 'a={{shoal.hosts.worker}};', N: '{{shoal.count.worker}}{{shoal.index}}'}\n"
      "roles:\n"
      "  worker: {replicas: 2, ports: [a, b], env: {ME: '{{shoal.host}}', X: '{{x}} $(Y) {{'}}\n"
      "  ps: {env: {AT: '{{shoal.addresses.worker}}'}}\n");
  const auto worker = RenderEnvironment(job, ClusterOf(job), Task("worker", 1));
  ASSERT_TRUE(worker.ok()) << worker.status().message();
  EXPECT_EQ(worker->at("HOSTS"), "a=10.0.1.0,10.0.1.1;");
  EXPECT_EQ(worker->at("N"), "21");
  EXPECT_EQ(worker->at("ME"), "10.0.1.1");
  EXPECT_EQ(worker->at("X"), "{{x}} $(Y) {{");
  ClusterDescription cluster = ClusterOf(job);
  cluster.roles[0].members[0] = {};  // an elastic one that is not there
  const auto ps = RenderEnvironment(job, cluster, Task("ps", 0));
  ASSERT_TRUE(ps.ok());
  EXPECT_EQ(ps->at("AT"), "10.0.1.1:1010");
}

}  // namespace
}  // namespace shoal::framework
