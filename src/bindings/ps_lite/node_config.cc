#include "bindings/ps_lite/node_config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace shoal::bindings {
namespace {

Result<NodeRole> RoleOf(const std::string& variable, const std::string& name) {
  if (name == "scheduler") return NodeRole::kScheduler;
  if (name == "server") return NodeRole::kServer;
  if (name == "worker") return NodeRole::kWorker;
  return InvalidArgument(
      fmt::format("{}: got '{}', expected scheduler, server or worker", variable, name));
}

Result<int> Need(const Environment& env, const std::string& name, int limit) {
  const std::string text = EnvironmentVariable(env, name);
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= limit)
    return value;
  return InvalidArgument(
      fmt::format("{}: got '{}', expected a number from 0 to {}; start all nodes with DMLC_ROLE, "
                  "DMLC_NUM_WORKER, DMLC_NUM_SERVER, DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT, or as "
                  "a Shoal job with the roles scheduler, server and worker",
                  name, text, limit));
}

bool IsLoopback(const std::string& host) {
  return host.starts_with("127.") || host == "localhost" || host == "::1";
}

// What all nodes of a job that is started on one machine have in common, and other jobs there do
// not: the user, the session (terminal, batch script, service) and what DMLC_… says of the job.
std::string TokenOfSession(const NodeConfig& config) {
  return fmt::format("ps-lite on one machine: user {}, session {}, {}, {} servers, {} workers",
                     ::getuid(), ::getsid(0), config.root, config.servers, config.workers);
}

Result<NodeConfig> SeatInShoal(const Environment& env) {
  TRY_ASSIGN(const TaskIdentity task, ReadTaskIdentity(env));
  NodeConfig config;
  TRY_ASSIGN(config.role, RoleOf("SHOAL_ROLE", task.role));
  config.workers = TaskCount(task.cluster, "worker");
  config.servers = TaskCount(task.cluster, "server");
  TRY_ASSIGN(const std::vector<std::string> scheduler, AddressesOf(task.cluster, "scheduler"));
  config.root = scheduler[0];
  config.host = task.host;
  config.port = task.port;
  config.wanted_rank = task.index;
  config.token = task.token;
  return config;
}

Result<NodeConfig> SeatInDmlc(const Environment& env) {
  NodeConfig config;
  TRY_ASSIGN(config.role, RoleOf("DMLC_ROLE", EnvironmentVariable(env, "DMLC_ROLE")));
  TRY_ASSIGN(config.workers, Need(env, "DMLC_NUM_WORKER", 100'000));
  TRY_ASSIGN(config.servers, Need(env, "DMLC_NUM_SERVER", 65'535));
  TRY_ASSIGN(const int port, Need(env, "DMLC_PS_ROOT_PORT", UINT16_MAX));
  const std::string host = EnvironmentVariable(env, "DMLC_PS_ROOT_URI");
  if (host.empty())
    return InvalidArgument("DMLC_PS_ROOT_URI: missing, expected the scheduler's host");
  config.root = fmt::format("{}:{}", host, port);
  config.host = EnvironmentVariable(env, "DMLC_NODE_HOST");
  if (config.role == NodeRole::kScheduler) {
    config.port = static_cast<uint16_t>(port);
    if (config.host.empty()) config.host = host;
  } else if (const char* own = std::getenv("PORT"); own != nullptr && *own != 0) {
    TRY_ASSIGN(const int number, Need({{"PORT", own}}, "PORT", UINT16_MAX));
    config.port = static_cast<uint16_t>(number);
  }
  if (config.host.empty() && IsLoopback(host)) config.host = "127.0.0.1";
  if (config.host.empty() && config.role == NodeRole::kServer) {
    return InvalidArgument(
        "DMLC_NODE_HOST: missing, expected the address at which others reach this server");
  }
  const std::string token_file = EnvironmentVariable(env, "SHOAL_TOKEN_FILE");
  if (!token_file.empty()) {
    TRY_ASSIGN(config.token, ReadToken(token_file));
  } else if (!IsLoopback(host) || (!config.host.empty() && !IsLoopback(config.host))) {
    return FailedPrecondition(
        "nodes on a network need a secret: put the same one into a file of every node (readable by "
        "its user alone) and name it in SHOAL_TOKEN_FILE");
  } else {
    config.token = TokenOfSession(config);
    config.token_of_session = true;
  }
  return config;
}

}  // namespace

Result<NodeConfig> ReadNodeConfig(const Environment& env) {
  const bool shoal = EnvironmentVariable(env, "DMLC_ROLE").empty() &&
                     !EnvironmentVariable(env, "SHOAL_ROLE").empty();
  TRY_ASSIGN(NodeConfig config, shoal ? SeatInShoal(env) : SeatInDmlc(env));
  const std::string name = "SHOAL_PS_LITE_APP_TIMEOUT";
  if (EnvironmentVariable(env, name).empty()) return config;
  TRY_ASSIGN(const int seconds, Need(env, name, 1'000'000));
  config.app_timeout = std::chrono::seconds(seconds);
  return config;
}

}  // namespace shoal::bindings
