// References in the values of a job's environment: to the cluster, resolved when the tasks are
// placed, and to secrets, resolved by each launcher when its program starts:
//
//     env: {PS_HOSTS: "{{shoal.addresses.ps}}", TASK_INDEX: "{{shoal.index}}",
//           DATABASE: "postgres://app:{{shoal.secret.db}}@db/train"}
//
// Programs written for other launchers find the variables that they read. validate.cc checks the
// references with the job file; src/framework resolves them, those to secrets into marks
// (SecretMark). docs/job-file.md documents the syntax for users.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::job {

enum class ReferenceTo : uint8_t {
  kText,        // literal text
  kIndex,       // index of the task itself
  kHost,        // host of the task itself
  kHosts,       // comma-separated hosts of a role, in index order
  kAddresses,   // comma-separated HOST:PORT of a role; the port is each task's first
  kCount,       // number of tasks of a role
  kSecret,      // value of a secret
  kSecretFile,  // path of a file with the value of a secret
};

struct ReferencePart {
  ReferenceTo to = ReferenceTo::kText;
  // kText: the literal text; kHosts, kAddresses, kCount: the role's name; kSecret, kSecretFile:
  // the secret's name.
  std::string text;

  bool operator==(const ReferencePart&) const = default;
};

// True if the value contains a reference.
bool HasReference(std::string_view value);

// The value with which a text stays as it is: "{{shoal." becomes "{{shoal.braces}}shoal.".
std::string EscapeReferences(std::string_view text);

// Splits the value into literal parts and references. InvalidArgument for a malformed "{{shoal."
// reference; the message continues a sentence that begins with the variable's name. Does not check
// that roles exist. O(length).
Result<std::vector<ReferencePart>> ParseReferences(std::string_view value);

// 1 to 63 letters, digits, '-', '_' and '.', the first a letter or digit.
bool IsSecretName(std::string_view name);
// The value of `{secret: NAME}` and `{secret_file: NAME}` in a job file.
std::string SecretReference(std::string_view name, bool as_file);
// The stand-in for a secret in the environment that a coordinator sends to a launcher.
std::string SecretMark(std::string_view name, bool as_file);
// A mark within a text.
struct FoundSecretMark {
  size_t begin = 0;
  size_t end = 0;
  std::string name;
  bool as_file = false;
};
// The first mark at or after `from`.
std::optional<FoundSecretMark> FindSecretMark(std::string_view text, size_t from);
// `text` with marks as the references that they stand for, for people.
std::string MarksAsReferences(std::string_view text);
// The secret that `value` consists of, if it is one reference and nothing else; else nullopt.
std::optional<ReferencePart> WholeSecret(std::string_view value);

struct Job;
// The names of all secrets that the job refers to, with the first variable that does ("env.KEY",
// "roles.worker.env.KEY"). Malformed references are ignored.
std::map<std::string, std::string> SecretsOf(const Job& job);

}  // namespace shoal::job
