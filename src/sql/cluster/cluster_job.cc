#include "sql/cluster/cluster_job.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "job/file/parse.h"
#include "job/text/yaml_tree.h"
#include "sql/cluster/mlsql_module.h"
#include "sql/cluster/row_parts.h"
#include "sql/tables/save_table.h"
#include "sql/training/train_plan.h"

namespace shoal::sql {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProject = "project";
constexpr const char* kProjectFile = "MLproject";
constexpr size_t kMaxProjectFile = size_t{1} << 20;
constexpr size_t kMaxScore = 64;

bool OnPath(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

const job::Node* FieldOf(const job::Node* node, std::string_view name) {
  if (node == nullptr || node->kind != job::Node::Kind::kMap) return nullptr;
  for (size_t i = 0; i < node->keys.size(); ++i) {
    if (node->keys[i].text == name) return &node->items[i];
  }
  return nullptr;
}

json::object TextsOf(const std::map<std::string, std::string>& texts) {
  json::object object;
  for (const auto& [name, text] : texts) object[name] = text;
  return object;
}

// Copies a file, or a directory with everything in it but `skipped`, without following links within
// it.
Status CopyTree(const fs::path& from, const fs::path& to, const std::vector<fs::path>& skipped) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(from, error))) {
    fs::copy(from, to, fs::copy_options::copy_symlinks, error);
    return error ? ErrnoStatus(error.value(), "cannot copy " + from.string()) : Status::Ok();
  }
  TRY(MakeDirectories(to));
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const fs::path& path = entry.path();
    if (std::find(skipped.begin(), skipped.end(), path.lexically_normal()) == skipped.end())
      TRY(CopyTree(path, to / path.filename(), skipped));
  }
  return error ? ErrnoStatus(error.value(), "cannot read " + from.string()) : Status::Ok();
}

bool HoldsAnything(const fs::path& directory) {
  std::error_code error;
  return fs::is_directory(directory, error) && !fs::is_empty(directory, error) && !error;
}

// Whether the directory is a model of an earlier statement, or empty.
bool IsClusterModel(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name != "model" && name != "meta") return false;
  }
  return !error;
}

}  // namespace

Result<ClusterJob> ClusterJob::Make(const ClusterParams& params, const ClusterInput& input) {
  const fs::path target = AbsolutePath(input.path);
  std::error_code ignored;  // what cannot be looked at fails below
  if (!params.keep_version && fs::exists(target, ignored) && !IsClusterModel(target))
    return FailedPrecondition(target.string() +
                              " is no model of such a statement; train to another path");
  TRY_ASSIGN(StagedDirectory directory, StagedDirectory::Create(target));
  ClusterJob made(params, target, std::move(directory));
  TRY(made.CopyProject(input));
  TRY(made.WriteParts(input));
  TRY(made.WritePlan(input));
  TRY(made.MakeJob());
  return made;
}

Status ClusterJob::CopyProject(const ClusterInput& input) {
  if (params_.script.text.empty()) {
    TRY(WriteScripts(input.scripts));
    return WriteModules();
  }
  const fs::path script = (fs::path(input.folder) / params_.script.text).lexically_normal();
  std::error_code error;
  const fs::file_status status = fs::status(script, error);
  if (!fs::exists(status)) return NotFound("there is no script " + script.string());
  TRY(fs::is_directory(status) ? ReadProject(script) : CopyScript(script));
  return WriteModules();
}

// Modules that the user's project does not bring itself.
Status ClusterJob::WriteModules() const {
  const fs::path project = directory_.path() / kProject;
  std::error_code ignored;  // what cannot be looked at cannot be written either
  if (!fs::exists(project / "mlsql.py", ignored))
    TRY(WriteFileAtomically(project / "mlsql.py", MlsqlModule()));
  if (fs::exists(project / "pyjava", ignored)) return Status::Ok();
  TRY(MakeDirectories(project / "pyjava" / "api"));
  TRY(WriteFileAtomically(project / "pyjava" / "__init__.py", ""));
  TRY(WriteFileAtomically(project / "pyjava" / "api" / "__init__.py", ""));
  return WriteFileAtomically(project / "pyjava" / "api" / "mlsql.py",
                             "from mlsql import PythonProjectContext\n");
}

void ClusterJob::SetCommand(const std::string& script) {
  command_ = {params_.python};
  command_.insert(command_.end(), params_.python_arguments.begin(), params_.python_arguments.end());
  command_.push_back(script);
}

Status ClusterJob::CopyScript(const fs::path& script) {
  TRY(ChoosePython());
  TRY(MakeDirectories(directory_.path() / kProject));
  SetCommand(script.filename().string());
  std::error_code error;
  fs::copy_file(script, directory_.path() / kProject / script.filename(), error);
  return error ? ErrnoStatus(error.value(), "cannot copy " + script.string()) : Status::Ok();
}

Status ClusterJob::WriteScripts(const std::map<std::string, std::string>& scripts) {
  TRY(ChoosePython());
  TRY(MakeDirectories(directory_.path() / kProject));
  for (const auto& [name, text] : scripts)
    TRY(WriteFileAtomically(directory_.path() / kProject / (name + ".py"), text));
  SetCommand(params_.entry.text + ".py");
  return Status::Ok();
}

// entry_points.main.train.command, or main.command, of MLflow's file.
Status ClusterJob::ReadProject(const fs::path& project) {
  const Result<std::string> text = ReadFile(project / kProjectFile, kMaxProjectFile);
  if (!text.ok())
    return NotFound(project.string() + " holds no file " + kProjectFile +
                    "; name a script, or a directory with an MLflow project");
  job::Errors errors((project / kProjectFile).string(), {});
  const job::Node root = job::ParseYaml(*text, -1, &errors);
  TRY(errors.ToStatus());
  const job::Node* const main = FieldOf(FieldOf(&root, "entry_points"), "main");
  const job::Node* command = FieldOf(FieldOf(main, "train"), "command");
  if (command == nullptr) command = FieldOf(main, "command");
  if (command == nullptr || command->text.empty())
    return InvalidArgument((project / kProjectFile).string() +
                           " has no entry_points.main.command, such as python train.py");
  if (FieldOf(&root, "conda_env") != nullptr)
    notes_.push_back("conda_env of " + project.string() +
                     " is not made; a requirements.txt in it becomes the tasks' environment");
  command_ = {"sh", "-c", command->text};
  // The model may be trained to a place within the project.
  return CopyTree(project, directory_.path() / kProject, {target_, directory_.path()});
}

Status ClusterJob::ChoosePython() {
  if (const auto env = params_.system.find("pythonEnv"); env != params_.system.end()) {
    const fs::path python = fs::path(env->second) / "bin" / "python";
    if (env->second.starts_with('/') && ::access(python.c_str(), X_OK) == 0) {
      params_.python = python.string();
    } else {
      notes_.push_back("PYTHON_ENV has no effect: " + env->second +
                       " is no directory with bin/python");
    }
  }
  const auto version = params_.system.find("pythonVer");
  const bool two = version != params_.system.end() && version->second.starts_with('2');
  const bool here = params_.engine.empty() || params_.engine == "local";
  if (params_.python != "python" || !here) return Status::Ok();
  // As in MLSQL pythonPath is what runs, whatever version it is.
  if (!OnPath("python")) params_.python = two && OnPath("python2.7") ? "python2.7" : "python3";
  if (two && params_.python != "python2.7")
    notes_.push_back("systemParam.pythonVer is " + version->second + "; the script runs under " +
                     params_.python + ", whatever its version is");
  if (OnPath(params_.python)) return Status::Ok();
  return NotFound("there is no python in PATH; name one with `systemParam.pythonPath`");
}

// The rows as a file of JSON lines: the table's own, if it is one.
Result<std::string> ClusterJob::RowsFile(const Table& table, const std::string& name,
                                         const std::function<bool()>& stopped) const {
  const SaveOptions how{SaveMode::kErrorIfExists, data::RecordFormat::kJsonLines, directory_.path(),
                        stopped};
  const std::string file = (directory_.path() / name).string();
  TRY(SaveTable(table, file, how).status());
  return file;
}

fs::path ClusterJob::DataOf(const ClusterGroup& group) const {
  const fs::path data = directory_.path() / "data";
  if (params_.kind == ClusterKind::kPythonAlg) return data / "all";
  return data / std::to_string(group.number);
}

Status ClusterJob::WriteParts(const ClusterInput& input) {
  if (!params_.local_data) return Status::Ok();
  std::vector<fs::path> folders;
  for (int index = 0; index < params_.workers; ++index) {
    for (const ClusterGroup& group : params_.groups) {
      if (group.role == "worker" && group.index == index) folders.push_back(DataOf(group));
    }
  }
  if (params_.kind == ClusterKind::kPythonAlg) folders.resize(1);  // all rows for each
  return WriteRowParts(*input.table, params_.csv_data, folders, input.stopped);
}

Status ClusterJob::WritePlan(const ClusterInput& input) {
  json::array rows, validate, groups;
  if (!params_.local_data) {
    TRY_ASSIGN(const std::string file, RowsFile(*input.table, "rows.jsonl", input.stopped));
    rows.emplace_back(file);
  }
  if (input.validate != nullptr) {
    TRY_ASSIGN(const std::string file, RowsFile(*input.validate, "validate.jsonl", input.stopped));
    validate.emplace_back(file);
  }
  for (const ClusterGroup& group : params_.groups) {
    const std::string number = std::to_string(group.number);
    json::object fit = TextsOf(group.params);
    fit.emplace("modelPath", target_.string());
    fs::path data = DataOf(group);
    TRY(MakeDirectories(data));
    // DTF's programs open the path as a file.
    if (params_.kind == ClusterKind::kDtf)
      data /= params_.csv_data ? "part-00000.csv" : "part-00000.json";
    groups.push_back({{"role", group.role},
                      {"index", group.index},
                      {"fitParam", std::move(fit)},
                      {"resource", TextsOf(group.resources)},
                      {"data", data.string()},
                      {"model", (directory_.path() / "model" / number).string()},
                      {"checkpoint", (directory_.path() / "checkpoint" / number).string()},
                      {"score", (directory_.path() / "score" / number).string()}});
  }
  TRY(MakeDirectories(directory_.path() / "score"));
  TRY(MakeDirectories(directory_.path() / "model"));
  TRY(MakeDirectories(directory_.path() / "checkpoint"));
  const json::object plan{{"groups", std::move(groups)},
                          {"rows", std::move(rows)},
                          {"validate", std::move(validate)},
                          {"cluster", (directory_.path() / "cluster.json").string()},
                          {"systemParam", TextsOf(params_.system)},
                          {"kafkaParam", TextsOf(params_.kafka)}};
  return WriteFileAtomically(directory_.path() / "plan.json", ToText(plan));
}

// Every worker must succeed; parameter servers are stopped after them.
Status ClusterJob::MakeJob() {
  json::object worker{{"replicas", params_.workers}};
  json::object resources;
  for (const auto& [name, value] : params_.limits) resources[name] = value;
  if (!resources.empty()) worker["resources"] = std::move(resources);
  json::object roles;
  if (params_.servers > 0) roles["ps"] = json::object{{"replicas", params_.servers}};
  roles["worker"] = std::move(worker);
  const bool cluster = params_.kind != ClusterKind::kPythonAlg;
  const json::object file{
      {"name", !params_.name.empty() ? params_.name
               : cluster             ? "dtf"
                                     : "python"},
      {"framework", cluster ? "tensorflow" : "generic"},
      {"files", (directory_.path() / kProject).string()},
      {"command", json::array(command_.begin(), command_.end())},
      {"env", json::object{{"MLSQL_PLAN", (directory_.path() / "plan.json").string()},
                           {"PYTHONUNBUFFERED", "1"}}},
      {"roles", std::move(roles)},
      {"success", json::object{{"all", "worker"}}}};
  TRY_ASSIGN(job_, job::ParseJob(ToText(file), std::string(NameOf(params_.kind))));
  job_.file.clear();
  return Status::Ok();
}

Status ClusterJob::CollectModels(const fs::path& result) const {
  bool any = false;
  for (const ClusterGroup& group : params_.groups) {
    if (group.role != "worker") continue;
    if (params_.chief >= 0 && group.index != params_.chief) continue;
    const std::string number = std::to_string(group.number);
    for (const char* const kind : {"model", "checkpoint"}) {
      const fs::path saved = directory_.path() / kind / number;
      if (!HoldsAnything(saved)) continue;
      std::error_code error;
      fs::rename(saved, result / "model" / number, error);
      if (error) return ErrnoStatus(error.value(), "cannot move " + saved.string());
      any = true;
      break;
    }
  }
  if (any) return Status::Ok();
  if (params_.chief >= 0)
    return FailedPrecondition("the chief, worker " + std::to_string(params_.chief) +
                              ", saved no model; it saves to output_model_dir()");
  return FailedPrecondition(
      "no worker saved a model; scripts save to "
      "mlsql.internal_system_param[\"tempModelLocalPath\"] "
      "or [\"checkpointDir\"]");
}

std::optional<double> ClusterJob::ScoreOf(uint64_t number) const {
  const Result<std::string> text =
      ReadFile(directory_.path() / "score" / std::to_string(number), kMaxScore);
  if (!text.ok()) return std::nullopt;
  double score = 0;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), score);
  if (parsed.ec != std::errc() || !std::isfinite(score)) return std::nullopt;
  return score;
}

std::string ClusterJob::AddressOf(const ClusterGroup& group) const {
  const Result<std::string> text = ReadFile(directory_.path() / "cluster.json", kMaxProjectFile);
  if (!text.ok()) return "";
  const Result<json::object> roles = ParseJsonObject(*text);
  if (!roles.ok()) return "";
  const auto role = roles->find(group.role);
  if (role == roles->end() || !role->value().is_array()) return "";
  const json::array& addresses = role->value().get_array();
  const auto index = static_cast<size_t>(group.index);
  if (index >= addresses.size() || !addresses[index].is_string()) return "";
  return std::string(addresses[index].get_string());
}

Result<fs::path> ClusterJob::Publish(const MetaRows& meta_rows) {
  const fs::path result = directory_.path() / "result";
  TRY(MakeDirectories(result / "model"));
  TRY(MakeDirectories(result / "meta" / "0"));
  TRY(CollectModels(result));
  const auto write_meta = [&](const fs::path& model) -> Status {
    TRY_ASSIGN(const std::string rows, meta_rows(model.string()));
    return WriteFileAtomically(result / "meta" / "0" / "part-00000.jsonl", rows);
  };
  std::error_code ignored;  // the move reports what is wrong
  if (!params_.keep_version) {
    const bool replace = fs::exists(target_, ignored);
    if (replace && !IsClusterModel(target_))
      return FailedPrecondition(target_.string() + " is no model of such a statement");
    TRY(write_meta(target_));
    TRY(MoveDirectory(result, target_, replace));
    return target_;
  }
  TRY(MakeDirectories(target_));
  for (;;) {
    const fs::path version = NextVersion(target_);
    TRY(write_meta(version));
    const Status moved = MoveDirectory(result, version, false);
    if (moved.ok()) return version;
    if (moved.code() != Code::kAlreadyExists) return moved;  // else another statement took it
  }
}

}  // namespace shoal::sql
