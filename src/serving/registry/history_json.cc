#include "serving/registry/history_json.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

namespace shoal::serving {
namespace {

constexpr size_t kShownDigest = 12;

void Flatten(const std::string& prefix, const json::object& object,
             std::map<std::string, std::string>* to) {
  for (const auto& field : object) {
    const std::string name = prefix + std::string(field.key());
    if (field.value().is_object()) {
      Flatten(name + ".", field.value().get_object(), to);
    } else if (field.value().is_string()) {
      (*to)[name] = std::string(field.value().get_string());
    } else if (field.value().is_double()) {
      (*to)[name] = fmt::format("{}", field.value().get_double());  // not 7.5E-1
    } else {
      (*to)[name] = ToText(field.value());
    }
  }
}

json::array TagsJson(const std::vector<std::string>& tags) {
  return json::array(tags.begin(), tags.end());
}

json::object BriefJson(const ModelVersion& version, const ModelHistory& history) {
  json::object object{{"version", version.number},
                      {"created", version.created},
                      {"by", version.by},
                      {"job", version.job},
                      {"source", version.source},
                      {"digest", version.digest},
                      {"bytes", version.bytes()},
                      {"files", version.files.size()},
                      {"format", GetStringOr(version.metadata, "format", "")},
                      {"tags", TagsJson(history.TagsOf(version.number))}};
  const json::object* const measures = MeasuresOf(version);
  object["measures"] = measures == nullptr ? json::object() : *measures;
  return object;
}

}  // namespace

json::object VersionJson(const std::string& name, const ModelVersion& version,
                         const ModelHistory& history) {
  json::object object = EntryOf(version);
  object.erase("op");
  object["name"] = name;
  object["tags"] = TagsJson(history.TagsOf(version.number));
  object["bytes"] = version.bytes();
  return object;
}

json::object HistoryJson(const std::string& name, const ModelHistory& history, Detail detail) {
  json::array versions;
  for (const ModelVersion& version : history.versions()) {
    if (detail == Detail::kWhole) {
      versions.push_back(VersionJson(name, version, history));
      versions.back().get_object()["deleted"] = version.deleted;
    } else if (!version.deleted) {
      versions.push_back(BriefJson(version, history));
    }
  }
  json::object tags;
  for (const auto& [tag, version] : history.tags()) tags[tag] = version;
  return {{"name", name},
          {"tags", std::move(tags)},
          {"previous", history.Before(kPromoted).value_or(0)},
          {"versions", std::move(versions)}};
}

Result<ModelHistory> HistoryFromJson(const json::object& object) {
  ModelHistory history;
  const json::value* const versions = object.if_contains("versions");
  if (versions == nullptr || !versions->is_array())
    return DataLoss("the description of a model has no versions");
  std::vector<uint64_t> deleted;
  for (const json::value& one : versions->get_array()) {
    if (!one.is_object()) return DataLoss("a version is no object");
    json::object entry = one.get_object();
    entry["op"] = "add";
    TRY(history.Apply(entry));
    if (GetBoolOr(entry, "deleted", false)) deleted.push_back(history.versions().size());
  }
  for (const uint64_t number : deleted) TRY(history.Apply({{"op", "delete"}, {"version", number}}));
  if (const json::object* const tags = FindObject(object, "tags"); tags != nullptr)
    for (const auto& [tag, version] : *tags)
      TRY(history.Apply({{"op", "tag"}, {"tag", tag}, {"version", version}}));
  return history;
}

const json::object* MeasuresOf(const ModelVersion& version) {
  for (const char* const name : {"held_out", "validation"}) {
    const json::object* const measures = FindObject(version.metadata, name);
    if (measures != nullptr && !measures->empty()) return measures;
  }
  return nullptr;
}

std::map<std::string, std::string> FlatFields(const json::object& object) {
  std::map<std::string, std::string> fields;
  Flatten("", object, &fields);
  return fields;
}

Differences Compare(const ModelVersion& first, const ModelVersion& second) {
  const auto fields = [](const ModelVersion& version) {
    auto all = FlatFields(version.metadata);
    for (const VersionFile& file : version.files)
      all["files." + file.name + ".sha256"] = file.sha256.substr(0, kShownDigest);
    return all;
  };
  Differences differing;
  for (const auto& [name, value] : fields(first)) differing[name].first = value;
  for (const auto& [name, value] : fields(second)) differing[name].second = value;
  std::erase_if(differing,
                [](const auto& entry) { return entry.second.first == entry.second.second; });
  return differing;
}

json::object DifferencesJson(const std::string& first, const std::string& second,
                             const Differences& differences) {
  json::object fields;
  for (const auto& [name, values] : differences)
    fields[name] = json::array{values.first, values.second};
  return {{"versions", json::array{first, second}}, {"differences", std::move(fields)}};
}

}  // namespace shoal::serving
