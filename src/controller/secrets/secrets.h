// The secrets that jobs refer to by name: passwords and keys of a team, or of this machine's user
// without a server. One interface over the store (secret_vault.h) and over a server (api/client).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace shoal::controller {

// Secrets with such names are made by a server for one of its jobs (api/catalog), when it starts.
inline constexpr std::string_view kGateSecret = "shoal-gate.";

inline constexpr size_t kMaxSecretBytes = size_t{64} << 10;

// A secret without its value. Plain value.
struct SecretInfo {
  std::string name;
  WallTime changed{};
  std::string by;     // the user who set it; empty without a server
  int64_t bytes = 0;  // of the value
};

// Thread-safe; calls block. Values are never returned: only the start of a job reads them.
class Secrets {
 public:
  virtual ~Secrets() = default;
  // By name.
  virtual Result<std::vector<SecretInfo>> List() = 0;
  // Makes or replaces it. InvalidArgument for a name that is not allowed (job::IsSecretName), and
  // for a value that is empty or has more than kMaxSecretBytes.
  virtual Status Set(const std::string& name, std::string_view value) = 0;
  // NotFound.
  virtual Status Remove(const std::string& name) = 0;
};

// What the start of a job needs. Thread-safe; blocks on the store, and on the key's command.
class SecretSource {
 public:
  virtual ~SecretSource() = default;
  // NotFound names the secret and the remedy; FailedPrecondition if it cannot be unsealed.
  virtual Result<std::string> Read(const std::string& team, const std::string& name) = 0;
};

}  // namespace shoal::controller
