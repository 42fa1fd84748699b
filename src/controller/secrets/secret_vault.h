// Secrets in the store, sealed with a key that is not in it (base/seal.h): a copy of the database
// or a backup without the key reveals names only.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/seal.h"
#include "base/status.h"
#include "controller/secrets/secrets.h"
#include "controller/store/records.h"

namespace shoal::controller {

// Where the sealing key comes from.
struct SealingKeySource {
  std::filesystem::path file;  // made with mode 0600 by the first secret if it is not there
  // If not empty, a shell command that prints the key instead (64 hex digits, or base64), such as
  // `vault kv get -field=key secret/shoal`; it has 30 s.
  std::string command;
};

// Thread-safe. The key is read at the first use and kept. Blocks on the store.
class SecretVault final : public SecretSource {
 public:
  // `records` and `clock` must outlive it.
  SecretVault(Records* records, const Clock* clock, SealingKeySource source)
      : records_(records), clock_(clock), source_(std::move(source)) {}

  // Reads the key now, if it is a command's or there are secrets, so that a mistake is told at the
  // start of a server. FailedPrecondition as for Set.
  Status Prepare();

  Result<std::vector<SecretInfo>> List(const std::string& team);
  // As Secrets::Set; FailedPrecondition if the key cannot be read, or is not the one of the
  // secrets that are there.
  Status Set(const std::string& team, const std::string& name, std::string_view value,
             const std::string& by);
  Status Remove(const std::string& team, const std::string& name);

  Result<std::string> Read(const std::string& team, const std::string& name) override;

 private:
  Result<SealingKey> Key(bool make);
  Result<SealingKey> LoadKey(bool make);
  Result<SealingKey> RunKeyCommand() const;
  Result<bool> HasSecrets();

  Records* const records_;
  const Clock* const clock_;
  const SealingKeySource source_;
  Mutex mu_;
  std::optional<SealingKey> key_ GUARDED_BY(mu_);
};

// The secrets of one team, for commands. `vault` must outlive it.
class TeamSecrets final : public Secrets {
 public:
  TeamSecrets(SecretVault* vault, std::string team, std::string by)
      : vault_(vault), team_(std::move(team)), by_(std::move(by)) {}
  Result<std::vector<SecretInfo>> List() override { return vault_->List(team_); }
  Status Set(const std::string& name, std::string_view value) override {
    return vault_->Set(team_, name, value, by_);
  }
  Status Remove(const std::string& name) override { return vault_->Remove(team_, name); }

 private:
  SecretVault* const vault_;
  const std::string team_;
  const std::string by_;
};

}  // namespace shoal::controller
