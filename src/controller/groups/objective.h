// The objective of a sweep's member, from the series that its job has reported, and the rule that
// stops members early.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "job/spec/triggers.h"

namespace shoal::controller {

// What a job has reported of its objective. Plain value.
struct Objective {
  std::vector<double> rungs;   // at each rung that it has reached, the first ones
  std::optional<double> last;  // none: it has reported nothing
};

// Reads the series of a job (SeriesDir) up to now. The values of several tasks are averaged; a rung
// is reached when all tasks that report have reached it. At most `most` rungs. Blocks on the disk.
Result<Objective> ReadObjective(const std::filesystem::path& dir, const job::Sweep& sweep,
                                size_t most);

// Whether a member goes on beyond a rung at which members have these values, its own among them:
// if it is among the best 1/reduction of them, or if fewer than `reduction` have reached the rung.
//
// The rule of asynchronous successive halving (Li et al. 2020, "A System for Massively Parallel
// Hyperparameter Tuning", algorithm 2) in the form that stops members in place of pausing all and
// promoting the best (docs/adr/0312). O(values).
bool GoesOn(const std::map<size_t, double>& rung, double value, const job::Sweep& sweep);

}  // namespace shoal::controller
