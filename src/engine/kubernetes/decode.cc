#include "engine/kubernetes/decode.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "engine/tasks/restart_rules.h"

namespace shoal::engine::kubernetes {
namespace {

constexpr size_t kLongestText = 2'000;
constexpr int kMaxIndex = 1'000'000;

const json::object kNothing;

const json::object& ObjectAt(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  return value != nullptr && value->is_object() ? value->get_object() : kNothing;
}

const json::array& ArrayAt(const json::object& object, std::string_view field) {
  static const json::array kNone;
  const json::value* value = object.if_contains(field);
  return value != nullptr && value->is_array() ? value->get_array() : kNone;
}

// A text made safe for messages: one line, no control characters, bounded length.
std::string TextAt(const json::object& object, std::string_view field) {
  std::string text = GetStringOr(object, field, "");
  if (text.size() > kLongestText) text.resize(kLongestText);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::optional<int> ReadIndex(const std::string& text) {
  int value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || rest != text.data() + text.size() || value < 0 ||
      value > kMaxIndex)
    return std::nullopt;
  return value;
}

const json::object* Condition(const json::object& status, std::string_view type) {
  for (const json::value& one : ArrayAt(status, "conditions")) {
    if (one.is_object() && GetStringOr(one.get_object(), "type", "") == type)
      return &one.get_object();
  }
  return nullptr;
}

bool IsTrue(const json::object* condition) {
  return condition != nullptr && GetStringOr(*condition, "status", "") == "True";
}

// The container, or the status of one.
const json::object* Named(const json::array& containers, std::string_view name) {
  for (const json::value& one : containers) {
    if (one.is_object() && (name.empty() || GetStringOr(one.get_object(), "name", "") == name))
      return &one.get_object();
  }
  return nullptr;
}

std::string Joined(const std::string& reason, const std::string& message) {
  return message.empty() ? reason : reason.empty() ? message : reason + ": " + message;
}

// The reason why a container waits, unless it is part of a normal start.
std::string ExplainWaiting(const json::object& waiting, const std::string& image) {
  const std::string reason = TextAt(waiting, "reason");
  if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") return "";
  const std::string said = Joined(reason, TextAt(waiting, "message"));
  if (reason == "ErrImagePull" || reason == "ImagePullBackOff" || reason == "InvalidImageName" ||
      reason == "ErrImageNeverPull" || reason == "RegistryUnavailable") {
    return "the image " + image + " cannot be had (" + said +
           "); correct its name, push it, or give kubernetes.image_pull_secrets";
  }
  if (reason == "CreateContainerConfigError" || reason == "CreateContainerError")
    return "the container cannot be made (" + said + ")";
  return said;
}

void DecodeWaits(const json::object& status, PodView* pod) {
  const json::object* scheduled = Condition(status, "PodScheduled");
  if (scheduled != nullptr && GetStringOr(*scheduled, "status", "") == "False") {
    const std::string said = TextAt(*scheduled, "message");
    pod->waits = GetStringOr(*scheduled, "reason", "") == "SchedulingGated"
                     ? "is held back by the cluster's queue (" + said + ")"
                     : "fits on no node now (" + said + ")";
    return;
  }
  for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::value& one : ArrayAt(status, kind)) {
      if (!one.is_object()) continue;
      const json::object& container = one.get_object();
      const json::object& waiting = ObjectAt(ObjectAt(container, "state"), "waiting");
      pod->waits = ExplainWaiting(waiting, TextAt(container, "image"));
      pod->pull_failed = TextAt(waiting, "reason") == "ErrImagePull";
      pod->backs_off = TextAt(waiting, "reason") == "ImagePullBackOff";
      if (!pod->waits.empty()) return;
    }
  }
}

bool NamesNoProgram(const std::string& text) {
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  return has("no such file or directory") || has("executable file not found") ||
         has("permission denied") || has("exec format error");
}

void DecodeTerminated(const json::object& ended, PodView* pod) {
  pod->ended = true;
  const std::string reason = TextAt(ended, "reason");
  const std::string message = TextAt(ended, "message");
  pod->exit_code = static_cast<int>(std::clamp<int64_t>(GetIntOr(ended, "exitCode", -1), -1, 255));
  pod->started = reason != "StartError" && reason != "ContainerCannotRun" &&
                 reason != "ContainerStatusUnknown";
  pod->out_of_memory = reason == "OOMKilled";
  const auto begun = ReadTime(GetStringOr(ended, "startedAt", ""));
  const auto over = ReadTime(GetStringOr(ended, "finishedAt", ""));
  constexpr int64_t kLongest = int64_t{1} << 30;
  if (begun && over) pod->lived = std::clamp<int64_t>(*over - *begun, 0, kLongest);
  if (reason == "ContainerStatusUnknown") pod->exit_code = -1;
  if (pod->exit_code == 0 && message == std::to_string(job::kExitHostExcluded))
    pod->exit_code = job::kExitHostExcluded;  // kExcludedFileVariable
  if (pod->started || reason == "ContainerStatusUnknown") return;
  pod->cannot_start = NamesNoProgram(message);
  pod->end_reason =
      pod->cannot_start
          ? "cannot be started: the image has no such program, or it is not executable (" +
                message + "); correct the task's command or image"
          : "cannot be started (" + Joined(reason, message) + ")";
}

// Reasons for ends caused by the cluster.
std::string ExplainDisruption(const json::object& status, const PodView& pod) {
  const std::string own = TextAt(status, "reason");
  const std::string message = TextAt(status, "message");
  if (own == "Evicted") return "was evicted from node " + pod.node + " (" + message + ")";
  const json::object* disrupted = Condition(status, "DisruptionTarget");
  if (IsTrue(disrupted)) {
    const std::string why = TextAt(*disrupted, "reason");
    const std::string said = TextAt(*disrupted, "message");
    if (why == "PreemptionByScheduler")
      return "was preempted: pods of a higher priority needed its place (" + said + ")";
    if (why == "DeletionByTaintManager")
      return "went with its node " + pod.node + ", which does not answer or is drained (" + said +
             ")";
    if (why == "DeletionByPodGC") return "went with its node " + pod.node + ", which is gone";
    if (why == "EvictionByEvictionAPI")
      return "was evicted by request, as when a node is drained (" + said + ")";
    if (why == "TerminationByKubelet")
      return "was ended by node " + pod.node + " (" + Joined(own, message) + ")";
    return "was ended by the cluster (" + Joined(why, said) + ")";
  }
  if (own == "NodeLost") return "went with its node " + pod.node;
  if (own.empty() || own == "Completed" || own == "Error") return "";
  return "was ended by the cluster (" + Joined(own, message) + ")";
}

// The parts that all objects have.
struct Parts {
  explicit Parts(const json::object& object)
      : meta(ObjectAt(object, "metadata")),
        labels(ObjectAt(meta, "labels")),
        notes(ObjectAt(meta, "annotations")),
        spec(ObjectAt(object, "spec")),
        status(ObjectAt(object, "status")) {}
  std::string Label(const char* name) const { return GetStringOr(labels, name, ""); }
  std::string Note(const char* name) const { return GetStringOr(notes, name, ""); }

  const json::object& meta;
  const json::object& labels;
  const json::object& notes;
  const json::object& spec;
  const json::object& status;
};

// Decodes name, uid and owner. False if it is not Shoal's.
template <typename View>
bool DecodeIdentity(const Parts& parts, View* view) {
  view->name = GetStringOr(parts.meta, "name", "");
  view->uid = GetStringOr(parts.meta, "uid", "");
  view->job = parts.Label(kJobLabel);
  view->role = parts.Label(kRoleLabel);
  return !view->uid.empty() && CheckName("object", view->name).ok() &&
         CheckName("job", view->job).ok() && CheckName("role", view->role).ok();
}

std::optional<PodView> DecodePod(const json::object& object) {
  const Parts parts(object);
  const json::object& status = parts.status;
  PodView pod;
  const std::string single = parts.Label(kIndexLabel);
  const auto index = ReadIndex(single.empty() ? parts.Note(kCompletionIndex) : single);
  if (!DecodeIdentity(parts, &pod) || !index) return std::nullopt;
  pod.job_name = GetStringOr(parts.labels, kJobNameLabel, parts.Label("job-name"));
  pod.index = *index;
  pod.failures = ReadIndex(parts.Note(kFailureCount)).value_or(0);
  pod.node = TextAt(parts.spec, "nodeName");
  if (const json::object* task = Named(ArrayAt(parts.spec, "containers"), kTaskContainer)) {
    const json::array& command = ArrayAt(*task, "command");
    if (!command.empty() && command[0].is_string()) pod.program = command[0].get_string();
  }
  pod.address = TextAt(status, "podIP");
  pod.phase = TextAt(status, "phase");
  pod.deleting = IsBeingDeleted(object);
  if (const json::object* task = Named(ArrayAt(status, "containerStatuses"), kTaskContainer)) {
    const json::object& state = ObjectAt(*task, "state");
    pod.running = state.if_contains("running") != nullptr;
    pod.started = pod.running;
    if (state.if_contains("terminated") != nullptr)
      DecodeTerminated(ObjectAt(state, "terminated"), &pod);
  }
  if (pod.phase == "Failed" || pod.phase == "Succeeded") pod.ended = true;
  const std::string disruption = ExplainDisruption(status, pod);
  if (!disruption.empty() && (pod.ended || pod.deleting)) pod.end_reason = disruption;
  if (!pod.running && !pod.ended && !pod.deleting) DecodeWaits(status, &pod);
  return pod;
}

std::map<int, int> ReadBases(const std::string& text) {
  std::map<int, int> bases;
  const auto object = ParseJsonObject(text.empty() ? "{}" : text);
  if (!object.ok()) return bases;
  for (const auto& entry : *object) {
    const auto index = ReadIndex(std::string(entry.key()));
    if (!index || !entry.value().is_int64()) continue;
    bases[*index] = static_cast<int>(std::clamp<int64_t>(entry.value().get_int64(), 0, kMaxIndex));
  }
  return bases;
}

template <typename T, typename F>
Result<ListResult<T>> DecodeList(const json::object& list, F decode) {
  ListResult<T> listed;
  listed.version = GetStringOr(ObjectAt(list, "metadata"), "resourceVersion", "");
  const json::value* items = list.if_contains("items");
  if (items == nullptr || (!items->is_array() && !items->is_null()))
    return DataLoss("the API server's answer is no list");
  for (const json::value& item : ArrayAt(list, "items")) {
    if (!item.is_object()) continue;
    auto one = decode(item.get_object());
    if (one) listed.items.push_back(std::move(*one));
  }
  return listed;
}

}  // namespace

int JobView::BaseOf(int index) const {
  const auto found = bases.find(index);
  return found == bases.end() ? 0 : found->second;
}

Result<ListResult<PodView>> DecodePods(const json::object& list) {
  return DecodeList<PodView>(list, DecodePod);
}

Result<JobView> DecodeJob(const json::object& object) {
  const Parts parts(object);
  JobView job;
  if (!DecodeIdentity(parts, &job)) return DataLoss("the API server's reply is not a Job of Shoal");
  job.single = ReadIndex(parts.Label(kIndexLabel)).value_or(-1);
  job.completions =
      static_cast<int>(std::clamp<int64_t>(GetIntOr(parts.spec, "completions", 0), 0, kMaxIndex));
  job.suspended = GetBoolOr(parts.spec, "suspend", false);
  job.restarts = GetIntOr(parts.spec, "backoffLimitPerIndex", 0) > 0;
  job.order = ReadIndex(parts.Note(kOrderNote)).value_or(0);
  job.digest = parts.Note(kTemplateNote);
  job.bases = ReadBases(parts.Note(kBasesNote));
  job.finished =
      IsTrue(Condition(parts.status, "Complete")) || IsTrue(Condition(parts.status, "Failed"));
  return job;
}

Result<ListResult<JobView>> DecodeJobs(const json::object& list) {
  return DecodeList<JobView>(list, [](const json::object& object) -> std::optional<JobView> {
    auto job = DecodeJob(object);
    if (!job.ok()) return std::nullopt;
    return std::move(*job);
  });
}

Result<WatchEvent> DecodeWatchLine(std::string_view line) {
  auto parsed = ParseJsonObject(line);
  if (!parsed.ok()) return DataLoss("the API server's watch says what is no JSON object");
  WatchEvent event;
  const std::string type = GetStringOr(*parsed, "type", "");
  const json::object& object = ObjectAt(*parsed, "object");
  event.version = GetStringOr(ObjectAt(object, "metadata"), "resourceVersion", "");
  if (type == "ERROR") {
    event.kind = WatchEvent::Kind::kError;
    event.error_code = static_cast<int>(std::clamp<int64_t>(GetIntOr(object, "code", 0), 0, 999));
    event.error = TextAt(object, "message");
    return event;
  }
  if (type == "BOOKMARK") event.kind = WatchEvent::Kind::kBookmark;
  if (type == "ADDED") event.kind = WatchEvent::Kind::kAdded;
  if (type == "MODIFIED") event.kind = WatchEvent::Kind::kModified;
  if (type == "DELETED") event.kind = WatchEvent::Kind::kDeleted;
  if (event.kind != WatchEvent::Kind::kBookmark) event.pod = DecodePod(object);
  return event;
}

std::map<std::string, std::string> DecodeFailedCreates(const json::object& list) {
  std::map<std::string, std::string> reasons;
  for (const json::value& item : ArrayAt(list, "items")) {
    if (!item.is_object()) continue;
    const std::string message = TextAt(item.get_object(), "message");
    const std::string name = TextAt(ObjectAt(item.get_object(), "involvedObject"), "name");
    if (name.empty() || message.empty()) continue;
    const bool quota = message.find("exceeded quota") != std::string::npos;
    reasons[name] = quota ? "the namespace's quota does not let it be made (" + message + ")"
                          : "the cluster refuses to make it (" + message + ")";
  }
  return reasons;
}

bool IsBeingDeleted(const json::object& object) {
  return !GetStringOr(ObjectAt(object, "metadata"), "deletionTimestamp", "").empty();
}

Capacity DecodeNodes(const json::object& list, const std::string& gpu_resource) {
  Capacity capacity;
  double memory = 0;
  double gpus = 0;
  for (const json::value& item : ArrayAt(list, "items")) {
    if (!item.is_object()) continue;
    const json::object& status = ObjectAt(item.get_object(), "status");
    if (GetBoolOr(ObjectAt(item.get_object(), "spec"), "unschedulable", false)) continue;
    if (!IsTrue(Condition(status, "Ready"))) continue;
    const json::object& has = ObjectAt(status, "allocatable");
    capacity.cpu += ReadQuantity(GetStringOr(has, "cpu", "0")).value_or(0);
    memory += ReadQuantity(GetStringOr(has, "memory", "0")).value_or(0);
    gpus += ReadQuantity(GetStringOr(has, gpu_resource, "0")).value_or(0);
  }
  capacity.memory_bytes = static_cast<int64_t>(std::clamp(memory, 0.0, 9e18));
  capacity.gpu = static_cast<int>(std::clamp(gpus, 0.0, 1e9));
  return capacity;
}

std::string DecodeStatus(std::string_view body, int code) {
  const auto object = ParseJsonObject(body);
  std::string text = object.ok() ? TextAt(*object, "message") : std::string();
  if (text.empty() && !object.ok() && !body.empty()) {
    text = TextAt({{"text", std::string(body.substr(0, 300))}}, "text");
  }
  if (text.empty()) text = "status " + std::to_string(code);
  return text;
}

std::optional<int64_t> ReadTime(const std::string& text) {
  tm time{};
  const char* rest = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (rest == nullptr) return std::nullopt;
  rest += std::strspn(rest, ".0123456789");
  int64_t east = 0;  // of Greenwich, in seconds
  int hours = 0;
  int minutes = 0;
  if (std::sscanf(rest, "%3d:%2d", &hours, &minutes) == 2)
    east = int64_t{hours} * 3600 + (*rest == '-' ? -60 : 60) * minutes;
  return ::timegm(&time) - east;
}

std::optional<double> ReadQuantity(std::string_view text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view suffix(rest, static_cast<size_t>(text.data() + text.size() - rest));
  constexpr std::pair<const char*, double> kSuffixes[] = {
      {"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},
      {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
      {"P", 1e15},    {"E", 1e18},    {"Ki", 1024.0}, {"Mi", 1048576.0},
      {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
  for (const auto& [name, factor] : kSuffixes) {
    if (suffix == name) return number * factor;
  }
  return std::nullopt;
}

}  // namespace shoal::engine::kubernetes
