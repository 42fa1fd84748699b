#include "job/file/parse.h"

#include <filesystem>

#include "base/file.h"
#include "job/file/decode.h"

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

// Stops after each step that reported errors, since the next would report their consequences.
Result<Job> ParseJob(std::string_view text, const std::string& file,
                     const std::vector<std::string>& overrides, FieldLocations* places) {
  Errors errors(file, overrides);
  if (text.size() > kMaxFileBytes) {
    errors.Add({}, "",
               "got a file of more than 1 MiB, expected a job file; long lists of data are better "
               "named by a pattern");
    return errors.ToStatus();
  }
  Node root = ParseYaml(text, -1, &errors);
  // Without valid YAML there are no fields to check.
  const bool readable = errors.empty() || root.kind != Node::Kind::kNull;
  if (readable) {
    if (root.kind == Node::Kind::kMap || root.kind == Node::Kind::kNull) {
      ApplyOverrides(overrides, &root, &errors);
    }
    JobDraft draft;
    draft.job.file = file;
    draft.places.set = errors.overrides();
    Decode(root, &draft, &errors);
    if (root.kind == Node::Kind::kMap) {
      ApplyDefaults(&draft);
      Validate(draft, &errors);
    }
    if (errors.empty()) {
      if (places != nullptr) *places = std::move(draft.places);
      return std::move(draft.job);
    }
  }
  return errors.ToStatus();
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
  resolve("files", &job->files);
  resolve("marathon.authorities", &job->marathon.authorities);
}

}  // namespace shoal::job
