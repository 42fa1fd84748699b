// Checks of a policy's relations: the tree, the flavors, the quotas.
#pragma once

#include <map>
#include <string>

#include "job/text/errors.h"
#include "queue/policy/policy.h"

namespace shoal::queue {

// Places of the policy's fields in its file, by path.
using PolicyPlaces = std::map<std::string, job::SourceLocation>;

// Adds an error for each queue without a tree (a cycle, an unknown parent), each flavor that is
// not defined, each quota that can do nothing, and each window that ends before it begins.
void ValidatePolicy(const Policy& policy, const PolicyPlaces& places, job::Errors* errors);

}  // namespace shoal::queue
