// The steps from a tree of nodes to a validated Job, in the order in which parse.cc runs them:
// overrides, decoding by the field table, defaults, cross-checks.
#pragma once

#include <string>
#include <vector>

#include "job/file/fields.h"
#include "job/spec/job.h"
#include "job/text/errors.h"
#include "job/text/field_locations.h"
#include "job/text/yaml_tree.h"

namespace shoal::job {

// A job under construction with the locations of its fields.
struct JobDraft {
  Job job;
  FieldLocations places;

  bool Has(const std::string& path) const { return places.Has(path); }
  SourceLocation LocationOf(const std::string& path) const { return places.Of(path); }
};

// Applies --set arguments to the tree (overrides.cc).
void ApplyOverrides(const std::vector<std::string>& overrides, Node* root, Errors* errors);

// Reads a node as the field's type; on failure adds to `errors` and returns false (read_value.cc).
bool ReadValue(const Field& field, const Node& node, const std::string& path, Value* value,
               Errors* errors);

// The same for `after`, `matrix` and `sweep.parameters` (read_triggers.cc).
bool ReadTriggers(const Field& field, const Node& node, const std::string& path, Value* value,
                  Errors* errors);

// True for a name that every engine accepts for roles, data sets, ports and outputs: lower-case
// letters, digits and '-', beginning with a letter, not ending in '-', at most `most` bytes.
bool IsPlainName(std::string_view name, size_t most);
inline constexpr size_t kMaxPlainName = 40;

// Fills the draft from the tree by the field table (decode.cc).
void Decode(const Node& root, JobDraft* draft, Errors* errors);

// Sets omitted fields: names, the framework's roles, the success rule (presets.cc).
void ApplyDefaults(JobDraft* draft);

// Checks relations between fields (validate.cc).
void Validate(const JobDraft& draft, Errors* errors);
// Checks `matrix` and `sweep`, whose other fields are not decoded yet (validate_members.cc).
void ValidateMembers(const JobDraft& draft, Errors* errors);
// Checks the framework's requirements on roles and variables (validate_framework.cc).
void ValidateFramework(const JobDraft& draft, Errors* errors);
// Checks container.user and slurm.options for values that engines cannot use (validate_engines.cc).
void ValidateEngines(const JobDraft& draft, Errors* errors);

}  // namespace shoal::job
