#include "job/spec/framework.h"

#include <algorithm>

namespace shoal::job {
namespace {

struct PortPreset {
  Framework framework;
  std::string_view role;  // empty: every ranked role
  std::string_view port;
};

constexpr PortPreset kPorts[] = {
    {Framework::kTensorflow, "chief", "grpc"},     {Framework::kTensorflow, "master", "grpc"},
    {Framework::kTensorflow, "worker", "grpc"},    {Framework::kTensorflow, "ps", "grpc"},
    {Framework::kTensorflow, "evaluator", "grpc"}, {Framework::kPsLite, "scheduler", "ps"},
    {Framework::kPsLite, "server", "ps"},          {Framework::kPsLite, "worker", "ps"},
    {Framework::kPytorch, "", "master"},           {Framework::kSpark, "master", "rpc"},
    {Framework::kSpark, "worker", "rpc"},          {Framework::kMpi, "worker", "mpi"},
    {Framework::kJax, "", "coordinator"},          {Framework::kPaddle, "", "paddle"},
};

constexpr std::string_view kTensorflowVariables[] = {"TF_CONFIG"};
constexpr std::string_view kPytorchVariables[] = {
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_USE_AGENT_STORE",
    "PET_NNODES",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
};
constexpr std::string_view kPsLiteVariables[] = {
    "DMLC_ROLE",       "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT",
    "DMLC_NUM_SERVER", "DMLC_NUM_WORKER",  "PORT",
};

constexpr std::string_view kSparkVariables[] = {
    "MASTER",
    "SPARK_MASTER_HOST",
    "SPARK_MASTER_PORT",
    "SPARK_WORKER_PORT",
};

constexpr std::string_view kRabitVariables[] = {
    "DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_NUM_WORKER",  "DMLC_NUM_SERVER",
    "DMLC_ROLE",        "DMLC_TASK_ID",      "DMLC_NUM_ATTEMPT",
};

constexpr std::string_view kHorovodVariables[] = {
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",
    "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE",
    "HOROVOD_HOSTNAME",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR",
    "HOROVOD_GLOO_RENDEZVOUS_PORT",
    "HOROVOD_CONTROLLER",
    "HOROVOD_CPU_OPERATIONS",
    "SHOAL_HOROVOD_HOSTS",
};

constexpr std::string_view kJaxVariables[] = {
    "COORDINATOR_ADDRESS",     "COORDINATOR_PORT",  "NUM_PROCESSES",  "PROCESS_ID",
    "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID",
};

constexpr std::string_view kPaddleVariables[] = {
    "PADDLE_MASTER",           "PADDLE_NNODES",      "PADDLE_JOB_ID",
    "PADDLE_SERVER_NUM",       "PADDLE_TRAINER_NUM", "PADDLE_TRAINER_ENDPOINTS",
    "PADDLE_CURRENT_ENDPOINT", "PADDLE_TRAINER_ID",  "PADDLE_TRAINERS_NUM",
};

constexpr std::string_view kMpiVariables[] = {
    "SHOAL_MPI_HOSTS",          "SHOAL_MPI_HOST", "SHOAL_MPI_HOSTFILE",
    "SHOAL_MPI_HYDRA_HOSTFILE", "SHOAL_MPI_BIN",
};

template <size_t n>
bool IsIn(const std::string_view (&list)[n], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

std::vector<std::string> RankedRoles(const Job& job) {
  std::vector<std::string> ranked;
  for (const char* name : {"master", "chief", "worker"}) {
    if (job.FindRole(name) != nullptr) ranked.emplace_back(name);
  }
  if (!ranked.empty()) return ranked;
  for (const Role& role : job.roles) {
    if (role.follows.empty()) ranked.push_back(role.name);
  }
  return ranked;
}

bool CountsRanks(Framework framework) {
  return framework == Framework::kPytorch || framework == Framework::kHorovod ||
         framework == Framework::kRabit || framework == Framework::kJax ||
         framework == Framework::kPaddle;
}

bool RestartsAllTasks(Framework framework) {
  return CountsRanks(framework) || framework == Framework::kMpi || framework == Framework::kPsLite;
}

bool IsSetByFramework(Framework framework, std::string_view variable) {
  switch (framework) {
    case Framework::kTensorflow:
      return IsIn(kTensorflowVariables, variable);
    case Framework::kPytorch:
      return IsIn(kPytorchVariables, variable);
    case Framework::kPsLite:
      return IsIn(kPsLiteVariables, variable);
    case Framework::kSpark:
      return IsIn(kSparkVariables, variable);
    case Framework::kRabit:
      return IsIn(kRabitVariables, variable);
    case Framework::kHorovod:
      return IsIn(kHorovodVariables, variable);
    case Framework::kJax:
      return IsIn(kJaxVariables, variable);
    case Framework::kPaddle:
      return IsIn(kPaddleVariables, variable);
    case Framework::kMpi:
      return IsIn(kMpiVariables, variable);
    default:
      return false;
  }
}

std::string_view PresetPort(Framework framework, std::string_view role) {
  for (const PortPreset& preset : kPorts) {
    if (preset.framework == framework && (preset.role == role || preset.role.empty())) {
      return preset.port;
    }
  }
  return {};
}

}  // namespace shoal::job
