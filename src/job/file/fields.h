// The table of the job file's fields. The decoder, the reference page (docs/job-file.md), the JSON
// Schema (docs/job.schema.json) and the suggestions for misspelt names are derived from it.
// docs/contributing has the checklist for a new field.
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
  kText,             // any one value, as written
  kName,             // letters, digits, '-', '_', '.'
  kInteger,          // least … most
  kNumber,           // least … most
  kSize,             // bytes, least … most
  kDuration,         // milliseconds, least … most
  kChoice,           // one of `choices`
  kTexts,            // a text or a list of texts
  kCommand,          // a list of words
  kTextMap,          // named texts
  kVariables,        // named texts whose names are environment variables
  kLearn,            // named scalars with their locations; a list for "data"
  kRole,             // the name of a role
  kRoles,            // the name of a role or a list of such
  kExitRules,        // [{code: 137, action: retry}, …]
  kLogRules,         // [{line: "*NCCL error*", action: retry}, …]
  kPorts,            // [grpc, …], [{name: grpc, plain: true}, …] or {plain: true, names: […]}
  kPodValue,         // a value of the Kubernetes API; `choices` names its type (pod_fields.h)
  kDependencies,     // [prepare, {job: check, when: ended}]
  kMatrix,           // {lr: [0.1, 0.01], limit: 2}
  kSweepParameters,  // {lr: {log_uniform: [1e-4, 0.1]}, dim: [100, 300]}
  kSection,          // a section with fields
  kSections,         // named sections, "*" in the paths of their fields
};

// A decoded value. Only the member for the field's type is set.
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
  std::vector<Dependency> after;            // kDependencies
  Matrix matrix;                            // kMatrix
  std::vector<SweepParameter> parameters;   // kSweepParameters
};

// Where a value is stored; `role` and `data` are set for fields below roles.* and data.*.
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
  std::string_view choices = {};  // "never|transient|always"
  std::string_view shorthand =
      {};  // of kSections: the field that a scalar in place of the section sets
  std::string_view fallback = {};                                     // documented default
  std::string_view doc = {};                                          // one sentence
  void (*apply)(const Value& value, const Target& target) = nullptr;  // nullptr for sections
};

// Fields of the section `kubernetes` of a job and of a role (kubernetes_fields.cc).
std::vector<Field> KubernetesFields();
std::vector<Field> RoleKubernetesFields();

// All fields in the order of the reference page; a section precedes its fields.
std::span<const Field> Fields();

// The field with this path in the table; nullptr if there is none.
const Field* FindField(std::string_view path);
// Names of the fields directly below a section; "" is the top level.
std::vector<std::string> FieldsBelow(std::string_view section);

// Continues "expected …": "an integer from 0 to 100000", "one of never, transient, always".
std::string Expected(const Field& field);

// True for variables that Shoal sets for every task; job files must not set them.
bool IsReservedVariable(std::string_view name);

}  // namespace shoal::job
