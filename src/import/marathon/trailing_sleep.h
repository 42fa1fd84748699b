// Shell lines that sleep for ever behind their program, as launchers of services want it.
#pragma once

#include <string>

namespace shoal::importer {

// Without what stands behind the program only so that Marathon does not start it again. Programs in
// the background live as long as what stands behind them, so that a line with such stays as it is.
std::string StripTrailingSleep(const std::string& line);

}  // namespace shoal::importer
