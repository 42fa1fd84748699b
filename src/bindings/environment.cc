#include "bindings/environment.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "base/mutex.h"

namespace shoal::bindings {
namespace {

constexpr size_t kMaxClusterBytes = 64u << 20;
constexpr size_t kMaxTokenBytes = 4096;

Result<int> NumberIn(const Environment& env, const std::string& name, int limit) {
  const std::string text = EnvironmentVariable(env, name);
  if (text.empty()) return 0;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= limit)
    return value;
  return InvalidArgument(
      fmt::format("{}: got {}, expected a number from 0 to {}", name, text, limit));
}

Result<framework::ClusterDescription> ClusterOf(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  return framework::ClusterFromJson(object);
}

Result<std::string> ClusterText(const Environment& env) {
  const std::string file = EnvironmentVariable(env, "SHOAL_CLUSTER_FILE");
  const std::string text = EnvironmentVariable(env, "SHOAL_CLUSTER");
  if (!file.empty()) {
    Result<std::string> bytes = ReadFile(file, kMaxClusterBytes);
    if (bytes.ok() || text.empty()) return bytes;
  }
  if (!text.empty()) return text;
  return FailedPrecondition(
      "this is no task of a Shoal job: SHOAL_CLUSTER and SHOAL_CLUSTER_FILE are not set; start it "
      "with `shoal run`, or name servers and token");
}

}  // namespace

Environment ProcessEnvironment() {
  Environment env;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    if (text.starts_with("SHOAL_") || text.starts_with("DMLC_"))
      env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return env;
}

std::string EnvironmentVariable(const Environment& env, const std::string& name) {
  const auto found = env.find(name);
  return found == env.end() ? "" : found->second;
}

Result<std::string> ReadToken(const std::string& file) {
  TRY_ASSIGN(std::string token, ReadFile(file, kMaxTokenBytes));
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  if (!token.empty()) return token;
  return InvalidArgument(fmt::format(
      "SHOAL_TOKEN_FILE: {} is empty, expected the job's secret: one line, the same for all nodes, "
      "such as `openssl rand -hex 32` writes",
      file));
}

Result<TaskIdentity> ReadTaskIdentity(const Environment& env) {
  TaskIdentity task;
  TRY_ASSIGN(const std::string text, ClusterText(env));
  auto cluster = ClusterOf(text);
  TRY(cluster.status().With("cluster description"));
  task.cluster = std::move(*cluster);
  task.role = EnvironmentVariable(env, "SHOAL_ROLE");
  TRY_ASSIGN(task.index, NumberIn(env, "SHOAL_INDEX", INT32_MAX));
  TRY_ASSIGN(const int port, NumberIn(env, "SHOAL_PORT", UINT16_MAX));
  task.port = static_cast<uint16_t>(port);
  const framework::ClusterRole* const own = task.cluster.FindRole(task.role);
  if (own == nullptr || static_cast<size_t>(task.index) >= own->members.size()) {
    return InvalidArgument(
        fmt::format("SHOAL_ROLE and SHOAL_INDEX: there is no task {}-{}", task.role, task.index));
  }
  task.host = own->members[static_cast<size_t>(task.index)].host;
  const std::string token_file = EnvironmentVariable(env, "SHOAL_TOKEN_FILE");
  if (token_file.empty()) return InvalidArgument("SHOAL_TOKEN_FILE is missing");
  TRY_ASSIGN(task.token, ReadToken(token_file));
  return task;
}

Result<std::vector<std::string>> AddressesOf(const framework::ClusterDescription& cluster,
                                             std::string_view role) {
  const framework::ClusterRole* const servers = cluster.FindRole(role);
  if (servers == nullptr || servers->members.empty()) {
    std::string names;
    for (const framework::ClusterRole& one : cluster.roles)
      names += (names.empty() ? "" : ", ") + one.name;
    return FailedPrecondition(fmt::format(
        "this job has no role {} that would be its parameter servers; it has {}", role, names));
  }
  std::vector<std::string> addresses;
  for (const framework::ClusterMember& member : servers->members) {
    if (member.ports.empty()) {
      return FailedPrecondition(fmt::format(
          "the role {} has no port to reach it at; add `ports: [ps]` to it in the job file", role));
    }
    addresses.push_back(
        member.host.empty() ? "" : framework::FormatAddress(member.host, member.ports[0]));
  }
  return addresses;
}

int TaskCount(const framework::ClusterDescription& cluster, std::string_view role) {
  const framework::ClusterRole* const found = cluster.FindRole(role);
  return found == nullptr ? 0 : static_cast<int>(found->members.size());
}

struct RoleAddresses::State {
  std::filesystem::path file;
  std::string role;
  Mutex mu;
  std::vector<std::string> now GUARDED_BY(mu);
  int64_t mtime_ns GUARDED_BY(mu) = 0;
  uint64_t inode GUARDED_BY(mu) = 0;
};

RoleAddresses::RoleAddresses(const Environment& env, std::string role,
                             std::vector<std::string> first)
    : state_(std::make_unique<State>()) {
  state_->file = EnvironmentVariable(env, "SHOAL_CLUSTER_FILE");
  state_->role = std::move(role);
  state_->now = std::move(first);
}

RoleAddresses::~RoleAddresses() = default;

std::vector<std::string> RoleAddresses::Current() {
  State& state = *state_;
  const MutexLock lock(state.mu);
  struct stat info = {};
  if (state.file.empty() || stat(state.file.c_str(), &info) != 0) return state.now;
  const int64_t mtime_ns = info.st_mtim.tv_sec * int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
  if (mtime_ns == state.mtime_ns && info.st_ino == state.inode) return state.now;
  const Result<std::string> text = ReadFile(state.file, kMaxClusterBytes);
  if (!text.ok()) return state.now;
  const Result<framework::ClusterDescription> cluster = ClusterOf(*text);
  if (!cluster.ok()) return state.now;
  Result<std::vector<std::string>> addresses = AddressesOf(*cluster, state.role);
  if (!addresses.ok()) return state.now;
  state.now = std::move(*addresses);
  state.mtime_ns = mtime_ns;
  state.inode = info.st_ino;
  return state.now;
}

}  // namespace shoal::bindings
