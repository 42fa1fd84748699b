#include "rendezvous/launcher/task_secrets.h"

#include <optional>
#include <set>

#include "base/base64.h"
#include "base/file.h"
#include "base/json.h"
#include "framework/framework_environment.h"
#include "job/execution/job_dir.h"
#include "job/spec/cluster_reference.h"

namespace shoal::rendezvous {
namespace {

constexpr size_t kMaxSecretsFile = 16 << 20;

class Filler {
 public:
  explicit Filler(const AttemptPaths& paths) : paths_(paths) {}

  Result<std::string> Fill(const std::string& value) {
    std::string filled;
    size_t at = 0;
    while (const auto mark = job::FindSecretMark(value, at)) {
      TRY_ASSIGN(const std::string text, mark->as_file ? FileOf(mark->name) : ValueOf(mark->name));
      filled.append(value, at, mark->begin - at).append(text);
      at = mark->end;
    }
    return filled.append(value, at);
  }

 private:
  Result<const std::string*> Find(const std::string& name) {
    if (!secrets_) {
      auto text = ReadFile(job::JobDir(paths_.job_dir).secrets(), kMaxSecretsFile);
      if (!text.ok()) return text.status().With("the job's secrets");
      TRY_ASSIGN(secrets_, ParseSecrets(*text));
    }
    const auto found = secrets_->find(name);
    if (found == secrets_->end())
      return FailedPrecondition("secret " + name + " was not delivered with the job");
    return &found->second;
  }

  Result<std::string> ValueOf(const std::string& name) {
    TRY_ASSIGN(const std::string* value, Find(name));
    if (value->find('\0') != std::string::npos)
      return FailedPrecondition("secret " + name +
                                " has a NUL byte, which no environment variable can hold; use "
                                "{secret_file: " +
                                name + "}");
    return *value;
  }

  Result<std::string> FileOf(const std::string& name) {
    const std::string path = paths_.secrets() + "/" + name;
    if (written_.contains(name)) return path;
    TRY_ASSIGN(const std::string* value, Find(name));
    TRY(MakeDirectories(paths_.secrets(), 0700));
    TRY(WriteFileAtomically(path, *value, 0600, false));
    written_.insert(name);
    return path;
  }

  const AttemptPaths& paths_;
  std::optional<SecretValues> secrets_;
  std::set<std::string> written_;
};

}  // namespace

std::string SecretsText(const SecretValues& secrets) {
  json::object object;
  for (const auto& [name, value] : secrets) object[name] = EncodeBase64(value);
  return ToText(object) + "\n";
}

Result<SecretValues> ParseSecrets(std::string_view text) {
  const Status damaged = InvalidArgument("the file with the job's secrets is damaged");
  const auto object = ParseJsonObject(text);
  if (!object.ok()) return damaged;  // without the parser's words, which may quote the text
  SecretValues secrets;
  for (const auto& [name, encoded] : *object) {
    if (!encoded.is_string()) return damaged;
    auto value = DecodeBase64(encoded.get_string());
    if (!value.ok()) return damaged;
    secrets.emplace(name, std::move(*value));
  }
  return secrets;
}

Status FillInSecrets(const AttemptPaths& paths,
                     std::vector<std::pair<std::string, std::string>>* variables) {
  Filler filler(paths);
  for (auto& [name, value] : *variables) {
    if (!job::FindSecretMark(value, 0)) continue;
    auto filled = filler.Fill(value);
    if (!filled.ok()) return filled.status().With("environment variable " + name);
    if (name.size() + filled->size() + 2 > framework::kMaxVariableBytes)
      return FailedPrecondition(
          "environment variable " + name + " would take " +
          std::to_string(name.size() + filled->size() + 2) + " bytes, expected at most " +
          std::to_string(framework::kMaxVariableBytes) + "; use {secret_file: NAME}");
    value = std::move(*filled);
  }
  return Status::Ok();
}

}  // namespace shoal::rendezvous
