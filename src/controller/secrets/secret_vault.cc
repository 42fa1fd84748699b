#include "controller/secrets/secret_vault.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "base/base64.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/private_files.h"
#include "engine/process/child_process.h"
#include "job/spec/cluster_reference.h"

namespace shoal::controller {
namespace {

constexpr const char* kKind = "secret";
constexpr int kPage = 1000;
constexpr size_t kMaxKeyBytes = 4096;
constexpr std::chrono::seconds kKeyCommandTime{30};

std::string KeyOf(const std::string& team, const std::string& name) { return team + "/" + name; }

std::string TextOf(const json::object& body, std::string_view field) {
  const json::value* value = body.if_contains(field);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

Status CheckName(const std::string& name) {
  if (job::IsSecretName(name)) return Status::Ok();
  return InvalidArgument("name: got " + ToText(json::value(name)) +
                         ", expected 1 to 63 letters, digits, '-', '_' and '.', the first a letter "
                         "or digit");
}

Status CheckValue(std::string_view value) {
  if (value.empty()) return InvalidArgument("value: got none, expected at least one byte");
  if (value.size() <= kMaxSecretBytes) return Status::Ok();
  return InvalidArgument("value: got " + std::to_string(value.size()) +
                         " bytes, expected at most " + std::to_string(kMaxSecretBytes));
}

Status NoSuchSecret(const std::string& team, const std::string& name) {
  return NotFound("there is no secret " + name + (team.empty() ? "" : " of team " + team) +
                  "; make it with `shoal secret set " + name +
                  (team.empty() ? "" : " --team " + team) + "`");
}

}  // namespace

Result<bool> SecretVault::HasSecrets() {
  TRY_ASSIGN(const RecordPage page, records_->List(kKind, "", "", 1));
  return !page.records.empty();
}

Result<SealingKey> SecretVault::RunKeyCommand() const {
  engine::CommandLimits limits;
  limits.time = kKeyCommandTime;
  limits.bytes = kMaxKeyBytes;
  auto result = engine::RunCommand({"/bin/sh", "-c", source_.command}, engine::CurrentEnvironment(),
                                   "", limits);
  const std::string where = "the command that prints the key of secrets";
  if (!result.ok()) return FailedPrecondition(where + ": " + result.status().message());
  if (result->exit_code != 0) {
    std::string said = result->err.substr(0, result->err.find('\n'));
    return FailedPrecondition(where + " ended with exit code " + std::to_string(result->exit_code) +
                              (said.empty() ? "" : ": " + said));
  }
  auto key = SealingKey::Parse(result->out);
  EraseSecret(&result->out);
  if (!key.ok()) return FailedPrecondition(where + ": " + key.status().message());
  return key;
}

Result<SealingKey> SecretVault::LoadKey(bool make) {
  if (!source_.command.empty()) return RunKeyCommand();
  auto text = ReadFile(source_.file, kMaxKeyBytes);
  if (text.ok()) {
    TRY(OpenPrivateFile(source_.file, O_RDONLY).status());  // closes it to other users
    auto key = SealingKey::Parse(*text);
    EraseSecret(&*text);
    if (!key.ok()) return FailedPrecondition(source_.file.string() + ": " + key.status().message());
    return key;
  }
  if (text.status().code() != Code::kNotFound) return text.status();
  TRY_ASSIGN(const bool some, HasSecrets());
  if (some || !make)
    return FailedPrecondition("the key of the secrets, " + source_.file.string() +
                              ", is missing; restore it from where it is kept, or remove the "
                              "secrets and set them again");
  const SealingKey key = SealingKey::Random();
  std::string line = key.text() + "\n";
  const Status written = WriteFileAtomically(source_.file, line, 0600);
  EraseSecret(&line);
  TRY(written);
  return key;
}

Result<SealingKey> SecretVault::Key(bool make) {
  const MutexLock lock(mu_);
  if (key_) return *key_;
  TRY_ASSIGN(key_, LoadKey(make));
  return *key_;
}

Status SecretVault::Prepare() {
  TRY_ASSIGN(const bool some, HasSecrets());
  return some || !source_.command.empty() ? Key(false).status() : Status::Ok();
}

Result<std::vector<SecretInfo>> SecretVault::List(const std::string& team) {
  std::vector<SecretInfo> found;
  const std::string prefix = KeyOf(team, "");
  std::string after;
  do {
    TRY_ASSIGN(const RecordPage page, records_->List(kKind, prefix, after, kPage));
    for (const Record& record : page.records) {
      SecretInfo info;
      info.name = record.key.substr(prefix.size());
      info.changed = record.changed;
      info.by = TextOf(record.body, "by");
      if (const json::value* bytes = record.body.if_contains("bytes");
          bytes != nullptr && bytes->is_int64())
        info.bytes = bytes->get_int64();
      found.push_back(std::move(info));
    }
    after = page.next;
  } while (!after.empty());
  return found;
}

Status SecretVault::Set(const std::string& team, const std::string& name, std::string_view value,
                        const std::string& by) {
  TRY(CheckName(name));
  TRY(CheckValue(value));
  TRY_ASSIGN(const SealingKey key, Key(true));
  const std::string record_key = KeyOf(team, name);
  TRY_ASSIGN(const std::string sealed, Seal(key, value, record_key));
  const json::object body{{"sealed", EncodeBase64(sealed)},
                          {"key", key.id()},
                          {"by", by},
                          {"bytes", static_cast<int64_t>(value.size())}};
  return records_->Put(kKind, record_key, body, kAnyVersion, clock_->Wall()).status();
}

Status SecretVault::Remove(const std::string& team, const std::string& name) {
  const Status removed = records_->Delete(kKind, KeyOf(team, name), kAnyVersion, clock_->Wall());
  return removed.code() == Code::kNotFound ? NoSuchSecret(team, name) : removed;
}

Result<std::string> SecretVault::Read(const std::string& team, const std::string& name) {
  const std::string record_key = KeyOf(team, name);
  const auto record = records_->Get(kKind, record_key);
  if (!record.ok())
    return record.status().code() == Code::kNotFound ? NoSuchSecret(team, name) : record.status();
  TRY_ASSIGN(const SealingKey key, Key(false));
  const auto sealed = DecodeBase64(TextOf(record->body, "sealed"));
  const Result<std::string> value =
      sealed.ok() ? Unseal(key, *sealed, record_key) : Result<std::string>(sealed.status());
  if (value.ok()) return value;
  return FailedPrecondition("secret " + name + ": " + value.status().message() +
                            "; set it again, or restore the key");
}

}  // namespace shoal::controller
