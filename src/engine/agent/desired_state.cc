#include "engine/agent/desired_state.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/json.h"
#include "engine/tasks/job_files.h"
#include "engine/tasks/task_json.h"

namespace shoal::engine {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr size_t kMaxFile = 64 << 20;
constexpr size_t kMaxTasks = job::kMaxTasks + 1;
constexpr size_t kMaxLine = 64 << 10;
constexpr size_t kMaxRead = 4 << 20;  // bytes per Read
constexpr int kVersion = 1;
constexpr const char* kEventKinds[] = {"task",   "begun", "time-limit", "requeue",
                                       "closed", "note",  "another"};

Result<int64_t> GetBounded(const json::object& object, const char* field, int64_t least,
                           int64_t most) {
  TRY_ASSIGN(const int64_t value, GetInt(object, field));
  if (value < least || value > most)
    return InvalidArgument(std::string(field) + ": got " + std::to_string(value) + ", expected " +
                           std::to_string(least) + " to " + std::to_string(most));
  return value;
}

Result<milliseconds> GetMillis(const json::object& object, const char* field) {
  constexpr int64_t kLongest = int64_t{365} * 24 * 3600 * 1000;
  TRY_ASSIGN(const int64_t value, GetBounded(object, field, 0, kLongest));
  return milliseconds(value);
}

Result<int> GetCount(const json::object& object, const char* field, int least = 0) {
  TRY_ASSIGN(const int64_t value, GetBounded(object, field, least, INT32_MAX));
  return static_cast<int>(value);
}

json::object EncodeTask(const AgentTask& ordered) {
  json::object object = EncodeDesiredTask(ordered.task);
  object["round"] = ordered.revision;
  object["per_cell"] = ordered.per_cell;
  object["beside"] = ordered.beside;
  if (ordered.component > 0) object["component"] = ordered.component;
  object["cpu"] = ordered.task.resources.cpu;
  if (ordered.task.resources.cpu_request > 0)
    object["cpu_request"] = ordered.task.resources.cpu_request;
  object["memory"] = ordered.task.resources.memory_bytes;
  object["gpu"] = ordered.task.resources.gpu;
  return object;
}

Result<AgentTask> DecodeTask(const json::object& object) {
  AgentTask ordered;
  TRY_ASSIGN(ordered.task, DecodeDesiredTask(object));
  TRY_ASSIGN(ordered.revision, GetCount(object, "round"));
  TRY_ASSIGN(ordered.per_cell, GetCount(object, "per_cell", 1));
  TRY_ASSIGN(ordered.beside, GetBool(object, "beside"));
  if (object.contains("component")) {
    TRY_ASSIGN(ordered.component, GetCount(object, "component"));
  }
  job::Resources& resources = ordered.task.resources;
  TRY_ASSIGN(resources.cpu, GetDouble(object, "cpu"));
  if (object.contains("cpu_request")) {
    TRY_ASSIGN(resources.cpu_request, GetDouble(object, "cpu_request"));
  }
  for (const double cpus : {resources.cpu, resources.cpu_request}) {
    if (!(cpus >= 0 && cpus <= job::kMaxCpus)) return InvalidArgument("cpu: out of range");
  }
  TRY_ASSIGN(resources.memory_bytes, GetBounded(object, "memory", 0, job::kMaxMemoryBytes));
  TRY_ASSIGN(const int64_t gpu, GetBounded(object, "gpu", 0, job::kMaxGpus));
  resources.gpu = static_cast<int>(gpu);
  return ordered;
}

// Decodes the end of a task if there is one.
Result<TaskEnd> DecodeEnd(const json::object& object) {
  TaskEnd end;
  TRY_ASSIGN(const int64_t code, GetBounded(object, "exit", -1, 255));
  TRY_ASSIGN(const int64_t signal, GetBounded(object, "signal", 0, 127));
  end.exit_code = static_cast<int>(code);
  end.signal = static_cast<int>(signal);
  end.out_of_memory = GetBoolOr(object, "oom", false);
  TRY_ASSIGN(end.reason, GetString(object, "reason"));
  return end;
}

}  // namespace

std::string EncodeDesiredState(const DesiredState& orders) {
  json::array tasks;
  for (const AgentTask& task : orders.tasks) tasks.push_back(EncodeTask(task));
  const json::object object{{"version", kVersion},
                            {"job", orders.job_id},
                            {"number", orders.revision},
                            {"stop", orders.stop},
                            {"grace_ms", orders.grace.count()},
                            {"restart_first_ms", orders.restart.first.count()},
                            {"restart_longest_ms", orders.restart.longest.count()},
                            {"restart_healthy_ms", orders.restart.healthy.count()},
                            {"restart_attempts", orders.restart.attempts},
                            {"program", orders.program},
                            {"requeue", orders.requeue},
                            {"tasks", std::move(tasks)}};
  return ToText(object) + "\n";
}

Result<DesiredState> DecodeDesiredState(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseRecord(text, kVersion));
  DesiredState orders;
  TRY_ASSIGN(orders.job_id, GetString(object, "job"));
  TRY(CheckName("job", orders.job_id));
  TRY_ASSIGN(orders.revision, GetBounded(object, "number", 0, INT64_MAX));
  TRY_ASSIGN(orders.stop, GetBool(object, "stop"));
  TRY_ASSIGN(orders.grace, GetMillis(object, "grace_ms"));
  TRY_ASSIGN(orders.restart.first, GetMillis(object, "restart_first_ms"));
  TRY_ASSIGN(orders.restart.longest, GetMillis(object, "restart_longest_ms"));
  TRY_ASSIGN(orders.restart.healthy, GetMillis(object, "restart_healthy_ms"));
  TRY_ASSIGN(orders.restart.attempts, GetCount(object, "restart_attempts", 1));
  TRY_ASSIGN(orders.program, GetString(object, "program"));
  if (orders.program.empty()) return InvalidArgument("program: is empty");
  TRY_ASSIGN(orders.requeue, GetBool(object, "requeue"));
  TRY_ASSIGN(orders.tasks, DecodeTasks<AgentTask>(object, kMaxTasks, DecodeTask));
  return orders;
}

std::string EncodeAgentEvent(const AgentEvent& line) {
  json::object object{{"sign", kEventKinds[static_cast<size_t>(line.kind)]},
                      {"order", line.revision}};
  const TaskEvent& event = line.event;
  if (line.kind == EventKind::kTask) {
    object["role"] = event.role;
    object["index"] = event.index;
    object["incarnation"] = event.incarnation;
    object["phase"] = PhaseName(event.phase);
  }
  if (!line.node.empty()) object["node"] = line.node;
  object["exit"] = event.end.exit_code;
  object["signal"] = event.end.signal;
  if (event.end.out_of_memory) object["oom"] = true;
  object["reason"] = event.end.reason.substr(0, kMaxLine / 8);
  return ToText(object) + "\n";
}

Result<AgentEvent> DecodeAgentEvent(std::string_view text) {
  if (text.size() > kMaxLine) return InvalidArgument("a line of more than 64 KiB");
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  TRY_ASSIGN(const std::string sign, GetString(object, "sign"));
  AgentEvent line;
  size_t at = 0;
  while (at < std::size(kEventKinds) && sign != kEventKinds[at]) ++at;
  if (at == std::size(kEventKinds)) return InvalidArgument("sign: got \"" + sign + "\"");
  line.kind = static_cast<EventKind>(at);
  TRY_ASSIGN(line.revision, GetBounded(object, "order", 0, INT64_MAX));
  TRY_ASSIGN(line.event.end, DecodeEnd(object));
  line.node = GetStringOr(object, "node", "");
  if (!line.node.empty()) TRY(CheckName("node", line.node));
  if (line.kind != EventKind::kTask) return line;
  TRY_ASSIGN(line.event.role, GetString(object, "role"));
  TRY(CheckName("role", line.event.role));
  TRY_ASSIGN(line.event.index, GetCount(object, "index"));
  TRY_ASSIGN(line.event.incarnation, GetCount(object, "incarnation"));
  TRY_ASSIGN(const std::string phase, GetString(object, "phase"));
  TRY_ASSIGN(line.event.phase, ParsePhase(phase));
  return line;
}

// Opened anew each time: network file systems revalidate at open.
Result<std::vector<AgentEvent>> AgentEventReader::Read() {
  std::vector<AgentEvent> lines;
  auto file = OpenFile(path_, O_RDONLY);
  if (!file.ok()) {
    if (file.status().code() == Code::kNotFound) return lines;
    return file.status();
  }
  const size_t before = rest_.size();
  rest_.resize(before + kMaxRead);
  const ssize_t got = ::pread(file->get(), rest_.data() + before, kMaxRead, offset_);
  rest_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) return ErrnoStatus(errno, "cannot read " + path_.string());
  offset_ += got;
  Status damaged;
  size_t begin = 0;
  for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    auto line = DecodeAgentEvent(std::string_view(rest_).substr(begin, end - begin));
    if (line.ok()) lines.push_back(std::move(*line));
    if (!line.ok()) damaged = line.status().With(path_.string());
    begin = end + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() > kMaxLine) rest_.clear();
  if (!damaged.ok() && lines.empty()) return damaged;
  return lines;
}

fs::path DesiredStatePath(const std::string& job_dir) { return EngineDir(job_dir) / "orders.json"; }

Status WriteDesiredState(const std::string& job_dir, const DesiredState& orders) {
  return WriteFileAtomically(DesiredStatePath(job_dir), EncodeDesiredState(orders), 0600, false);
}

Result<DesiredState> ReadDesiredState(const std::string& job_dir) {
  const fs::path path = DesiredStatePath(job_dir);
  TRY_ASSIGN(const std::string text, ReadFile(path, kMaxFile));
  auto orders = DecodeDesiredState(text);
  if (!orders.ok()) return orders.status().With(path.string());
  return orders;
}

}  // namespace shoal::engine
