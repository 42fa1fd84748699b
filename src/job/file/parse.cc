#include "job/file/parse.h"

#include <filesystem>

#include "base/file.h"
#include "job/file/decode.h"
#include "job/file/trigger_fields.h"
#include "job/spec/members.h"

namespace shoal::job {
namespace {

bool HasScheme(const std::string& path) {
  const size_t colon = path.find("://");
  return colon != std::string::npos && colon > 0 && path.find('/') > colon;
}

void MakeAbsolute(const std::filesystem::path& base, std::string* path) {
  if (path->empty() || HasScheme(*path)) return;
  *path = (base / *path).lexically_normal().string();
}

}  // namespace

namespace {

// `matrix` and `sweep` alone, which decide what the references in the other fields stand for.
Triggers DecodeMembers(const Node& root, const std::string& file, Errors* errors) {
  Node part;
  part.kind = Node::Kind::kMap;
  part.place = root.place;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text != "matrix" && root.keys[i].text != "sweep") continue;
    part.keys.push_back(root.keys[i]);
    part.items.push_back(root.items[i]);
  }
  JobDraft draft;
  draft.job.file = file;
  draft.places.set = errors->overrides();
  if (!part.keys.empty()) Decode(part, &draft, errors);
  if (errors->empty()) ValidateMembers(draft, errors);
  return std::move(draft.job.triggers);
}

// Puts the values of a member in place of the references to them. False after an error.
bool SubstituteOne(const std::string& file, const DocumentOptions& options, Node* root,
                   bool* has_members, Errors* errors) {
  const Triggers triggers = DecodeMembers(*root, file, errors);
  *has_members = triggers.has_members();
  if (!errors->empty() || !*has_members) return errors->empty();
  const size_t index = options.member.value_or(0);
  const Result<MatrixValues> member = MemberOf(triggers, index);
  if (!member.ok()) {
    errors->Add(root->place, "", member.status().message());
    return false;
  }
  SubstituteMember(*member, index, root, errors);
  return errors->empty();
}

// Stops after each step that reported errors, since the next would report their consequences.
Result<Job> ParseRoot(Node root, const std::string& file, const DocumentOptions& options,
                      Errors* errors, FieldLocations* places) {
  const bool map = root.kind == Node::Kind::kMap || root.kind == Node::Kind::kNull;
  if (map) ApplyOverrides(options.overrides, &root, errors);
  bool has_members = false;
  const bool clean = errors->empty();  // else its errors are those of the file
  if (clean && root.kind == Node::Kind::kMap &&
      !SubstituteOne(file, options, &root, &has_members, errors))
    return errors->ToStatus();
  JobDraft draft;
  draft.job.file = file;
  draft.places.set = errors->overrides();
  Decode(root, &draft, errors);
  if (root.kind == Node::Kind::kMap) {
    ApplyDefaults(&draft);
    Validate(draft, errors);
  }
  if (!errors->empty()) return errors->ToStatus();
  if (places != nullptr) *places = std::move(draft.places);
  if (has_members && options.member) {
    draft.job.name += "-" + std::to_string(*options.member);
    draft.job.triggers.matrix = {};
    draft.job.triggers.sweep = {};
  }
  return std::move(draft.job);
}

bool CheckSize(std::string_view text, Errors* errors) {
  if (text.size() <= kMaxFileBytes) return true;
  errors->Add({}, "",
              "got a file of more than 1 MiB, expected a job file; long lists of data are better "
              "named by a pattern");
  return false;
}

}  // namespace

Result<Job> ParseJob(std::string_view text, const std::string& file,
                     const std::vector<std::string>& overrides, FieldLocations* places) {
  return ParseDocument(text, file, {.overrides = overrides}, places);
}

Result<Job> ParseDocument(std::string_view text, const std::string& file,
                          const DocumentOptions& options, FieldLocations* places) {
  Errors errors(file, options.overrides);
  if (!CheckSize(text, &errors)) return errors.ToStatus();
  Node root;
  if (!options.document) {
    root = ParseYaml(text, -1, &errors);
  } else {
    std::vector<Node> documents = ParseYamlDocuments(text, &errors);
    if (*options.document < documents.size()) root = std::move(documents[*options.document]);
  }
  // Without valid YAML there are no fields to check.
  if (!errors.empty() && root.kind == Node::Kind::kNull) return errors.ToStatus();
  return ParseRoot(std::move(root), file, options, &errors, places);
}

Result<std::vector<size_t>> ListDocuments(std::string_view text, const std::string& file) {
  Errors errors(file, {});
  if (!CheckSize(text, &errors)) return errors.ToStatus();
  const std::vector<Node> documents = ParseYamlDocuments(text, &errors);
  if (!errors.empty()) return errors.ToStatus();
  std::vector<size_t> numbers;
  for (size_t i = 0; i < documents.size(); ++i) {
    if (documents[i].kind != Node::Kind::kNull) numbers.push_back(i);
  }
  return numbers;
}

Result<std::string> ReadJobFile(const std::string& path) {
  if (path == "-") return ReadJobFile("/dev/stdin");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return InvalidArgument(path + ": got a directory, expected a job file");
  }
  auto text = ReadFile(path, kMaxFileBytes);
  if (text.ok()) return text;
  if (text.status().code() == Code::kResourceExhausted)
    return ParseJob(std::string(kMaxFileBytes + 1, ' '), path).status();
  return InvalidArgument("cannot read the job file: " + text.status().message());
}

Result<Job> ParseJobFile(const std::string& path, const std::vector<std::string>& overrides) {
  TRY_ASSIGN(const std::string text, ReadJobFile(path));
  return ParseJob(text, path, overrides);
}

Result<Volume> ParseVolume(const std::string& text) {
  Volume volume;
  std::string rest = text;
  if (rest.ends_with(":ro")) {
    volume.read_only = true;
    rest.resize(rest.size() - 3);
  } else if (rest.ends_with(":rw")) {
    rest.resize(rest.size() - 3);
  }
  const size_t colon = rest.rfind(':');
  volume.source = rest.substr(0, colon);
  volume.target = colon == std::string::npos ? "" : rest.substr(colon + 1);
  if (volume.source.empty() || volume.target.empty() || volume.target[0] != '/')
    return InvalidArgument("got '" + text +
                           "', expected SOURCE:TARGET or SOURCE:TARGET:ro with an "
                           "absolute TARGET");
  return volume;
}

void ResolvePaths(const FieldLocations& places, const std::string& folder, const std::string& here,
                  Job* job) {
  const auto resolve = [&](const std::string& field, std::string* path) {
    MakeAbsolute(places.Of(field).set >= 0 ? here : folder, path);
  };
  for (DataSource& data : job->data) {
    for (std::string& source : data.sources) resolve("data." + data.name + ".source", &source);
  }
  for (auto& [name, directory] : job->outputs) resolve("outputs." + name, &directory);
  for (std::string& volume : job->container.volumes) resolve("container.volumes", &volume);
  if (const auto from = job->learn.find("from"); from != job->learn.end())
    resolve("learn.from", &from->second.text);
  resolve("files", &job->files);
  resolve("marathon.authorities", &job->marathon.authorities);
}

}  // namespace shoal::job
