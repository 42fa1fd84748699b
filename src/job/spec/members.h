// The members of a job with a matrix or a sweep: the values of their parameters.
#pragma once

#include <vector>

#include "base/status.h"
#include "job/spec/triggers.h"

namespace shoal::job {

// The members in their order, which never changes for the same triggers: a matrix with its first
// parameter varying slowest, without the excluded combinations, then with `include` as GitHub's
// matrix has it: an entry adds its values to every combination in which it changes none of the
// parameters' own values, or becomes a member of its own if there is none. A sweep: its grid, or
// values drawn from the seed and the member's number, so that each can be drawn alone.
//
// InvalidArgument ("got …, expected …") for more than kMaxMembers, or none. O(members).
Result<std::vector<MatrixValues>> MembersOf(const Triggers& triggers);

// The members that together have every value of every parameter, so that each value is checked
// without parsing every member. Indices, ascending.
std::vector<size_t> MembersToCheck(const std::vector<MatrixValues>& members);

}  // namespace shoal::job
