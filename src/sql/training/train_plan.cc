#include "sql/training/train_plan.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "job/text/errors.h"
#include "learn/train_job.h"
#include "sql/cluster/cluster_params.h"
#include "sql/syntax/lexer.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersion = "_model_";
constexpr std::string_view kFitParam = "fitParam.0.";

// The number of a version's directory; nothing for other names.
std::optional<uint64_t> VersionOf(const std::string& name) {
  if (!name.starts_with(kVersion)) return std::nullopt;
  uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kVersion.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

std::vector<uint64_t> VersionsOf(const fs::path& path) {
  std::vector<uint64_t> versions;
  std::error_code ignored;  // a path that is not there has none
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (const auto number = VersionOf(entry.path().filename().string()))
      versions.push_back(*number);
  }
  std::sort(versions.rbegin(), versions.rend());
  return versions;
}

fs::path VersionPath(const fs::path& path, uint64_t number) {
  return path / (std::string(kVersion) + std::to_string(number));
}

// "learn.epochs: got x, …" → "epochs: got x, …", since a statement has no section `learn`.
std::string WithoutSection(const std::string& sentence) {
  constexpr std::string_view kSection = "learn.";
  return sentence.starts_with(kSection) ? sentence.substr(kSection.size()) : sentence;
}

Status CheckParam(const learn::Algorithm& algorithm, const ScriptText& script, const Option& option,
                  const std::string& name) {
  const bool known = learn::FindParam(algorithm.params, name) != nullptr ||
                     learn::FindParam(learn::CommonParams(), name) != nullptr;
  if (!known) {
    std::vector<std::string> names = TrainJobParams();
    for (const learn::Param& param : algorithm.params) names.emplace_back(param.name);
    return script.Error(option.key.span, "there is no parameter " + name.substr(0, 64) + " of " +
                                             std::string(algorithm.name) +
                                             job::DidYouMean(name.substr(0, 64), names) +
                                             "; `shoal train " + std::string(algorithm.name) +
                                             " --help` lists them");
  }
  const std::map<std::string, job::LearnValue> one = {{name, {option.value.text, 0, 0}}};
  Status checked = learn::ParseParams(algorithm.params, one, "").status();
  if (checked.ok()) checked = learn::CheckNoRetiredParams(algorithm.params, one, "");
  return checked.ok() ? checked
                      : script.Error(option.value.span, WithoutSection(checked.message()));
}

Status TakeJobParams(const TrainInput& input, OptionList* options, learn::TrainRequest* request) {
  TRY_ASSIGN(const int64_t workers, options->TakeInteger("workers", 1, job::kMaxReplicas, 1));
  TRY_ASSIGN(const int64_t servers, options->TakeInteger("servers", 0, job::kMaxReplicas, -1));
  request->workers = static_cast<int>(workers);
  request->servers = static_cast<int>(servers);
  request->name = options->TakeText("name", "");
  request->checkpoint = options->TakeText("checkpoint", request->checkpoint);
  for (const char* const name : {"memory", "cpu", "gpu"}) {
    if (const auto option = options->Take(std::string("resource.") + name))
      request->resources[name] = option->value.text;
  }
  const std::optional<Option> test = options->Take("evaluateTable");
  if (!test) return Status::Ok();
  TRY_ASSIGN(const Table* const table, input.find_table(test->value));
  if (table->format != input.table->format)
    return options->script().Error(
        test->value.span,
        "this table is " + std::string(data::NameOf(table->format)) + ", the trained one " +
            std::string(data::NameOf(input.table->format)) + "; both must have one format");
  request->test = table->sources;
  return Status::Ok();
}

Status TakeLearnParams(const learn::Algorithm& algorithm, OptionList* options,
                       learn::TrainRequest* request) {
  const ScriptText& script = options->script();
  for (const Option& option : options->TakeRest()) {
    std::string name = option.key.text;
    if (name.starts_with(kFitParam)) {
      name = name.substr(kFitParam.size());
    } else if (name.starts_with("fitParam.")) {
      return script.Error(option.key.span,
                          "a built-in algorithm has one group of parameters, fitParam.0; train a "
                          "second model by a second statement");
    }
    TRY(CheckParam(algorithm, script, option, name));
    if (!request->params.emplace(name, option.value.text).second)
      return script.Error(option.key.span, "the parameter " + name + " is given twice");
  }
  return Status::Ok();
}

Status CheckFormat(const learn::Algorithm& algorithm, const Table& table) {
  const std::vector<std::string> formats = learn::FormatsOf(algorithm);
  const std::string_view format = data::NameOf(table.format);
  if (std::find(formats.begin(), formats.end(), format) != formats.end()) return Status::Ok();
  return InvalidArgument("the table is " + std::string(format) + ", expected " +
                         std::string(algorithm.formats) + " for " + std::string(algorithm.name));
}

}  // namespace

const std::vector<SqlAlgorithm>& SqlAlgorithms() {
  static const std::vector<SqlAlgorithm> algorithms = {
      {"LogisticRegression", "logistic", "Logistic regression: one of two classes, or of several"},
      {"LinearRegression", "linear", "Linear models: numbers, counts and classes"},
      {"FM", "fm", "Factorization machines"},
      {"FFM", "ffm", "Field-aware factorization machines"},
      {"Word2Vec", "word2vec", "Word vectors of a text"},
  };
  return algorithms;
}

const std::vector<std::string>& TrainJobParams() {
  static const std::vector<std::string> names = {
      "workers",     "servers",       "engine",          "name",         "checkpoint",
      "keepVersion", "evaluateTable", "resource.memory", "resource.cpu", "resource.gpu"};
  return names;
}

Result<const SqlAlgorithm*> FindSqlAlgorithm(const std::string& name) {
  if (ClusterKindOf(name))
    return InvalidArgument(name.substr(0, 64) +
                           " trains by the user's script, and only such a script reads its models");
  std::vector<std::string> names;
  std::string list;
  for (const SqlAlgorithm& one : SqlAlgorithms()) {
    std::string lower(one.name);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (one.name == name || IsKeyword(name, lower)) return &one;
    names.emplace_back(one.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  for (const char* const script : {"DTFAlg", "DTF", "PythonAlg"}) {  // statements/train_cluster.cc
    names.emplace_back(script);
    list += std::string(", ") + script;
  }
  return InvalidArgument("there is no algorithm " + name.substr(0, 64) + ", expected one of " +
                         list + job::DidYouMean(name.substr(0, 64), names));
}

Result<TrainPlan> PlanTraining(const TrainInput& input, OptionList* options) {
  const learn::Algorithm* const algorithm = learn::FindAlgorithm(input.algorithm->learn);
  SHOAL_CHECK(algorithm != nullptr);
  const ScriptText& script = options->script();
  TRY(script.Locate(input.span, CheckFormat(*algorithm, *input.table)));
  TrainPlan plan;
  TRY_ASSIGN(const bool keep, options->TakeFlag("keepVersion", false));
  plan.engine = options->TakeText("engine", "");
  learn::TrainRequest request;
  request.data = input.table->sources;
  request.format = data::NameOf(input.table->format);
  TRY(TakeJobParams(input, options, &request));
  TRY(TakeLearnParams(*algorithm, options, &request));
  plan.model = AbsolutePath(input.path);
  if (keep) plan.model = NextVersion(plan.model);
  request.output = plan.model.string();
  for (const auto& [name, value] : request.params) plan.params[name] = value;
  Result<job::Job> job = learn::MakeTrainJob(*algorithm, request);
  if (!job.ok()) return script.Locate(input.span, job.status());
  plan.job = std::move(*job);
  return plan;
}

fs::path NextVersion(const fs::path& path) {
  const std::vector<uint64_t> versions = VersionsOf(path);
  return VersionPath(path, versions.empty() ? 0 : versions.front() + 1);
}

Result<fs::path> FindModel(const std::string& path) {
  const fs::path root = AbsolutePath(path);
  std::error_code ignored;  // what cannot be looked at is no model
  if (fs::exists(root / "model.json", ignored)) return root;
  for (const uint64_t version : VersionsOf(root)) {
    const fs::path candidate = VersionPath(root, version);
    if (fs::exists(candidate / "model.json", ignored)) return candidate;
  }
  return NotFound("there is no model in " + root.string() +
                  "; train one with `train t as ALGORITHM.`" + path + "``");
}

}  // namespace shoal::sql
