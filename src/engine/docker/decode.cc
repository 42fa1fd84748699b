#include "engine/docker/decode.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/tasks/restart_rules.h"

namespace shoal::engine::docker {
namespace {

constexpr size_t kMaxFrame = 16 << 20;
constexpr size_t kFrameHead = 8;

bool ReadNumber(const json::object& labels, const char* name, int* out) {
  const std::string text = GetStringOr(labels, name, "");
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && rest == text.data() + text.size() && *out >= 0 && !text.empty();
}

// Nothing if they are not the labels of a Shoal task.
std::optional<TaskLabels> ReadLabels(const json::object& labels) {
  TaskLabels task;
  task.job = GetStringOr(labels, kJobLabel, "");
  task.role = GetStringOr(labels, kRoleLabel, "");
  if (!CheckName("job", task.job).ok() || !CheckName("role", task.role).ok()) return std::nullopt;
  if (!ReadNumber(labels, kIndexLabel, &task.index)) return std::nullopt;
  if (!ReadNumber(labels, kIncarnationLabel, &task.incarnation)) return std::nullopt;
  (void)ReadNumber(labels, kOrderLabel, &task.order);
  return task;
}

const json::object* ObjectAt(const json::object& object, const char* field) {
  const json::value* value = object.if_contains(field);
  return value == nullptr ? nullptr : value->if_object();
}

// The exit code in "Exited (137) 2 minutes ago".
int ExitCodeOfText(const std::string& text) {
  constexpr std::string_view kBegin = "Exited (";
  int code = -1;
  if (!text.starts_with(kBegin)) return code;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + kBegin.size(), end, code);
  return error == std::errc() && rest != end && *rest == ')' ? code : -1;
}

// Ids become parts of request targets: check them.
bool IsId(const std::string& text) {
  return !text.empty() && text.size() <= 128 &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Result<std::string> CheckedId(const json::object& object) {
  TRY_ASSIGN(std::string id, GetString(object, "Id"));
  if (!IsId(id))
    return DataLoss("field 'Id': got \"" + id.substr(0, 80) + "\", expected hex digits");
  return id;
}

// "172.17.0.2", the first network's address that is set.
std::string AddressOf(const json::object& container) {
  const json::object* settings = ObjectAt(container, "NetworkSettings");
  const json::object* networks = settings == nullptr ? nullptr : ObjectAt(*settings, "Networks");
  if (networks == nullptr) return "";
  for (const auto& network : *networks) {
    const json::object* one = network.value().if_object();
    const std::string address = one == nullptr ? "" : GetStringOr(*one, "IPAddress", "");
    if (!address.empty()) return address;
  }
  return "";
}

}  // namespace

Result<Versions> DecodeVersions(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  Versions versions;
  TRY_ASSIGN(versions.api, GetString(object, "ApiVersion"));
  versions.min_api = GetStringOr(object, "MinAPIVersion", "");
  versions.engine = GetStringOr(object, "Version", "?");
  for (const std::string& version : {versions.api, versions.min_api}) {
    if (version.find_first_not_of("0123456789.") != std::string::npos || version.size() > 16)
      return DataLoss("its API version is \"" + version.substr(0, 80) + "\"");
  }
  return versions;
}

Result<Machine> DecodeMachine(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  Machine machine;
  TRY_ASSIGN(const int64_t cpus, GetInt(object, "NCPU"));
  TRY_ASSIGN(machine.memory_bytes, GetInt(object, "MemTotal"));
  if (cpus < 1 || machine.memory_bytes < 1)
    return DataLoss("it says that it has no processors or no memory");
  machine.cpus = static_cast<double>(cpus);
  machine.live_restore = GetBoolOr(object, "LiveRestoreEnabled", false);
  return machine;
}

Result<std::vector<ContainerSummary>> DecodeContainers(std::string_view text) {
  TRY_ASSIGN(const json::value value, ParseJson(text));
  if (!value.is_array()) return InvalidArgument("expected a list of containers");
  std::vector<ContainerSummary> containers;
  for (const json::value& one : value.get_array()) {
    if (!one.is_object()) return InvalidArgument("expected a list of objects");
    const json::object& object = one.get_object();
    const json::object* labels = ObjectAt(object, "Labels");
    const auto task = labels == nullptr ? std::nullopt : ReadLabels(*labels);
    if (!task) continue;
    ContainerSummary summary;
    TRY_ASSIGN(summary.id, CheckedId(object));
    summary.task = *task;
    const std::string state = GetStringOr(object, "State", "");
    summary.paused = state == "paused";
    summary.running = state == "running" || summary.paused || state == "restarting";
    if (!summary.running) summary.exit_code = ExitCodeOfText(GetStringOr(object, "Status", ""));
    containers.push_back(std::move(summary));
  }
  return containers;
}

Result<ContainerState> DecodeContainer(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  ContainerState container;
  TRY_ASSIGN(container.id, CheckedId(object));
  const json::object* state = ObjectAt(object, "State");
  if (state == nullptr) return InvalidArgument("field 'State' is missing");
  TRY_ASSIGN(container.running, GetBool(*state, "Running"));
  container.out_of_memory = GetBoolOr(*state, "OOMKilled", false);
  const int64_t code = GetIntOr(*state, "ExitCode", -1);
  constexpr int kMostCode = 255;
  container.exit_code = code >= 0 && code <= kMostCode ? static_cast<int>(code) : -1;
  container.error = GetStringOr(*state, "Error", "");
  container.pid = GetIntOr(*state, "Pid", 0);
  container.address = AddressOf(object);
  const json::object* config = ObjectAt(object, "Config");
  const json::object* labels = config == nullptr ? nullptr : ObjectAt(*config, "Labels");
  if (labels != nullptr) container.task = ReadLabels(*labels);
  return container;
}

Result<std::optional<ContainerEvent>> DecodeEvent(std::string_view line) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(line));
  const json::object* actor = ObjectAt(object, "Actor");
  const json::object* labels = actor == nullptr ? nullptr : ObjectAt(*actor, "Attributes");
  const auto task = labels == nullptr ? std::nullopt : ReadLabels(*labels);
  if (!task || GetStringOr(object, "Type", "") != "container")
    return std::optional<ContainerEvent>();
  ContainerEvent event;
  event.action = GetStringOr(object, "Action", "");
  event.task = *task;
  constexpr int64_t kNanos = 1'000'000'000;
  const int64_t time = GetIntOr(object, "timeNano", 0);
  if (time > 0) {
    const std::string nanos = std::to_string(time % kNanos);
    event.time = std::to_string(time / kNanos) + "." + std::string(9 - nanos.size(), '0') + nanos;
  }
  return std::optional<ContainerEvent>(std::move(event));
}

std::string DecodeError(std::string_view text) {
  constexpr size_t kMost = 2000;
  const auto object = ParseJsonObject(text);
  std::string message = object.ok() ? GetStringOr(*object, "message", "") : "";
  if (message.empty()) message = std::string(text.substr(0, kMost));
  while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) message.pop_back();
  return message.substr(0, kMost);
}

Result<std::vector<std::string>> DecodeNetworks(std::string_view text) {
  TRY_ASSIGN(const json::value value, ParseJson(text));
  if (!value.is_array()) return InvalidArgument("expected a list of networks");
  std::vector<std::string> ids;
  for (const json::value& one : value.get_array()) {
    if (!one.is_object()) return InvalidArgument("expected a list of networks");
    TRY_ASSIGN(std::string id, CheckedId(one.get_object()));
    ids.push_back(std::move(id));
  }
  return ids;
}

namespace {

// A list of strings, or null.
Status TakeWords(const json::object& object, std::string_view field,
                 std::vector<std::string>* words) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || value->is_null()) return Status::Ok();
  const json::array* list = value->if_array();
  const bool texts =
      list != nullptr &&
      std::all_of(list->begin(), list->end(), [](const auto& one) { return one.is_string(); });
  if (!texts) return InvalidArgument("Config." + std::string(field) + ": expected a list of texts");
  for (const json::value& one : *list) words->emplace_back(one.get_string());
  return Status::Ok();
}

}  // namespace

Result<EntryPoint> DecodeEntryPoint(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  const json::object* config = ObjectAt(object, "Config");
  if (config == nullptr) return InvalidArgument("the daemon told no Config of the image");
  EntryPoint found;
  TRY(TakeWords(*config, "Entrypoint", &found.program));
  TRY(TakeWords(*config, "Cmd", &found.arguments));
  return found;
}

Result<std::string> DecodeId(std::string_view text) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(text));
  return CheckedId(object);
}

Result<PullProgress> DecodePullProgress(std::string_view line) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(line));
  PullProgress progress;
  const std::string id = GetStringOr(object, "id", "");
  progress.status = (id.empty() ? "" : id + ": ") + GetStringOr(object, "status", "");
  const std::string bar = GetStringOr(object, "progress", "");
  if (!bar.empty()) progress.status += " " + bar;
  progress.error = GetStringOr(object, "error", "");
  const json::object* detail = ObjectAt(object, "errorDetail");
  if (progress.error.empty() && detail != nullptr)
    progress.error = GetStringOr(*detail, "message", "an error without words");
  return progress;
}

Status LineCutter::Feed(std::string_view bytes, std::vector<std::string>* lines) {
  rest_ += bytes;
  size_t begin = 0;
  for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    size_t length = end - begin;
    if (length > 0 && rest_[end - 1] == '\r') --length;
    if (length > 0) lines->push_back(rest_.substr(begin, length));
    begin = end + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() <= limit_) return Status::Ok();
  rest_.clear();
  return DataLoss("a line is longer than " + std::to_string(limit_) + " bytes");
}

Status FrameCutter::Feed(std::string_view bytes, std::vector<Frame>* frames) {
  rest_ += bytes;
  size_t at = 0;
  while (rest_.size() - at >= kFrameHead) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(rest_[at + i]); };
    if (byte(0) > 2 || byte(1) != 0 || byte(2) != 0 || byte(3) != 0)
      return DataLoss("what a container said does not come in frames");
    const size_t length = static_cast<size_t>(byte(4)) << 24 | static_cast<size_t>(byte(5)) << 16 |
                          static_cast<size_t>(byte(6)) << 8 | static_cast<size_t>(byte(7));
    if (length > kMaxFrame)
      return DataLoss("a frame of a container's output has " + std::to_string(length) + " bytes");
    if (rest_.size() - at - kFrameHead < length) break;
    frames->push_back({byte(0), rest_.substr(at + kFrameHead, length)});
    at += kFrameHead + length;
  }
  rest_.erase(0, at);
  return Status::Ok();
}

int CompareVersions(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto take = [](std::string_view* text) {
      int number = 0;
      const size_t dot = std::min(text->find('.'), text->size());
      (void)std::from_chars(text->data(), text->data() + dot, number);
      text->remove_prefix(std::min(dot + 1, text->size()));
      return number;
    };
    const int left = take(&a);
    const int right = take(&b);
    if (left != right) return left < right ? -1 : 1;
  }
  return 0;
}

}  // namespace shoal::engine::docker
