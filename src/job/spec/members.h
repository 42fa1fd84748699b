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

// One of them. InvalidArgument as from MembersOf, and for an index without a member. O(parameters)
// for drawn values, else O(members).
Result<MatrixValues> MemberOf(const Triggers& triggers, size_t index);

// Members that together have every value of every parameter, so that each value is checked without
// parsing every member: the first ones of them, so many that the work is bounded. Indices,
// ascending.
inline constexpr size_t kMaxCheckedMembers = 256;
std::vector<size_t> MembersToCheck(const std::vector<MatrixValues>& members);

}  // namespace shoal::job
