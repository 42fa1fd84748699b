#include "api/people/policy.h"

#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/access/directory_owner.h"
#include "job/file/fields.h"
#include "job/file/parse.h"
#include "job/text/errors.h"

namespace shoal::api {
namespace {

constexpr const char* kKind = "policy";
constexpr size_t kMaxEntries = 1000;
constexpr size_t kMaxEntry = 4096;

// Only `*` is special.
bool Matches(const std::string& pattern, const std::string& text) {
  std::string escaped;
  for (const char c : pattern) {
    if (c == '?' || c == '[' || c == '\\') escaped.push_back('\\');
    escaped.push_back(c);
  }
  return ::fnmatch(escaped.c_str(), text.c_str(), 0) == 0;
}

bool MatchesOne(const std::vector<std::string>& patterns, const std::string& text) {
  return std::ranges::any_of(patterns, [&](const std::string& one) { return Matches(one, text); });
}

std::string Listed(const std::vector<std::string>& texts) {
  if (texts.empty()) return "none";
  std::string list;
  for (const std::string& one : texts) list += (list.empty() ? "" : ", ") + one;
  return list;
}

std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

bool IsBelow(const std::string& path, const std::vector<std::string>& directories) {
  const std::string normal = Normal(path);
  return std::ranges::any_of(directories, [&](const std::string& directory) {
    const std::string root = Normal(directory);
    return normal == root || root == "/" || normal.starts_with(root + "/");
  });
}

// "roles.worker.env" as "roles.*.env", the form of the table of fields.
std::string TablePath(const std::string& path) {
  for (const std::string_view section : {"roles.", "data."}) {
    if (!path.starts_with(section)) continue;
    const size_t dot = path.find('.', section.size());
    return std::string(section) + "*" + (dot == std::string::npos ? "" : path.substr(dot));
  }
  return path;
}

// A path of the machine that a job file names, with its field.
struct NamedPath {
  std::string field;
  std::string path;
};

void AddVolumes(const job::Job& job, std::vector<NamedPath>* found) {
  for (const std::string& text : job.container.volumes) {
    const auto volume = job::ParseVolume(text);
    if (volume.ok() && volume->source.starts_with('/'))
      found->push_back({"container.volumes", volume->source});
  }
  const auto pods = [&](const std::string& field, const std::vector<std::string>& volumes) {
    constexpr std::string_view kHost = "host:";
    for (const std::string& text : volumes) {
      if (!text.starts_with(kHost)) continue;
      const size_t end = text.find(':', kHost.size());
      found->push_back(
          {field, text.substr(kHost.size(), end == std::string::npos ? end : end - kHost.size())});
    }
  };
  pods("kubernetes.volumes", job.kubernetes.volumes);
  for (const job::Role& role : job.roles)
    pods("roles." + role.name + ".kubernetes.volumes", role.kubernetes.volumes);
}

// Paths of the machine in an option of docker run, "volume=/a:/b" or "mount=type=bind,source=/a":
// what follows a ':' or `target` is in the container. Any other absolute path counts.
std::vector<std::string> PathsOfDockerOption(const std::string& option) {
  std::vector<std::string> paths;
  const size_t equals = option.find('=');
  if (equals == std::string::npos) return paths;
  const std::string name = option.substr(0, equals);
  std::string rest = option.substr(equals + 1);
  if (name == "volume" || name == "v") rest.resize(std::min(rest.find(':'), rest.size()));
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string word = rest.substr(0, comma);
    const size_t value = word.find('=') + 1;  // 0 without one
    const std::string key = value == 0 ? "" : word.substr(0, value - 1);
    const bool inside = key == "target" || key == "destination" || key == "dst";
    if (word.find('/') == value && !inside) paths.push_back(word.substr(value));
    rest.erase(0, comma + 1);
  }
  return paths;
}

std::vector<NamedPath> PathsOf(const job::Job& job) {
  std::vector<NamedPath> found;
  const auto add = [&](const std::string& field, std::string path) {
    constexpr std::string_view kFile = "file://";
    if (path.starts_with(kFile)) path.erase(0, kFile.size());
    if (path.starts_with('/')) found.push_back({field, std::move(path)});
  };
  for (const job::DataSource& data : job.data)
    for (const std::string& source : data.sources) add("data." + data.name + ".source", source);
  for (const auto& [name, directory] : job.outputs) add("outputs." + name, directory);
  for (const auto& [name, value] : job.learn) add("learn." + name, value.text);
  for (const std::string& uri : job.marathon.fetch) add("marathon.fetch", uri);
  for (const std::string& option : job.marathon.parameters)
    for (std::string& path : PathsOfDockerOption(option))
      found.push_back({"marathon.parameters", std::move(path)});
  add("marathon.authorities", job.marathon.authorities);
  AddVolumes(job, &found);
  return found;
}

class Checker {
 public:
  Checker(const Policy& policy, const PolicySubject& subject)
      : policy_(policy), subject_(subject) {}

  Status Check() const {
    if (policy_.engines && !MatchesOne(*policy_.engines, subject_.engine))
      return PermissionDenied("engine: got " + subject_.engine + ", but the team's policy allows " +
                              Listed(*policy_.engines));
    TRY(CheckFields());
    TRY(CheckImages());
    return CheckPaths();
  }

 private:
  Status Refuse(const std::string& field, const std::string& sentence) const {
    return PermissionDenied(subject_.locations.Prefix(subject_.job.file, field) + field + ": " +
                            sentence);
  }

  Status CheckFields() const {
    for (const auto& [path, location] : subject_.locations.at) {
      if (MatchesOne(policy_.forbidden, path) || MatchesOne(policy_.forbidden, TablePath(path)))
        return Refuse(path, "the team's policy forbids this field; leave it out");
    }
    for (const auto& [field, value] : policy_.fields) TRY(CheckFixed(field, value));
    return Status::Ok();
  }

  // A role's settings override the job's, and an option of sbatch the field beside it.
  Status CheckFixed(const std::string& field, const std::string& value) const {
    const std::string sentence =
        "the team's policy sets " + field + " to " + value + "; leave it out";
    for (const auto& [path, location] : subject_.locations.at) {
      if (path.starts_with("roles.") && TablePath(path) == "roles.*." + field)
        return Refuse(path, sentence);
    }
    constexpr std::string_view kSlurm = "slurm.";
    if (!field.starts_with(kSlurm)) return Status::Ok();
    const std::string name = "--" + field.substr(kSlurm.size());
    const auto names_it = [&](const std::string& option) {
      // sbatch takes any beginning of a name that is unique.
      const std::string given = option.substr(0, option.find('='));
      return given.size() > 2 && name.starts_with(given);
    };
    if (std::ranges::any_of(subject_.job.slurm.options, names_it))
      return Refuse("slurm.options", sentence);
    for (const job::Role& role : subject_.job.roles) {
      if (std::ranges::any_of(role.slurm.options, names_it))
        return Refuse("roles." + role.name + ".slurm.options", sentence);
    }
    return Status::Ok();
  }

  Status CheckImages() const {
    if (!policy_.images) return Status::Ok();
    for (const auto& [field, image] : {std::pair{"image", subject_.job.image},
                                       {"kubernetes.launcher", subject_.job.kubernetes.launcher}}) {
      if (!image.empty() && !MatchesOne(*policy_.images, image))
        return Refuse(field,
                      "got " + image + ", but the team's policy allows " + Listed(*policy_.images));
    }
    return Status::Ok();
  }

  Status CheckPaths() const {
    if (!policy_.paths) return Status::Ok();
    const std::string allowed = ", but the team's policy allows " + Listed(*policy_.paths);
    for (const NamedPath& one : PathsOf(subject_.job)) {
      if (!IsBelow(one.path, *policy_.paths)) return Refuse(one.field, "got " + one.path + allowed);
    }
    if (subject_.directory.empty() || IsBelow(subject_.directory, *policy_.paths))
      return Status::Ok();
    return PermissionDenied("directory: got " + subject_.directory + allowed);
  }

  const Policy& policy_;
  const PolicySubject& subject_;
};

Result<std::vector<std::string>> TextsOf(const json::value& value, const std::string& name) {
  const Status wrong = InvalidArgument(name + ": expected a list of at most " +
                                       std::to_string(kMaxEntries) + " texts");
  if (!value.is_array() || value.get_array().size() > kMaxEntries) return wrong;
  std::vector<std::string> texts;
  for (const json::value& one : value.get_array()) {
    if (!one.is_string() || one.get_string().empty() || one.get_string().size() > kMaxEntry)
      return wrong;
    texts.emplace_back(one.get_string());
  }
  return texts;
}

// Whether the pattern can match any field of job files.
bool IsFieldPattern(const std::string& pattern) {
  return std::ranges::any_of(job::Fields(), [&](const job::Field& field) {
    const std::string path(field.path);
    // "roles.worker.env" names a field of one role.
    return Matches(pattern, path) || TablePath(pattern) == path;
  });
}

Status CheckNames(const Policy& policy) {
  std::vector<std::string> names;
  for (const job::Field& field : job::Fields()) names.emplace_back(field.path);
  for (const std::string& pattern : policy.forbidden) {
    if (!IsFieldPattern(pattern))
      return InvalidArgument("forbidden: got " + pattern + ", which is no field of job files" +
                             job::DidYouMean(pattern, names));
  }
  for (const auto& [field, value] : policy.fields) {
    if (std::ranges::find(names, TablePath(field)) == names.end())
      return InvalidArgument("fields: got " + field + ", which is no field of job files" +
                             job::DidYouMean(field, names));
  }
  for (const std::string& path : policy.paths.value_or(std::vector<std::string>())) {
    if (!path.starts_with('/'))
      return InvalidArgument("paths: got " + path + ", expected an absolute path");
  }
  return Status::Ok();
}

json::array ArrayOf(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

}  // namespace

json::object ToJson(const Policy& policy) {
  json::object object;
  if (policy.engines) object["engines"] = ArrayOf(*policy.engines);
  if (policy.images) object["images"] = ArrayOf(*policy.images);
  if (policy.paths) object["paths"] = ArrayOf(*policy.paths);
  if (!policy.forbidden.empty()) object["forbidden"] = ArrayOf(policy.forbidden);
  json::object fields;
  for (const auto& [field, value] : policy.fields) fields[field] = value;
  if (!fields.empty()) object["fields"] = std::move(fields);
  if (policy.log_days) object["log_days"] = *policy.log_days;
  if (policy.log_bytes) object["log_bytes"] = *policy.log_bytes;
  if (!policy.user.empty()) object["user"] = policy.user;
  if (policy.isolated) object["isolated"] = true;
  if (policy.separate_network) object["separate_network"] = true;
  return object;
}

static Result<int64_t> NumberOf(const json::value& value, const std::string& name, int64_t least) {
  if (value.is_int64() && value.get_int64() >= least) return value.get_int64();
  return InvalidArgument(name + ": got " + ToText(value) + ", expected an integer of at least " +
                         std::to_string(least));
}

Result<Policy> ParsePolicy(const json::object& object) {
  Policy policy;
  for (const auto& [key, value] : object) {
    const std::string name(key);
    if (name == "engines") {
      TRY_ASSIGN(policy.engines, TextsOf(value, name));
    } else if (name == "images") {
      TRY_ASSIGN(policy.images, TextsOf(value, name));
    } else if (name == "paths") {
      TRY_ASSIGN(policy.paths, TextsOf(value, name));
    } else if (name == "forbidden") {
      TRY_ASSIGN(policy.forbidden, TextsOf(value, name));
    } else if (name == "fields" && value.is_object()) {
      for (const auto& [field, text] : value.get_object()) {
        if (!text.is_string() || text.get_string().size() > kMaxEntry)
          return InvalidArgument("fields: " + std::string(field) + ": expected a text");
        policy.fields.emplace(field, text.get_string());
      }
    } else if (name == "log_days") {
      TRY_ASSIGN(policy.log_days, NumberOf(value, name, 1));
    } else if (name == "log_bytes") {
      TRY_ASSIGN(policy.log_bytes, NumberOf(value, name, 0));
    } else if (name == "user" && value.is_string()) {
      policy.user = value.get_string();
      TRY(ParseUserIds(policy.user).status());
    } else if (name == "isolated" && value.is_bool()) {
      policy.isolated = value.get_bool();
    } else if (name == "separate_network" && value.is_bool()) {
      policy.separate_network = value.get_bool();
    } else {
      return InvalidArgument(
          name +
          ": expected one of engines, images, paths, forbidden, fields, log_days, log_bytes, user, "
          "isolated and separate_network" +
          job::DidYouMean(name, {"engines", "images", "paths", "forbidden", "fields", "log_days",
                                 "log_bytes", "user", "isolated", "separate_network"}));
    }
  }
  TRY(CheckNames(policy));
  return policy;
}

Status CheckPolicy(const Policy& policy, const PolicySubject& subject) {
  return Checker(policy, subject).Check();
}

Result<std::optional<UserIds>> TaskUserOf(const Policy& policy, const std::string& kind) {
  const bool on_machine = kind == "local" || kind == "local-apart" || kind == "slurm";
  if (!on_machine) return std::optional<UserIds>();
  if (policy.user.empty() && !policy.isolated) return std::optional<UserIds>();
  if (policy.user.empty())
    return PermissionDenied(
        "the team's policy asks for isolation, and the tasks of the engine " + kind +
        " would run as the server, since the policy names no user; an administrator sets `user` in "
        "it, or use an engine with containers");
  if (::geteuid() != 0)
    return FailedPrecondition("the team's tasks run as user " + policy.user + " on the engine " +
                              kind +
                              ", which only a server that runs as root can do; ask its "
                              "administrator, or use an engine with containers");
  TRY_ASSIGN(const UserIds user, ParseUserIds(policy.user));
  return std::optional(user);
}

std::vector<std::string> OverridesOf(const Policy& policy) {
  std::vector<std::string> overrides;
  for (const auto& [field, value] : policy.fields) overrides.push_back(field + "=" + value);
  return overrides;
}

// The record of the teams without one has the key "*", which no team can have.
static std::string KeyOf(const std::string& team) { return team.empty() ? "*" : team; }

Result<Policy> Policies::Get(const std::string& team) {
  const auto record = records_->Get(kKind, KeyOf(team));
  if (record.status().code() == Code::kNotFound)
    return NotFound(team.empty() ? "there is no policy for the teams without one"
                                 : "team " + team + " has no policy of its own");
  TRY(record.status());
  return ParsePolicy(record->body);
}

Status Policies::Set(const std::string& team, const Policy& policy) {
  return records_->Put(kKind, KeyOf(team), ToJson(policy), controller::kAnyVersion, clock_->Wall())
      .status();
}

Status Policies::Remove(const std::string& team) {
  const Status removed =
      records_->Delete(kKind, KeyOf(team), controller::kAnyVersion, clock_->Wall());
  return removed.code() == Code::kNotFound ? Get(team).status() : removed;
}

Result<Policy> Policies::Of(const std::string& team) {
  for (const std::string& one : {team, std::string()}) {
    auto policy = Get(one);
    if (policy.status().code() != Code::kNotFound) return policy;
  }
  return Policy();
}

}  // namespace shoal::api
