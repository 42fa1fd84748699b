// The table of the policy file's fields: the decoder, the reference in docs/queue.md and the
// suggestions for misspelt names are derived from it. Types, ranges and reading of values are those
// of the job file (job/file/fields.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "job/file/fields.h"
#include "queue/policy/policy.h"

namespace shoal::queue {

// Where a value is stored; members that a field's path does not have are nullptr.
struct PolicyTarget {
  Policy* policy = nullptr;
  Flavor* flavor = nullptr;
  QueueSpec* queue = nullptr;
  MaintenanceWindow* window = nullptr;
  Quota* quota = nullptr;
};

struct PolicyField {
  job::Field field;
  void (*apply)(const job::Value& value, const PolicyTarget& target) = nullptr;
};

// In the order of the reference; a section precedes its fields. "*" stands for a name that the
// file chooses.
std::span<const PolicyField> PolicyFields();
// nullptr if there is none with this path.
const PolicyField* FindPolicyField(std::string_view path);
std::vector<std::string> PolicyFieldsBelow(std::string_view section);

}  // namespace shoal::queue
