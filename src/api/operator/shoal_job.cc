#include "api/operator/shoal_job.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/id.h"
#include "job/spec/job.h"
#include "job/text/yaml_emitter.h"

namespace shoal::api {
namespace {

constexpr size_t kMaxObjectName = 253;
constexpr size_t kMaxNamespace = 63;
constexpr size_t kMaxUid = 128;
constexpr size_t kMaxJobName = 63;
constexpr size_t kMaxFinalizers = 100;
// Of an answer: spec.job is at level 5 of a list, and ParseJson reads 64 levels.
constexpr size_t kMaxAnswerDepth = 50;

// A DNS name, as the API server demands of names: they become parts of paths and messages.
bool IsDnsName(std::string_view text, size_t longest) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, plain) &&
         text.front() != '-' && text.front() != '.' && text.back() != '-' && text.back() != '.';
}

bool IsUid(std::string_view text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
  };
  return !text.empty() && text.size() <= kMaxUid && std::ranges::all_of(text, plain);
}

const json::object& ObjectOf(const json::object& object, std::string_view field) {
  static const json::object none;
  const json::object* const found = FindObject(object, field);
  return found == nullptr ? none : *found;
}

// The same value with the fields of every object in the order of their names.
json::value Sorted(const json::value& value) {
  if (value.is_array()) {
    json::array array;
    for (const json::value& one : value.get_array()) array.push_back(Sorted(one));
    return array;
  }
  if (!value.is_object()) return value;
  std::map<std::string, json::value> fields;
  for (const auto& field : value.get_object())
    fields.emplace(std::string(field.key()), Sorted(field.value()));
  json::object object;
  for (auto& [name, one] : fields) object[name] = std::move(one);
  return object;
}

// The text with null in place of every list and object below kMaxAnswerDepth. O(text).
std::string WithoutDepths(std::string_view text) {
  std::string kept;
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool was_cut = depth > kMaxAnswerDepth;
    if (quoted) {
      if (!was_cut) kept += c;
      if (c == '\\' && i + 1 < text.size()) {
        ++i;
        if (!was_cut) kept += text[i];
      } else if (c == '"') {
        quoted = false;
      }
      continue;
    }
    quoted = c == '"';
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    const bool is_cut = depth > kMaxAnswerDepth;
    if (!was_cut && !is_cut) kept += c;
    if (!was_cut && is_cut) kept += "null";
  }
  return kept;
}

// Recurses at most `depth` times.
bool IsDeeper(const json::value& value, int depth) {
  if (!value.is_structured()) return false;
  if (depth == 0) return true;
  if (value.is_array())
    return std::ranges::any_of(value.get_array(),
                               [&](const json::value& one) { return IsDeeper(one, depth - 1); });
  return std::ranges::any_of(value.get_object(), [&](const json::key_value_pair& field) {
    return IsDeeper(field.value(), depth - 1);
  });
}

std::string JobNameOf(const std::string& object) {
  std::string name = object.substr(0, kMaxJobName);
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return name;
}

}  // namespace

bool ShoalJob::has_finalizer() const {
  return std::ranges::find(finalizers, kFinalizer) != finalizers.end();
}

std::string ShoalJob::StatusText(std::string_view field) const {
  return GetStringOr(status, field, "");
}

int64_t ShoalJob::observed_generation() const { return GetIntOr(status, "observedGeneration", 0); }

Result<json::object> ParseAnswer(std::string_view text) {
  Result<json::object> parsed = ParseJsonObject(text);
  if (!parsed.ok()) parsed = ParseJsonObject(WithoutDepths(text));
  if (!parsed.ok()) return DataLoss("the API server's answer is no JSON object");
  return parsed;
}

Result<ShoalJob> DecodeShoalJob(const json::object& object) {
  const json::object& meta = ObjectOf(object, "metadata");
  const json::object& spec = ObjectOf(object, "spec");
  ShoalJob made;
  made.key = {GetStringOr(meta, "namespace", ""), GetStringOr(meta, "name", "")};
  made.uid = GetStringOr(meta, "uid", "");
  made.version = GetStringOr(meta, "resourceVersion", "");
  if (!IsDnsName(made.key.name, kMaxObjectName) || !IsDnsName(made.key.name_space, kMaxNamespace))
    return InvalidArgument("a ShoalJob has a name or a namespace that no API server gives");
  if (!IsUid(made.uid))
    return InvalidArgument("ShoalJob " + made.key.text() + " has no uid, or a wrong one");
  made.generation = GetIntOr(meta, "generation", 0);
  made.deleting = !GetStringOr(meta, "deletionTimestamp", "").empty();
  if (const json::value* const list = meta.if_contains("finalizers");
      list != nullptr && list->is_array()) {
    for (const json::value& one : list->get_array())
      if (one.is_string() && made.finalizers.size() < kMaxFinalizers)
        made.finalizers.emplace_back(one.get_string());
  }
  made.suspend = GetBoolOr(spec, "suspend", false);
  if (const json::value* const job = spec.if_contains("job");
      job != nullptr && IsDeeper(*job, kMaxJobDepth)) {
    made.unreadable = "spec.job is nested more deeply than " + std::to_string(kMaxJobDepth) +
                      " levels, expected the fields of a job file";
  } else {
    made.job = ObjectOf(spec, "job");
  }
  made.status = ObjectOf(object, "status");
  return made;
}

Result<ShoalJobList> DecodeShoalJobs(const json::object& list) {
  const json::object& meta = ObjectOf(list, "metadata");
  ShoalJobList made;
  made.version = GetStringOr(meta, "resourceVersion", "");
  made.continues = GetStringOr(meta, "continue", "");
  const json::value* const items = list.if_contains("items");
  if (made.version.empty() || items == nullptr || !items->is_array())
    return DataLoss("the API server's list of ShoalJobs has no items or no version");
  for (const json::value& one : items->get_array()) {
    if (!one.is_object()) continue;
    Result<ShoalJob> job = DecodeShoalJob(one.get_object());
    if (job.ok()) made.items.push_back(std::move(*job));
  }
  return made;
}

Result<ShoalJobEvent> DecodeShoalJobLine(std::string_view line) {
  const Result<json::object> parsed = ParseAnswer(line);
  TRY(parsed.status());
  const json::object& object = ObjectOf(*parsed, "object");
  ShoalJobEvent event;
  const std::string type = GetStringOr(*parsed, "type", "");
  if (type == "ERROR") {
    event.kind = ShoalJobEvent::Kind::kError;
    event.error_code = static_cast<int>(GetIntOr(object, "code", 0));
    event.error = GetStringOr(object, "message", "the API server gives no reason");
    return event;
  }
  event.version = GetStringOr(ObjectOf(object, "metadata"), "resourceVersion", "");
  if (type == "BOOKMARK") event.kind = ShoalJobEvent::Kind::kBookmark;
  if (type == "ADDED" || type == "MODIFIED") event.kind = ShoalJobEvent::Kind::kChanged;
  if (type == "DELETED") event.kind = ShoalJobEvent::Kind::kDeleted;
  const bool of_job =
      event.kind == ShoalJobEvent::Kind::kChanged || event.kind == ShoalJobEvent::Kind::kDeleted;
  if (!of_job) return event;
  if (Result<ShoalJob> job = DecodeShoalJob(object); job.ok()) event.job = std::move(*job);
  return event;
}

std::string JobFileOf(const ShoalJob& object) {
  json::object job = object.job;
  if (!job.contains("name")) job["name"] = JobNameOf(object.key.name);
  return job::EmitYaml(job::FromJson(json::value(std::move(job))), {});
}

std::string FrozenDigest(const json::object& job) {
  json::object frozen = job;
  if (json::value* const roles = frozen.if_contains("roles");
      roles != nullptr && roles->is_object()) {
    for (auto& role : roles->get_object())
      if (role.value().is_object()) role.value().get_object().erase("replicas");
  }
  return Sha256Hex(ToText(Sorted(frozen)));
}

std::map<std::string, int> ReplicasOf(const json::object& job) {
  std::map<std::string, int> replicas;
  for (const auto& role : ObjectOf(job, "roles")) {
    if (!role.value().is_object()) continue;
    const int64_t number = GetIntOr(role.value().get_object(), "replicas", -1);
    if (number >= 0 && number <= job::kMaxTasks)
      replicas[std::string(role.key())] = static_cast<int>(number);
  }
  return replicas;
}

}  // namespace shoal::api
