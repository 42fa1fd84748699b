// The one table of the job file's fields: decoder, reference page (docs/job-file.md), JSON Schema
// (docs/job.schema.json) and "did you mean" all come from it. A new field is one entry here, one
// member of Job and one line in json.cc; docs/contributing has the checklist.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "job/spec/job.h"

namespace shoal::job {

enum class Type : uint8_t {
  kText,       // any one value, as written
  kName,       // letters, digits, '-', '_', '.'
  kInteger,    // least … most
  kNumber,     // least … most
  kSize,       // bytes, least … most
  kDuration,   // milliseconds, least … most
  kChoice,     // one of `choices`
  kTexts,      // a text or a list of texts
  kCommand,    // a list of words
  kTextMap,    // named texts
  kVariables,  // named texts whose names are environment variables
  kLearn,      // named scalars with their places; a list for "data"
  kRole,       // the name of a role
  kRoles,      // the name of a role or a list of such
  kExitRules,  // [{code: 137, action: retry}, …]
  kLogRules,   // [{line: "*NCCL error*", action: retry}, …]
  kPorts,      // [grpc, …], [{name: grpc, plain: true}, …] or {plain: true, names: […]}
  kPodValue,   // as Kubernetes has it: the type that `choices` names (pod_fields.h)
  kSection,    // fields of its own
  kSections,   // named sections, "*" in the paths of their fields
};

// What a value of the file was read as; the member that belongs to the field's type is set.
struct Value {
  std::string text;  // kText, kName, kChoice, kRole; kPodValue: JSON
  int64_t integer = 0;
  double number = 0;
  std::chrono::milliseconds duration{0};
  std::vector<std::string> texts;           // kTexts, kCommand, kRoles
  std::map<std::string, std::string> map;   // kTextMap, kVariables
  std::map<std::string, LearnValue> learn;  // kLearn
  std::vector<Port> ports;                  // kPorts
  std::vector<ExitRule> exit_rules;         // kExitRules
  std::vector<LogRule> log_rules;           // kLogRules
};

// What a value goes into; `role` and `data` are set below roles.* and data.*.
struct Target {
  Job* job = nullptr;
  Role* role = nullptr;
  DataSource* data = nullptr;
};

struct Field {
  std::string_view path = {};  // "roles.*.restart.limit"
  Type type = Type::kText;
  double least = 0;
  double most = 0;
  std::string_view choices = {};    // "never|transient|always"
  std::string_view shorthand = {};  // of kSections: the field that a plain value stands for
  std::string_view fallback = {};   // what is meant when it is left out, for people
  std::string_view doc = {};        // one sentence
  void (*apply)(const Value& value, const Target& target) = nullptr;  // nullptr for sections
};

// The section `kubernetes` of jobs, and of roles (kubernetes_fields.cc).
std::vector<Field> KubernetesFields();
std::vector<Field> RoleKubernetesFields();

// In the order of the reference page; a section before its fields.
std::span<const Field> Fields();

// The field at a path of the table; nullptr if there is none.
const Field* FindField(std::string_view path);
// The names of the fields directly below a section ("" for the top).
std::vector<std::string> FieldsBelow(std::string_view section);

// Completes "expected …": "an integer from 0 to 100000", "one of never, transient, always".
std::string Expected(const Field& field);

// True for the variables that Shoal itself sets for every task; job files may not.
bool IsReservedVariable(std::string_view name);

}  // namespace shoal::job
