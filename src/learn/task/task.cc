#include "learn/task/task.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "host/process/process_usage.h"
#include "job/execution/job_dir.h"

namespace shoal::learn {
namespace {

constexpr int kAttemptBits = 20;
constexpr size_t kMaxClusterBytes = 64u << 20;
constexpr size_t kMaxTokenBytes = 4096;

std::string Variable(const Environment& env, const std::string& name) {
  const auto found = env.find(name);
  return found == env.end() ? "" : found->second;
}

Result<int> NumberIn(const Environment& env, const std::string& name, int other) {
  const std::string text = Variable(env, name);
  if (text.empty()) return other;
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return InvalidArgument(fmt::format("{}: got {}, expected a number", name, text));
  return value;
}

Result<double> CpusIn(const Environment& env) {
  const std::string text = Variable(env, "SHOAL_CPUS");
  if (text.empty()) return 0.0;
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value > 0) return value;
  return InvalidArgument(fmt::format("SHOAL_CPUS: got {}, expected a number above 0", text));
}

Result<std::vector<std::string>> AddressesOf(const json::object& cluster, const char* role) {
  std::vector<std::string> addresses;
  const json::value* const roles = cluster.if_contains("roles");
  if (roles == nullptr || !roles->is_object())
    return InvalidArgument("the cluster description has no roles");
  const json::value* const members = roles->as_object().if_contains(role);
  if (members == nullptr) return addresses;
  if (!members->is_array()) return InvalidArgument("a role of the cluster description is no list");
  for (const json::value& address : members->as_array()) {
    if (!address.is_string()) return InvalidArgument("an address of the cluster is no string");
    // ":0": an absent task of an elastic role.
    const std::string_view text = address.as_string();
    addresses.emplace_back(text == ":0" ? std::string_view() : text);
  }
  return addresses;
}

std::string HostOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return address;
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

// The index of the value of `name` among `choices`; the first if absent.
Result<size_t> ChoiceOf(const Environment& env, std::string_view name,
                        std::initializer_list<std::string_view> choices) {
  const std::string text = Variable(env, "SHOAL_LEARN");
  if (text.empty()) return size_t{0};
  TRY_ASSIGN(const json::object learn, ParseJsonObject(text));
  const json::value* const said = learn.if_contains(name);
  if (said == nullptr) return size_t{0};
  const std::string value = said->is_string() ? std::string(said->as_string()) : ToText(*said);
  const auto* const found = std::find(choices.begin(), choices.end(), value);
  if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  return InvalidArgument(
      fmt::format("learn.{}: got {}, expected one of {}", name, value, fmt::join(choices, ", ")));
}

// learn.server_copies.
Result<int> CopiesOf(const Environment& env) {
  TRY_ASSIGN(const size_t more, ChoiceOf(env, "server_copies", {"1", "2"}));
  return static_cast<int>(1 + more);
}

Result<std::string> ClusterText(const Environment& env) {
  const std::string file = Variable(env, "SHOAL_CLUSTER_FILE");
  if (!file.empty()) {
    Result<std::string> text = ReadFile(file, kMaxClusterBytes);
    if (text.ok() || Variable(env, "SHOAL_CLUSTER").empty()) return text;
  }
  const std::string text = Variable(env, "SHOAL_CLUSTER");
  if (!text.empty()) return text;
  return FailedPrecondition(
      "SHOAL_CLUSTER and SHOAL_CLUSTER_FILE are missing: this command is run by Shoal inside a "
      "job; use `shoal train` or `shoal run`");
}

}  // namespace

Result<FileMembers::View> FileMembers::ViewOf(const std::string& text) {
  TRY_ASSIGN(const json::object cluster, ParseJsonObject(text));
  View view;
  view.members.generation = GetIntOr(cluster, "generation", 1);
  view.ending = GetBoolOr(cluster, "ending", false);
  TRY_ASSIGN(view.members.servers, AddressesOf(cluster, "server"));
  TRY_ASSIGN(const std::vector<std::string> workers, AddressesOf(cluster, "worker"));
  view.members.workers = static_cast<int>(workers.size());
  view.workers_there = static_cast<int>(std::count_if(
      workers.begin(), workers.end(), [](const std::string& address) { return !address.empty(); }));
  const json::value* const ended = cluster.if_contains("ended");
  const json::value* const ours =
      ended != nullptr && ended->is_object() ? ended->as_object().if_contains("worker") : nullptr;
  if (ours == nullptr || !ours->is_array()) return view;
  for (const json::value& index : ours->as_array()) {
    if (!index.is_int64() || index.as_int64() < 0 || index.as_int64() >= view.members.workers)
      return InvalidArgument("ended: expected indices of workers");
    view.ended.push_back(static_cast<int>(index.as_int64()));
  }
  return view;
}

Result<std::unique_ptr<FileMembers>> FileMembers::Make(const Environment& env) {
  TRY_ASSIGN(const std::string text, ClusterText(env));
  Result<View> view = ViewOf(text);
  if (!view.ok()) return view.status().With("cluster description");
  TRY_ASSIGN(view->members.replicas, CopiesOf(env));
  return std::unique_ptr<FileMembers>(
      new FileMembers(Variable(env, "SHOAL_CLUSTER_FILE"), std::move(*view)));
}

ps::MemberView FileMembers::Current() {
  const MutexLock lock(mu_);
  Refresh();
  return view_.members;
}

std::vector<int> FileMembers::EndedWorkers() {
  const MutexLock lock(mu_);
  Refresh();
  return view_.ended;
}

bool FileMembers::HasLiveWorkers() {
  const MutexLock lock(mu_);
  Refresh();
  return !view_.ending && static_cast<int>(view_.ended.size()) < view_.workers_there;
}

bool FileMembers::IsJobEnding() {
  const MutexLock lock(mu_);
  Refresh();
  return view_.ending;
}

void FileMembers::Refresh() {
  struct stat info = {};
  if (file_.empty() || stat(file_.c_str(), &info) != 0) return;
  const Stamp stamp{info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec, info.st_ino};
  if (stamp == stamp_) return;
  const Result<std::string> text = ReadFile(file_, kMaxClusterBytes);
  if (!text.ok()) return;
  Result<View> view = ViewOf(*text);
  if (!view.ok()) {
    LogWarning("cluster description {}: {}", file_.string(), view.status().message());
    return;
  }
  stamp_ = stamp;
  view->members.replicas = view_.members.replicas;
  view_ = std::move(*view);
}

Status Task::ReadCluster(const Environment& env) {
  TRY_ASSIGN(const std::string text, ClusterText(env));
  TRY_ASSIGN(const json::object cluster, ParseJsonObject(text));
  TRY_ASSIGN(const std::vector<std::string> server_addresses, AddressesOf(cluster, "server"));
  TRY_ASSIGN(const std::vector<std::string> worker_addresses, AddressesOf(cluster, "worker"));
  servers = static_cast<int>(server_addresses.size());
  // Absent tasks of an elastic role.
  while (servers > 0 && server_addresses[static_cast<size_t>(servers) - 1].empty()) --servers;
  const int64_t generation = std::max<int64_t>(GetIntOr(cluster, "generation", 1), 1);
  life = ((generation - 1) << kAttemptBits) + attempt;
  workers = std::max(1, static_cast<int>(worker_addresses.size()));
  const auto& own = role == "server" ? server_addresses : worker_addresses;
  if (index >= std::max<int>(1, static_cast<int>(own.size()))) {
    return InvalidArgument(
        fmt::format("SHOAL_INDEX: got {}, expected less than {}, the number of "
                    "tasks of role {}",
                    index, own.size(), role));
  }
  if (index < static_cast<int>(own.size()) && !own[static_cast<size_t>(index)].empty())
    host = HostOf(own[static_cast<size_t>(index)]);
  workers_on_this_host = 0;
  for (const std::string& address : worker_addresses)
    workers_on_this_host += HostOf(address) == host;
  workers_on_this_host = std::max(1, workers_on_this_host);
  TRY_ASSIGN(members_, FileMembers::Make(env));
  TRY_ASSIGN(server_copies, CopiesOf(env));
  TRY_ASSIGN(const size_t transport, ChoiceOf(env, "transport", {"auto", "ucx"}));
  ucx = transport == 1;
  TRY_ASSIGN(const size_t cache, ChoiceOf(env, "cache_data", {"auto", "on", "off"}));
  data_cache.keep = static_cast<CacheMode>(cache);
  return Status::Ok();
}

Status Task::ReadDescriptions(const Environment& env) {
  const std::string learn_text = Variable(env, "SHOAL_LEARN");
  TRY_ASSIGN(const json::object learn_json,
             ParseJsonObject(learn_text.empty() ? "{}" : learn_text));
  for (const auto& [name, value] : learn_json) {
    learn[std::string(name)] = {value.is_string() ? std::string(value.as_string()) : ToText(value)};
  }
  const std::string text = Variable(env, "SHOAL_DATA");
  TRY_ASSIGN(const json::value entries, ParseJson(text.empty() ? "[]" : text));
  if (!entries.is_array()) return InvalidArgument("SHOAL_DATA: expected a JSON array");
  for (const json::value& entry : entries.as_array()) {
    const json::value* list =
        entry.is_object() ? entry.as_object().if_contains("sources") : nullptr;
    if (list == nullptr || !list->is_array())
      return InvalidArgument("SHOAL_DATA: expected objects with a list of sources");
    job::DataSource& own = data.emplace_back();
    own.name = GetStringOr(entry.as_object(), "name", "");
    own.format = GetStringOr(entry.as_object(), "format", own.format);
    for (const json::value& source : list->as_array()) {
      if (source.is_string()) own.sources.emplace_back(source.as_string());
    }
    sources.insert(sources.end(), own.sources.begin(), own.sources.end());
  }
  const std::string outputs = Variable(env, "SHOAL_OUTPUTS");
  TRY_ASSIGN(const json::object outputs_json, ParseJsonObject(outputs.empty() ? "{}" : outputs));
  output = GetStringOr(outputs_json, "model", Variable(env, "SHOAL_OUTPUT"));
  const std::string checkpoint = Variable(env, "SHOAL_CHECKPOINT");
  TRY_ASSIGN(const json::object checkpoint_json,
             ParseJsonObject(checkpoint.empty() ? "{}" : checkpoint));
  checkpoint_every = std::chrono::milliseconds(GetIntOr(checkpoint_json, "every_ms", 0));
  checkpoint_keep = static_cast<int>(GetIntOr(checkpoint_json, "keep", 2));
  checkpoint_dir = GetStringOr(checkpoint_json, "directory", "");
  if (checkpoint_dir.empty() && !job_dir.empty())
    checkpoint_dir = job::JobDir(job_dir).checkpoints();
  if (checkpoint_every.count() <= 0) checkpoint_dir.clear();
  return Status::Ok();
}

Result<std::unique_ptr<Task>> Task::Make(std::string role, const Environment& env) {
  TRY_ASSIGN(const int report_fd, NumberIn(env, "SHOAL_REPORT_FD", -1));
  std::unique_ptr<Task> task(new Task(report_fd));
  task->role = std::move(role);
  TRY_ASSIGN(task->index, NumberIn(env, "SHOAL_INDEX", 0));
  TRY_ASSIGN(task->attempt, NumberIn(env, "SHOAL_ATTEMPT", 0));
  TRY_ASSIGN(const int initial_replicas, NumberIn(env, "SHOAL_INITIAL_REPLICAS", 0));
  if (task->role == "server") task->initial_servers = initial_replicas;
  TRY_ASSIGN(task->cpus, CpusIn(env));
  task->cores = host::ReadMachineFacts().cores;
  TRY_ASSIGN(const int port, NumberIn(env, "SHOAL_PORT", 0));
  if (port > UINT16_MAX) return InvalidArgument(fmt::format("SHOAL_PORT: got {}", port));
  task->port = static_cast<uint16_t>(port);
  task->job_dir = Variable(env, "SHOAL_JOB_DIR");
  task->scratch = Variable(env, "SHOAL_SCRATCH");
  if (task->scratch.empty()) task->scratch = std::filesystem::temp_directory_path();
  TRY(task->ReadCluster(env));
  TRY(task->ReadDescriptions(env));
  const std::string token_file = Variable(env, "SHOAL_TOKEN_FILE");
  if (token_file.empty()) return InvalidArgument("SHOAL_TOKEN_FILE is missing");
  TRY_ASSIGN(task->token, ReadFile(token_file, kMaxTokenBytes));
  while (!task->token.empty() && (task->token.back() == '\n' || task->token.back() == '\r'))
    task->token.pop_back();
  return task;
}

// The generation and the attempt never decrease, and one of them grows with every start.
uint32_t Task::takeover_epoch() const {
  constexpr int kMoveBits = 12;
  constexpr int64_t kMost = (int64_t{1} << (31 - kMoveBits)) - 1;
  const int64_t starts = (life >> kAttemptBits) + attempt;
  return static_cast<uint32_t>(std::min(starts, kMost) << kMoveBits);
}

int64_t Task::DefaultThreads() const {
  const double share = cpus > 0 ? std::min(cpus, cores) : cores / workers_on_this_host;
  return std::max<int64_t>(1, static_cast<int64_t>(share));
}

}  // namespace shoal::learn
