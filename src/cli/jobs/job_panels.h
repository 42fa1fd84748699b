// The curves of jobs as panels of a picture. Used by `shoal plot` and `shoal report`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cli/jobs/curve_svg.h"
#include "controller/jobs/jobs.h"

namespace shoal::cli {

// A panel for each of the metrics, else for losses and speeds, else for all that there are. The
// jobs are named by unambiguous prefixes. NotFound for a job without numbers, and for a metric that
// none of them has.
Result<std::vector<PlotPanel>> PanelsOfJobs(controller::Jobs* jobs,
                                            const std::vector<std::string>& prefixes,
                                            const std::vector<std::string>& metrics);

}  // namespace shoal::cli
