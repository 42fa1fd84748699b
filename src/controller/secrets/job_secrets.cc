#include "controller/secrets/job_secrets.h"

#include <map>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/seal.h"
#include "job/execution/job_dir.h"
#include "job/spec/cluster_reference.h"
#include "rendezvous/launcher/task_secrets.h"

namespace shoal::controller {
namespace {

Status WithoutSource() {
  return FailedPrecondition("this command has no secrets; use `shoal run` or a server");
}

}  // namespace

Status CheckSecrets(SecretSource* source, const std::string& team, const job::Job& job) {
  for (const auto& [name, path] : job::SecretsOf(job)) {
    if (name.starts_with(kGateSecret)) continue;
    auto value =
        source == nullptr ? Result<std::string>(WithoutSource()) : source->Read(team, name);
    if (!value.ok()) return value.status().With(path);
    EraseSecret(&*value);
  }
  return Status::Ok();
}

Status WriteSecrets(SecretSource* source, const std::string& team, const job::Job& job,
                    const std::filesystem::path& job_dir) {
  const std::map<std::string, std::string> wanted = job::SecretsOf(job);
  if (wanted.empty()) return Status::Ok();
  if (source == nullptr) return WithoutSource();
  rendezvous::SecretValues values;
  for (const auto& [name, path] : wanted) {
    TRY_ASSIGN(values[name], source->Read(team, name));
  }
  TRY(MakeDirectories(job_dir, 0700));
  const FileAccessAs owner(job_dir);
  std::string text = rendezvous::SecretsText(values);
  const Status written = WriteFileAtomically(job::JobDir(job_dir).secrets(), text, 0600, false);
  EraseSecret(&text);
  for (auto& [name, value] : values) EraseSecret(&value);
  return written;
}

}  // namespace shoal::controller
