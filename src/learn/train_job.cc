#include "learn/train_job.h"

#include <algorithm>
#include <regex>
#include <sstream>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "data/formats/record_reader.h"
#include "job/file/parse.h"

namespace shoal::learn {
namespace {

constexpr const char* kNoFile = "flags";

// "flags:1:176: roles.worker: …" → "roles.worker: …": removes locations in the generated text.
std::string WithoutPlaces(const std::string& text) {
  static const std::regex place("(^|\n)flags:[0-9]+:[0-9]+: ");
  return std::regex_replace(text, place, "$1");
}

// "clicks.csv.zst" is csv if the algorithm reads it; otherwise the algorithm's first format.
std::string FormatByName(const Algorithm& algorithm, const std::string& path) {
  const std::vector<std::string> formats = FormatsOf(algorithm);
  const std::string_view named = data::NameOf(data::FormatOfPath(path));
  const bool read = std::find(formats.begin(), formats.end(), named) != formats.end();
  return read ? std::string(named) : formats.front();
}

json::object DataOf(const std::string& format, const std::vector<std::string>& files) {
  json::array sources;
  for (const std::string& path : files) sources.emplace_back(path);
  return {{"source", std::move(sources)}, {"format", format}, {"shard_by", "worker"}};
}

// Job files are UTF-8, so paths in them must be.
Status CheckNames(const TrainRequest& request) {
  std::vector<std::string> names = request.data;
  names.insert(names.end(), request.test.begin(), request.test.end());
  names.insert(names.end(), {request.output, request.name});
  for (const std::string& name : names) {
    if (!IsUtf8(name))
      return InvalidArgument("got the name '" + EscapedUtf8(name) +
                             "', expected UTF-8; rename it, or give a link to it another name");
  }
  return Status::Ok();
}

json::object RolesOf(const TrainRequest& request) {
  const int servers = request.servers >= 0 ? request.servers : (request.workers > 1 ? 1 : 0);
  json::object roles;
  if (servers > 0) roles["server"] = json::object{{"replicas", servers}, {"follows", "worker"}};
  json::object worker{{"replicas", request.workers}};
  json::object resources;
  for (const auto& [name, value] : request.resources) resources[name] = value;
  if (!resources.empty()) worker["resources"] = std::move(resources);
  roles["worker"] = std::move(worker);
  return roles;
}

}  // namespace

std::vector<std::string> FormatsOf(const Algorithm& algorithm) {
  std::vector<std::string> formats;
  std::istringstream words{std::string(algorithm.formats)};
  for (std::string format; words >> format;) formats.push_back(format);
  return formats;
}

Result<job::Job> MakeTrainJob(const Algorithm& algorithm, const TrainRequest& request) {
  TRY(CheckNames(request));
  const std::string format =
      request.format.empty() ? FormatByName(algorithm, request.data.front()) : request.format;
  json::object data{{"train", DataOf(format, request.data)}};
  if (!request.test.empty()) data["test"] = DataOf(format, request.test);
  std::map<std::string, std::string> params = request.params;
  if (const auto given = params.find("validation");
      given != params.end() && !given->second.ends_with('%') && algorithm.held_out) {
    data["validation"] = DataOf(format, {given->second});
    params.erase(given);
  }
  const json::object file{
      {"name", request.name.empty() ? std::string(algorithm.name) : request.name},
      {"framework", "shoal"},
      {"learn", json::object{{"algorithm", algorithm.name}}},
      {"data", std::move(data)},
      {"roles", RolesOf(request)},
      {"checkpoint", json::object{{"every", request.checkpoint}}},
      {"outputs", json::object{{"model", request.output}}}};
  Result<job::Job> parsed = job::ParseJob(ToText(file), kNoFile);
  if (!parsed.ok()) return InvalidArgument(WithoutPlaces(parsed.status().message()));
  job::Job job = std::move(*parsed);
  job.file.clear();
  for (auto& [name, value] : job.learn) value.line = value.column = 0;
  for (const auto& [name, text] : params) job.learn[name] = {text, 0, 0};
  return job;
}

}  // namespace shoal::learn
