// The fields `after`, `matrix` and `sweep` of a job file, part of the table of fields.cc.
#pragma once

#include <vector>

#include "base/json.h"
#include "job/file/fields.h"
#include "job/text/yaml_tree.h"

namespace shoal::job {

std::vector<Field> TriggerFields();

// The schema of a field of one of their types.
json::object TriggerSchema(const Field& field);

// The sections as nodes of a job file; null nodes without them.
Node AfterNode(const Triggers& triggers);
Node MatrixNode(const Triggers& triggers);
Node SweepNode(const Triggers& triggers);

// Replaces {{matrix.NAME}} by the member's value, and {{matrix.index}} by its number, in every
// value below `root` except in the sections `matrix` and `sweep`. A value that is nothing but a
// reference becomes what stands in the matrix: a number stays a number.
void SubstituteMember(const MatrixValues& values, size_t index, Node* root, Errors* errors);

}  // namespace shoal::job
