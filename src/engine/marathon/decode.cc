#include "engine/marathon/decode.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "engine/marathon/app_spec.h"
#include "engine/tasks/restart_rules.h"
#include "job/spec/job.h"

namespace shoal::engine::marathon {
namespace {

constexpr size_t kMaxEvent = 1 << 20;
constexpr size_t kMaxMessage = 1000;
constexpr size_t kMaxItems = 200'000;
constexpr size_t kMaxId = 1000;

// A text for messages, on one line.
std::string OneLine(std::string text) {
  if (text.size() > kMaxMessage) text.resize(kMaxMessage);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

// Null if the field is missing or has another type.
const json::object* ObjectIn(const json::object& object, const char* field) {
  const json::value* value = object.if_contains(field);
  return value != nullptr ? value->if_object() : nullptr;
}

Result<const json::array*> ArrayIn(const json::object& object, const char* field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_array())
    return InvalidArgument(std::string(field) + ": expected an array");
  if (value->get_array().size() > kMaxItems)
    return InvalidArgument(std::string(field) + ": more than 200000 of them");
  return &value->get_array();
}

Result<std::string> Id(const json::object& object, const char* field) {
  TRY_ASSIGN(std::string id, GetString(object, field));
  if (id.empty() || id.size() > kMaxId)
    return InvalidArgument(std::string(field) + ": expected 1 to 1000 characters");
  return OneLine(std::move(id));
}

// Marathon's task ids are written to files: letters, digits, '-', '_', '.'.
Result<MesosTask> DecodeTask(const json::value& value) {
  if (!value.is_object()) return InvalidArgument("tasks: expected objects");
  const json::object& object = value.get_object();
  MesosTask task;
  TRY_ASSIGN(task.id, Id(object, "id"));
  task.host = OneLine(GetStringOr(object, "host", ""));
  task.state = OneLine(GetStringOr(object, "state", ""));
  return task;
}

Failure DecodeFailure(const json::object& object) {
  return {OneLine(GetStringOr(object, "taskId", "")), OneLine(GetStringOr(object, "host", "")),
          OneLine(GetStringOr(object, "message", "")), OneLine(GetStringOr(object, "state", ""))};
}

Result<App> DecodeApp(const json::value& value) {
  if (!value.is_object()) return InvalidArgument("apps: expected objects");
  const json::object& object = value.get_object();
  App app;
  TRY_ASSIGN(app.id, Id(object, "id"));
  const int64_t instances = GetIntOr(object, "instances", 0);
  if (instances < 0 || instances > INT32_MAX) return InvalidArgument("instances: out of range");
  app.instances = static_cast<int>(instances);
  if (const json::object* labels = ObjectIn(object, "labels")) {
    app.role = OneLine(GetStringOr(*labels, kRoleLabel, ""));
    app.dir = OneLine(GetStringOr(*labels, kDirLabel, ""));
  }
  if (object.contains("tasks")) {
    TRY_ASSIGN(const json::array* tasks, ArrayIn(object, "tasks"));
    for (const json::value& one : *tasks) {
      TRY_ASSIGN(MesosTask task, DecodeTask(one));
      app.tasks.push_back(std::move(task));
    }
  }
  if (const json::object* failure = ObjectIn(object, "lastTaskFailure"))
    app.last_failure = DecodeFailure(*failure);
  return app;
}

// "offers were refused: not enough memory (3 of 3)"
std::string DescribeRefusals(const json::object& summary) {
  static constexpr std::pair<std::string_view, std::string_view> kReasons[] = {
      {"UnfulfilledRole", "of another resource role"},
      {"UnfulfilledConstraint", "a constraint is not met"},
      {"NoCorrespondingReservationFound", "no reservation is there"},
      {"AgentMaintenance", "the agent is under maintenance"},
      {"AgentDrained", "the agent is drained"},
      {"InsufficientCpus", "not enough processors"},
      {"InsufficientMemory", "not enough memory"},
      {"InsufficientDisk", "not enough disk"},
      {"InsufficientGpus", "not enough GPUs"},
      {"InsufficientPorts", "the port is taken"},
      {"DeclinedScarceResources", "agents with GPUs are kept for others"}};
  std::string text;
  const json::value* steps = summary.if_contains("rejectSummaryLastOffers");
  if (steps == nullptr || !steps->is_array()) return text;
  for (const json::value& step : steps->get_array()) {
    if (!step.is_object()) continue;
    const std::string reason = GetStringOr(step.get_object(), "reason", "");
    const int64_t declined = GetIntOr(step.get_object(), "declined", 0);
    if (declined <= 0) continue;
    const auto known = std::find_if(std::begin(kReasons), std::end(kReasons),
                                    [&](const auto& entry) { return entry.first == reason; });
    text += (text.empty() ? "" : ", ") +
            (known != std::end(kReasons) ? std::string(known->second) : OneLine(reason)) + " (" +
            std::to_string(declined) + " of " +
            std::to_string(GetIntOr(step.get_object(), "processed", declined)) + " offers)";
    if (text.size() > kMaxMessage) break;
  }
  return text;
}

std::string DescribeWait(const json::object& item) {
  if (const json::object* delay = ObjectIn(item, "delay")) {
    const int64_t left = GetIntOr(*delay, "timeLeftSeconds", 0);
    if (!GetBoolOr(*delay, "overdue", true) && left > 0)
      return "starts again in " + std::to_string(left) + " s, after what ended before";
  }
  const json::object* summary = ObjectIn(item, "processedOffersSummary");
  const std::string refused = summary != nullptr ? DescribeRefusals(*summary) : "";
  if (!refused.empty()) return "no offer of Mesos fits: " + refused;
  return "waits for an offer of Mesos";
}

std::string IdOf(const json::value& value) {
  if (value.is_object()) return OneLine(GetStringOr(value.get_object(), "id", ""));
  return value.is_string() ? OneLine(std::string(value.get_string())) : "";
}

}  // namespace

Result<std::vector<App>> DecodeApps(std::string_view body) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(body));
  TRY_ASSIGN(const json::array* apps, ArrayIn(object, "apps"));
  std::vector<App> decoded;
  for (const json::value& value : *apps) {
    TRY_ASSIGN(App app, DecodeApp(value));
    decoded.push_back(std::move(app));
  }
  return decoded;
}

Result<std::vector<PendingApp>> DecodeQueue(std::string_view body) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(body));
  TRY_ASSIGN(const json::array* items, ArrayIn(object, "queue"));
  std::vector<PendingApp> waiting;
  for (const json::value& value : *items) {
    if (!value.is_object()) return InvalidArgument("queue: expected objects");
    const json::object* app = ObjectIn(value.get_object(), "app");
    if (app == nullptr) continue;  // a pod
    TRY_ASSIGN(std::string id, Id(*app, "id"));
    waiting.push_back({std::move(id), DescribeWait(value.get_object())});
  }
  return waiting;
}

std::vector<std::string> DecodeConflict(std::string_view body) {
  std::vector<std::string> ids;
  const auto object = ParseJsonObject(body);
  if (!object.ok()) return ids;
  const json::value* deployments = object->if_contains("deployments");
  if (deployments == nullptr || !deployments->is_array()) return ids;
  for (const json::value& value : deployments->get_array()) {
    std::string id = IdOf(value);
    if (!id.empty() && ids.size() < kMaxMessage) ids.push_back(std::move(id));
  }
  return ids;
}

std::string DecodeDeployment(std::string_view body) {
  const auto object = ParseJsonObject(body);
  return object.ok() ? OneLine(GetStringOr(*object, "deploymentId", "")) : "";
}

Result<std::vector<std::string>> DecodeDeployments(std::string_view body) {
  TRY_ASSIGN(const json::value value, ParseJson(body));
  if (!value.is_array()) return InvalidArgument("expected an array of deployments");
  std::vector<std::string> ids;
  for (const json::value& one : value.get_array()) ids.push_back(IdOf(one));
  return ids;
}

std::string DecodeErrorMessage(std::string_view body) {
  const auto object = ParseJsonObject(body);
  if (!object.ok()) return OneLine(std::string(body.substr(0, kMaxMessage)));
  std::string text = GetStringOr(*object, "message", "it does not say why");
  const json::value* details = object->if_contains("details");
  if (details == nullptr || !details->is_array()) return OneLine(std::move(text));
  for (const json::value& detail : details->get_array()) {
    if (!detail.is_object() || text.size() > kMaxMessage) continue;
    text += "; " + GetStringOr(detail.get_object(), "path", "") + ":";
    const json::value* errors = detail.get_object().if_contains("errors");
    if (errors == nullptr || !errors->is_array()) continue;
    for (const json::value& error : errors->get_array()) {
      if (error.is_string()) text += " " + std::string(error.get_string());
    }
  }
  return OneLine(std::move(text));
}

Result<std::string> DecodeMesosUrl(std::string_view body) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(body));
  const json::object* config = ObjectIn(object, "marathon_config");
  return config == nullptr ? std::string()
                           : OneLine(GetStringOr(*config, "mesos_leader_ui_url", ""));
}

Result<ClusterResources> DecodeClusterResources(std::string_view body) {
  TRY_ASSIGN(const json::object object, ParseJsonObject(body));
  ClusterResources numbers;
  TRY_ASSIGN(numbers.cpus, GetDouble(object, "master/cpus_total"));
  TRY_ASSIGN(numbers.memory_mb, GetDouble(object, "master/mem_total"));
  numbers.gpus = GetDoubleOr(object, "master/gpus_total", 0);
  constexpr double kMost = 1e12;
  for (const double number : {numbers.cpus, numbers.memory_mb, numbers.gpus}) {
    if (!(number >= 0 && number <= kMost)) return InvalidArgument("a total is out of range");
  }
  return numbers;
}

Status ServerSentEventParser::Feed(std::string_view bytes, std::vector<Event>* events) {
  for (const char c : bytes) {
    if (c == '\r') continue;
    if (c != '\n') {
      line_ += c;
      if (line_.size() + data_.size() > kMaxEvent) return DataLoss("an event of more than 1 MiB");
      continue;
    }
    EndLine(line_, events);
    line_.clear();
  }
  return Status::Ok();
}

void ServerSentEventParser::EndLine(std::string_view line, std::vector<Event>* events) {
  constexpr std::string_view kData = "data:";
  if (line.starts_with(kData)) {
    line.remove_prefix(kData.size());
    if (!data_.empty()) data_ += '\n';
    data_ += line;
    return;
  }
  if (!line.empty() || data_.empty()) return;  // the name is in the data too
  const auto object = ParseJsonObject(data_);
  data_.clear();
  if (!object.ok()) return;
  Event event;
  event.type = OneLine(GetStringOr(*object, "eventType", ""));
  event.app = OneLine(GetStringOr(*object, "appId", ""));
  event.task = OneLine(GetStringOr(*object, "taskId", ""));
  event.status = OneLine(GetStringOr(*object, "taskStatus", ""));
  event.message = OneLine(GetStringOr(*object, "message", ""));
  event.host = OneLine(GetStringOr(*object, "host", ""));
  events->push_back(std::move(event));
}

}  // namespace shoal::engine::marathon
