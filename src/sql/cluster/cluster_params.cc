#include "sql/cluster/cluster_params.h"

#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "job/text/units.h"

namespace shoal::sql {
namespace {

constexpr std::string_view kFitParam = "fitParam.";
constexpr std::string_view kResource = "resource.";

const std::vector<std::string>& KnownParams() {
  static const std::vector<std::string> names = {"pythonScriptPath",
                                                 "pythonDescPath",
                                                 "keepVersion",
                                                 "enableDataLocal",
                                                 "dataLocalFormat",
                                                 "distributeEveryExecutor",
                                                 "validateTable",
                                                 "engine",
                                                 "name",
                                                 "fitParam.0.jobName",
                                                 "fitParam.0.taskIndex",
                                                 "systemParam.pythonPath",
                                                 "systemParam.pythonVer",
                                                 "systemParam.pythonParam",
                                                 "kafkaParam.bootstrap.servers",
                                                 "resource.memory",
                                                 "resource.cpu",
                                                 "resource.gpu"};
  return names;
}

// "fitParam.12.name" → 12 and "name".
std::optional<std::pair<uint64_t, std::string>> SplitGroup(std::string_view key) {
  key.remove_prefix(kFitParam.size());
  uint64_t number = 0;
  const auto parsed = std::from_chars(key.data(), key.data() + key.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  key.remove_prefix(static_cast<size_t>(parsed.ptr - key.data()));
  if (!key.starts_with('.') || key.size() < 2) return std::nullopt;
  return std::pair(number, std::string(key.substr(1)));
}

class GroupReader {
 public:
  GroupReader(const ScriptText& script, Span span) : script_(script), span_(span) {}

  Status Add(const Option& option) {
    const auto split = SplitGroup(option.key.text);
    if (!split)
      return script_.Error(option.key.span, "got " + option.key.text.substr(0, 64) +
                                                ", expected fitParam.NUMBER.NAME");
    Read& read = groups_[split->first];
    if (groups_.size() > kMaxGroups)
      return script_.Error(option.key.span, "there are more than " + std::to_string(kMaxGroups) +
                                                " groups fitParam.N");
    if (read.first.end == 0) read.first = option.key.span;
    if (split->second.starts_with(kResource)) {
      read.group.resources[split->second.substr(kResource.size())] = option.value.text;
      return Status::Ok();
    }
    read.group.params[split->second] = option.value.text;
    if (split->second == "jobName") read.role = option.value;
    if (split->second == "taskIndex") read.index = option.value;
    return Status::Ok();
  }

  Status Finish(ClusterParams* params) {
    if (groups_.empty())
      return script_.Error(
          span_,
          "the cluster has no tasks; give each one `fitParam.N.jobName` = \"worker\" or "
          "\"ps\" and `fitParam.N.taskIndex`");
    std::map<std::string, std::map<int, Span>> seen;
    for (auto& [number, read] : groups_) {
      TRY(FinishGroup(number, &read));
      const ClusterGroup& group = read.group;
      if (!seen[group.role].emplace(group.index, read.index->span).second)
        return script_.Error(read.index->span, "the task " + group.role + " " +
                                                   std::to_string(group.index) + " is given twice");
      params->groups.push_back(std::move(read.group));
    }
    for (const char* const role : {"worker", "ps"}) {
      int next = 0;
      for (const auto& [index, span] : seen[role]) {
        if (index != next)
          return script_.Error(span, "there is the task " + std::string(role) + " " +
                                         std::to_string(index) + ", but none with the index " +
                                         std::to_string(next) + "; number them from 0");
        ++next;
      }
      (std::string_view(role) == "worker" ? params->workers : params->servers) = next;
    }
    if (params->workers == 0)
      return script_.Error(span_,
                           "the cluster has no worker; give one `fitParam.N.jobName` = \"worker\"");
    return Status::Ok();
  }

 private:
  struct Read {
    ClusterGroup group;
    Span first;  // of the group's first key
    std::optional<Word> role;
    std::optional<Word> index;
  };

  Status FinishGroup(uint64_t number, Read* read) {
    const std::string name = "fitParam." + std::to_string(number);
    if (!read->role)
      return script_.Error(read->first, name + ".jobName is missing; expected worker or ps");
    if (!read->index)
      return script_.Error(read->first, name + ".taskIndex is missing; expected a number from 0");
    if (read->role->text != "worker" && read->role->text != "ps")
      return script_.Error(read->role->span,
                           "got " + read->role->text.substr(0, 64) + ", expected worker or ps");
    const auto index = job::ParseInteger(read->index->text);
    if (!index || *index < 0 || *index >= static_cast<int64_t>(kMaxGroups))
      return script_.Error(read->index->span,
                           "got " + read->index->text.substr(0, 64) + ", expected a number from 0");
    read->group.number = number;
    read->group.role = read->role->text;
    read->group.index = static_cast<int>(*index);
    return Status::Ok();
  }

  const ScriptText& script_;
  const Span span_;
  std::map<uint64_t, Read> groups_;
};

// Words of "-u,-W,ignore".
std::vector<std::string> SplitWords(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream rest(text);
  for (std::string word; std::getline(rest, word, ',');) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

Status TakeData(OptionList* options, ClusterParams* params) {
  TRY_ASSIGN(params->local_data, options->TakeFlag("enableDataLocal", false));
  TRY_ASSIGN(params->keep_version, options->TakeFlag("keepVersion", true));
  TRY(options->TakeFlag("distributeEveryExecutor", false).status());  // MLSQL ignores it too
  if (const auto format = options->Take("dataLocalFormat")) {
    params->csv_data = format->value.text == "csv";
    if (!params->csv_data && format->value.text != "json")
      return options->script().Error(
          format->value.span, "got " + format->value.text.substr(0, 64) + ", expected json or csv");
  }
  if (const auto table = options->Take("validateTable")) params->validate_table = table->value;
  for (const char* const name : {"memory", "cpu", "gpu"}) {
    if (const auto option = options->Take(std::string(kResource) + name))
      params->limits[name] = option->value.text;
  }
  params->engine = options->TakeText("engine", "");
  params->name = options->TakeText("name", "");
  return Status::Ok();
}

// Whether the option belongs to a section such as kafkaParam; then its value is kept.
bool TakeSection(const Option& option, std::string_view section,
                 std::map<std::string, std::string>* values) {
  if (!option.key.text.starts_with(section)) return false;
  (*values)[option.key.text.substr(section.size())] = option.value.text;
  return true;
}

}  // namespace

Result<ClusterParams> TakeClusterParams(Span span, OptionList* options) {
  ClusterParams params;
  for (const char* const name : {"pythonScriptPath", "pythonDescPath"}) {
    if (const auto option = options->Take(name)) params.script = option->value;
  }
  TRY(TakeData(options, &params));
  const ScriptText& script = options->script();
  GroupReader groups(script, span);
  for (const Option& option : options->TakeRest()) {
    if (option.key.text.starts_with(kFitParam)) {
      TRY(groups.Add(option));
      continue;
    }
    if (TakeSection(option, "systemParam.", &params.system) ||
        TakeSection(option, "kafkaParam.", &params.kafka))
      continue;
    return OptionList(script, {option}).RefuseRest(KnownParams());
  }
  // After the other parameters, one of which may be its misspelt name.
  if (params.script.text.empty())
    return script.Error(
        span, "the parameter pythonScriptPath is missing; it names the script of each task");
  TRY(groups.Finish(&params));
  if (const auto path = params.system.find("pythonPath"); path != params.system.end())
    params.python = path->second;
  if (const auto words = params.system.find("pythonParam"); words != params.system.end())
    params.python_arguments = SplitWords(words->second);
  return params;
}

}  // namespace shoal::sql
