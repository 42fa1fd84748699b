// The steps from a tree of nodes to a validated Job, in the order in which parse.cc takes them:
// overrides, decoding by the table, defaults and presets, cross-checks.
#pragma once

#include <string>
#include <vector>

#include "job/file/fields.h"
#include "job/spec/job.h"
#include "job/text/errors.h"
#include "job/text/field_locations.h"
#include "job/text/yaml_tree.h"

namespace shoal::job {

// A job under construction, with the places its fields came from.
struct JobDraft {
  Job job;
  FieldLocations places;

  bool Has(const std::string& path) const { return places.Has(path); }
  SourceLocation LocationOf(const std::string& path) const { return places.Of(path); }
};

// Sets in the tree what the --set arguments say (overrides.cc).
void ApplyOverrides(const std::vector<std::string>& overrides, Node* root, Errors* errors);

// Reads one value as the field's type; false after telling `errors` (read_value.cc).
bool ReadValue(const Field& field, const Node& node, const std::string& path, Value* value,
               Errors* errors);

// Lower-case letters, digits and '-', a letter first, no '-' at the end, at most `most` bytes: what
// roles, data sets, ports and outputs may be called on every engine.
bool IsPlainName(std::string_view name, size_t most);
inline constexpr size_t kMaxPlainName = 40;

// Fills the draft from the tree by the table (decode.cc).
void Decode(const Node& root, JobDraft* draft, Errors* errors);

// Fills in what was left out: names, the framework's roles, success rule (presets.cc).
void ApplyDefaults(JobDraft* draft);

// Checks what no single field shows (validate.cc).
void Validate(const JobDraft& draft, Errors* errors);
// Of that, what each framework asks of its roles and variables (validate_framework.cc).
void ValidateFramework(const JobDraft& draft, Errors* errors);
// Values of container.user and slurm.options that engines could not use (validate_engines.cc).
void ValidateEngines(const JobDraft& draft, Errors* errors);

}  // namespace shoal::job
