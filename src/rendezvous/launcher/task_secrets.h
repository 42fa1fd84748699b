// The values of a job's secrets at its tasks. The controller writes them to one file of the job's
// directory or among the bootstrap files, as the job's token (job::JobDir::secrets); they are in no
// message between coordinator and launchers. Used by attempt.cc.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "rendezvous/launcher/task_directories.h"

namespace shoal::rendezvous {

// Value by name.
using SecretValues = std::map<std::string, std::string, std::less<>>;

// The file's text, and the reverse. InvalidArgument for a text that SecretsText did not write.
std::string SecretsText(const SecretValues& secrets);
Result<SecretValues> ParseSecrets(std::string_view text);

// Replaces the marks of secrets (job::SecretMark) in `variables` by values, and by the paths of
// files with values, mode 0600, which it writes below AttemptPaths::secrets. Without marks it reads
// nothing. Errors name the variable and the secret, never a value: FailedPrecondition for a value
// that a variable cannot hold (a NUL byte, more than kMaxVariableBytes) and for a secret that the
// job's directory does not have.
Status FillInSecrets(const AttemptPaths& paths,
                     std::vector<std::pair<std::string, std::string>>* variables);

}  // namespace shoal::rendezvous
