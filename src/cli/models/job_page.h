// The report of a job as one page: its parameters, the data that it read, its curves and results.
// Used by `shoal report`.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "cli/jobs/curve_svg.h"
#include "controller/jobs/jobs.h"

namespace shoal::cli {

struct JobPage {
  controller::JobDetails details;
  std::vector<PlotPanel> curves;
  std::vector<json::object> lineage;  // of the catalogue's tables, as the server has it
  json::object model;                 // model.json of the model that it wrote; empty: none here
  WallTime now{};
};

// A whole HTML document without scripts, and without references to anything outside it. All texts
// are escaped. Values of environment variables are left out.
std::string RenderJobPage(const JobPage& page);

}  // namespace shoal::cli
