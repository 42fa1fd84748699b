#include "sql/cluster/cluster_params.h"

#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "job/text/units.h"
#include "sql/syntax/lexer.h"

namespace shoal::sql {
namespace {

constexpr std::string_view kFitParam = "fitParam.";
constexpr std::string_view kResource = "resource.";
constexpr int64_t kMaxTasks = 10'000;

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
    if (params->kind == ClusterKind::kPythonAlg) return FinishInstances(params);
    if (params->kind == ClusterKind::kDtf) return FinishPartitions(params);
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

  // Each group is a worker with all rows.
  Status FinishInstances(ClusterParams* params) {
    if (groups_.empty()) groups_[0];
    for (auto& [number, read] : groups_) {
      read.group.number = number;
      read.group.role = "worker";
      read.group.index = params->workers++;
      params->groups.push_back(std::move(read.group));
    }
    return Status::Ok();
  }

  // One group for all tasks: workers for the partitions, and servers.
  Status FinishPartitions(ClusterParams* params) {
    for (const auto& [number, read] : groups_) {
      if (number != 0)
        return script_.Error(read.first,
                             "DTF has one group of parameters, fitParam.0; its workers are the "
                             "partitions of the table");
    }
    const ClusterGroup common = groups_[0].group;
    params->servers = 1;
    const std::map<std::string, std::string>& fit = common.params;
    for (const char* const name : {"ps.num", "psNum"})
      TRY(TakeNumber(fit, name, 0, kMaxTasks, &params->servers));
    params->chief = 0;
    TRY(TakeNumber(fit, "chiefIndex", 0, params->workers - 1, &params->chief));
    for (int task = 0; task < params->workers + params->servers; ++task) {
      ClusterGroup group = common;
      group.number = static_cast<uint64_t>(task);
      group.role = task < params->workers ? "worker" : "ps";
      group.index = task < params->workers ? task : task - params->workers;
      params->groups.push_back(std::move(group));
    }
    return Status::Ok();
  }

  Status TakeNumber(const std::map<std::string, std::string>& fit, const char* name, int64_t least,
                    int64_t most, int* value) const {
    const auto given = fit.find(name);
    if (given == fit.end()) return Status::Ok();
    const auto number = job::ParseInteger(given->second);
    if (!number || *number < least || *number > most)
      return script_.Error(groups_.at(0).first,
                           "got " + given->second.substr(0, 64) + " for fitParam.0." + name +
                               ", expected a number from " + std::to_string(least) + " to " +
                               std::to_string(most));
    *value = static_cast<int>(*number);
    return Status::Ok();
  }

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

// json or csv.
Status TakeFormat(OptionList* options, ClusterParams* params) {
  for (const char* const name : {"dataLocalFormat", "fileFormat", "fitParam.0.fileFormat"}) {
    const auto format = options->Take(name);
    if (!format) continue;
    params->csv_data = format->value.text == "csv";
    if (!params->csv_data && format->value.text != "json")
      return options->script().Error(
          format->value.span, "got " + format->value.text.substr(0, 64) + ", expected json or csv");
  }
  return Status::Ok();
}

Status TakeData(OptionList* options, ClusterParams* params) {
  const bool always = params->kind != ClusterKind::kDtfAlg;
  TRY_ASSIGN(params->local_data, options->TakeFlag("enableDataLocal", always));
  TRY_ASSIGN(params->keep_version, options->TakeFlag("keepVersion", true));
  TRY(options->TakeFlag("distributeEveryExecutor", false).status());  // MLSQL ignores it too
  TRY(TakeFormat(options, params));
  if (const auto table = options->Take("validateTable")) params->validate_table = table->value;
  for (const char* const name : {"memory", "cpu", "gpu"}) {
    if (const auto option = options->Take(std::string(kResource) + name))
      params->limits[name] = option->value.text;
  }
  params->engine = options->TakeText("engine", "");
  params->name = options->TakeText("name", "");
  return Status::Ok();
}

// The program: a path, or scripts of the session.
Status TakeScripts(OptionList* options, ClusterParams* params) {
  for (const char* const name : {"pythonScriptPath", "pythonDescPath"}) {
    if (const auto option = options->Take(name)) params->script = option->value;
  }
  if (const auto option = options->Take("scripts")) {
    for (const std::string& name : SplitWords(option->value.text))
      params->scripts.push_back({name, option->value.span});
  }
  if (const auto option = options->Take("entryPoint")) params->entry = option->value;
  if (const auto option = options->Take("condaFile"))
    params->system["condaFile"] = option->value.text;
  if (const auto option = options->Take("PYTHON_ENV"))
    params->system["pythonEnv"] = option->value.text;
  if (const auto option = options->Take("PYTHON_PARAMETERS"))
    params->system["pythonParam"] = option->value.text;
  if (params->entry.text.empty() && !params->scripts.empty())
    params->entry = params->scripts.front();
  if (params->entry.text.empty() || params->scripts.empty()) return Status::Ok();
  for (const Word& one : params->scripts) {
    if (one.text == params->entry.text) return Status::Ok();
  }
  return options->script().Error(
      params->entry.span,
      "the entry point " + params->entry.text.substr(0, 64) + " is none of `scripts`");
}

// Whether the option belongs to a section such as kafkaParam; then its value is kept.
bool TakeSection(const Option& option, std::string_view section,
                 std::map<std::string, std::string>* values) {
  if (!option.key.text.starts_with(section)) return false;
  (*values)[option.key.text.substr(section.size())] = option.value.text;
  return true;
}

}  // namespace

const std::vector<std::string>& ClusterParamNames() {
  static const std::vector<std::string> names = {"pythonScriptPath",
                                                 "pythonDescPath",
                                                 "scripts",
                                                 "entryPoint",
                                                 "condaFile",
                                                 "keepVersion",
                                                 "enableDataLocal",
                                                 "dataLocalFormat",
                                                 "fileFormat",
                                                 "distributeEveryExecutor",
                                                 "validateTable",
                                                 "engine",
                                                 "name",
                                                 "fitParam.0.jobName",
                                                 "fitParam.0.taskIndex",
                                                 "fitParam.0.psNum",
                                                 "systemParam.pythonPath",
                                                 "systemParam.pythonVer",
                                                 "systemParam.pythonParam",
                                                 "kafkaParam.bootstrap.servers",
                                                 "PYTHON_ENV",
                                                 "PYTHON_PARAMETERS",
                                                 "resource.memory",
                                                 "resource.cpu",
                                                 "resource.gpu"};
  return names;
}

std::string_view NameOf(ClusterKind kind) {
  switch (kind) {
    case ClusterKind::kDtf:
      return "DTF";
    case ClusterKind::kPythonAlg:
      return "PythonAlg";
    case ClusterKind::kDtfAlg:
      break;
  }
  return "DTFAlg";
}

std::optional<ClusterKind> ClusterKindOf(std::string_view algorithm) {
  if (IsKeyword(algorithm, "dtfalg")) return ClusterKind::kDtfAlg;
  if (IsKeyword(algorithm, "dtf")) return ClusterKind::kDtf;
  if (IsKeyword(algorithm, "pythonalg")) return ClusterKind::kPythonAlg;
  return std::nullopt;
}

Result<ClusterParams> TakeClusterParams(ClusterKind kind, int partitions, Span span,
                                        OptionList* options) {
  ClusterParams params;
  params.kind = kind;
  if (kind == ClusterKind::kDtf) params.workers = partitions;
  TRY(TakeScripts(options, &params));
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
    return OptionList(script, {option}).RefuseRest(ClusterParamNames());
  }
  // After the other parameters, one of which may be its misspelt name.
  if (params.script.text.empty() && params.scripts.empty())
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
