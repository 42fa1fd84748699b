// Curves as an SVG picture: one panel for each metric, one line for each job. Used by `shoal plot`
// and, with axes of its own, by `shoal report`.
#pragma once

#include <string>
#include <vector>

#include "cli/jobs/curves.h"

namespace shoal::cli {

struct PlotLine {
  std::string label;
  std::vector<CurvePoint> points;
};

struct PlotPanel {
  std::string title;
  std::vector<PlotLine> lines;  // at least one point in all
  // What `seconds` of the points are; empty: time, in a unit that suits it.
  std::string x_title = {};
  bool dots = false;  // one at each point
};

// A whole document, 800 units wide, without scripts and outer references.
std::string PlotSvg(const std::vector<PlotPanel>& panels);
// The same picture as an element of a page.
std::string PlotElement(const std::vector<PlotPanel>& panels);

// At most about `wanted` round numbers (1, 2 or 5 times a power of ten) from `least` to `greatest`.
std::vector<double> AxisTicks(double least, double greatest, int wanted);

}  // namespace shoal::cli
